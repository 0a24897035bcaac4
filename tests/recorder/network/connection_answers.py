"""Answers about the connections of a group, for tests."""

from __future__ import annotations

import json


def connected(ids: list[str], sub: str = "*", version: int = 1, addr: str = "h:1") -> bytes:
    rows = [{"clientId": each, "clientAddr": addr, "language": "JAVA", "version": 407} for each in ids]
    table = {"t": {"subString": sub, "subVersion": version, "expressionType": "TAG"}}
    return json.dumps({"connectionSet": rows, "subscriptionTable": table, "messageModel": "CLUSTERING"}).encode()
