"""Encode and sign requests, and decode answers of the remoting protocol.

A frame is its length (4 bytes), the serialize type (1 byte) and the header's length (3 bytes), the header, the body.
Source: RemotingCommand#encode and #decode.

A broker with access control (plain_acl of 4.x, authentication of 5.x) expects the values of all fields, sorted by name,
signed with HmacSHA1. A body would be signed too, but mqreplay's requests have none. Source: AclClientRPCHook, AclUtils,
AclSigner; DefaultAuthenticationContextBuilder.
"""

from __future__ import annotations

import base64
import hmac
import json
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from mqreplay.decode.capture.headers import JSON, LEAST_HEADER, read_header
from mqreplay.recorder.remoting.credentials import Credentials
from mqreplay.recorder.remoting.requests import ReadCode, Request
from mqreplay.words.errors import DecodeError

# RocketMQ's own clients read at most 16 MiB unless com.rocketmq.remoting.frameMaxLength says more.
MAX_FRAME_BYTES: Final = 64 * 1024 * 1024
MAX_REMARK: Final = 4096  # characters; a broker's remark may be a stack trace
SUCCESS: Final = 0
_SYSTEM_ERROR, _NO_PERMISSION = 1, 16
_VERSION: Final = 407  # MQVersion.Version.V4_9_7: from V4_9_4 on, name servers answer 105 with standard JSON
_RESPONSE: Final = 1  # a bit of the flag
_JAVA_CLASS: Final = re.compile(r"^(?:[a-z]\w*\.)+[A-Z]\w*: ")
_JAVA_LINE: Final = re.compile(r", (?:[a-z]\w*\.)+[A-Z]\w*\.\w+\(\w+\.java:\d+\)$")


@dataclass(frozen=True, slots=True)
class Answer:
    """What a broker or a name server answered: its ResponseCode, remark, extFields and body."""

    code: int
    remark: str | None
    fields: Mapping[str, str]
    body: bytes

    @property
    def denied(self) -> str | None:
        """Return the message of the server's access control if it refused the request; else None.

        4.9 answers with SYSTEM_ERROR and the text of an AclException, 5.x with NO_PERMISSION.

        >>> remark = "org.apache.rocketmq.acl.common.AclException: No acl config for me, org.apache.A.b(A.java:7)"
        >>> Answer(1, remark, {}, b"").denied
        'No acl config for me'
        >>> Answer(16, "check signature failed.", {}, b"").denied
        'check signature failed.'
        """
        remark = self.remark or ""
        if self.code == _NO_PERMISSION or (self.code == _SYSTEM_ERROR and "AclException" in remark):
            return _JAVA_LINE.sub("", _JAVA_CLASS.sub("", remark)) or "no permission"
        return None


class Received(NamedTuple):
    """A command from a server. If it is not a response, it is a request to this client."""

    opaque: int
    is_response: bool
    answer: Answer


def encode_request(request: Request, opaque: int, credentials: Credentials | None) -> bytes:
    """Return the frame of a request, signed if there are credentials.

    Raises:
        ValueError: the request is not in the allow-list.
    """
    fields = dict(request.fields)
    header = {
        "code": int(ReadCode(request.code)),
        "language": "PYTHON",
        "version": _VERSION,
        "opaque": opaque,
        "flag": 0,
        "serializeTypeCurrentRPC": "JSON",
        "extFields": fields if credentials is None else signed_fields(fields, credentials),
    }
    data = json.dumps(header, separators=(",", ":")).encode("ascii")
    return struct.pack(">II", 4 + len(data), JSON << 24 | len(data)) + data


def read_length(data: bytes) -> int:
    """Return the number of bytes of a frame after its first 4.

    Raises:
        DecodeError: the number is too small or too large for a command.

    >>> read_length(bytes([0, 0, 1, 0]))
    256
    """
    (length,) = struct.unpack(">I", data)
    if not 4 + min(LEAST_HEADER.values()) <= length <= MAX_FRAME_BYTES:
        raise DecodeError("bad_length", f"a frame of {length} bytes: this is not RocketMQ's remoting protocol")
    return int(length)


def read_frame(data: bytes) -> Received:
    """Return the command of a frame. ``data`` are the bytes after the frame's length.

    Raises:
        DecodeError: it is not a command.
    """
    (word,) = struct.unpack_from(">I", data) if len(data) >= 4 else (0xFF << 24,)
    kind, length = word >> 24, word & 0xFFFFFF
    if kind not in LEAST_HEADER or not LEAST_HEADER[kind] <= length <= len(data) - 4:
        raise DecodeError("bad_length", f"serialize type {kind} with a header of {length} bytes in {len(data)}")
    header = read_header(kind, data[4 : 4 + length])
    answer = Answer(header.code, _printable(header.remark), header.ext, data[4 + length :])
    return Received(header.opaque, bool(header.flag & _RESPONSE), answer)


def _printable(remark: str | None) -> str | None:
    """Return a remark without halves of surrogate pairs, and cut if it is long."""
    return None if remark is None else remark[:MAX_REMARK].encode("utf-8", "backslashreplace").decode()


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
