"""Rows of evidence as tests write and compare them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from typing import Any

from mqreplay.findings.shape import EVIDENCE_KEY


def evidence_of(table: str, **key: Any) -> dict[str, Any]:
    """Return one item of a finding's evidence: columns that the key does not name are null."""
    assert key.keys() <= EVIDENCE_KEY.keys(), key
    return {"table_name": table, **dict.fromkeys(EVIDENCE_KEY), **key}


def keys_of(evidence: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the key of each item as text, in the order of the columns: "topic=T queue_id=0"."""
    return [
        " ".join(f"{name}={_text(value)}" for name, value in each.items() if name != "table_name" and value is not None)
        for each in evidence
    ]


def _text(value: object) -> str:
    return str(value.replace(tzinfo=None) if isinstance(value, dt.datetime) else value)
