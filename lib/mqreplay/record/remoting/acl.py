"""Signatures of requests, for brokers with access control: plain_acl of 4.x, authentication of 5.x.

Both expect the same over remoting: the values of all fields, sorted by name, signed with HmacSHA1. A body would be
signed too, but mqreplay's requests have none. Source: AclClientRPCHook, AclUtils, AclSigner;
DefaultAuthenticationContextBuilder.
"""

from __future__ import annotations

import base64
import hmac
from collections.abc import Mapping

from mqreplay.record.remoting.credentials import Credentials


def signed_fields(fields: Mapping[str, str], credentials: Credentials) -> dict[str, str]:
    """Return the fields with AccessKey, SecurityToken (if there is one) and Signature.

    >>> signed_fields({"topic": "orders"}, Credentials("RocketMQ", "12345678"))["AccessKey"]
    'RocketMQ'
    """
    signed = {**fields, "AccessKey": credentials.access_key}
    if credentials.security_token is not None:
        signed["SecurityToken"] = credentials.security_token
    content = "".join(value for _, value in sorted(signed.items()))
    digest = hmac.digest(credentials.secret_key.encode("utf-8"), content.encode("utf-8"), "sha1")
    return {**signed, "Signature": base64.b64encode(digest).decode("ascii")}
