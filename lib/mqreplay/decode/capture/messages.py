"""The messages in a pull's answer: number, first and last position. Source: MessageDecoder#decode."""

from __future__ import annotations

import struct
from typing import Final

# total size, magic, body CRC, queue id, flag, queue offset, commit log offset, system flag, bornTimestamp
_HEAD: Final = struct.Struct(">iIiiiqqiq")
_MAGIC: Final = (0xDAA320A7, 0xDAA320AB)  # MessageVersion V1 and V2
NOTHING: Final = {"msg_count": 0}


def messages_of(body: bytes, whole: bool) -> dict[str, int | None]:
    """Return msg_count, queue and commit log offsets (messages, bytes), last size (bytes), first bornTimestamp (ms).

    Uncertain values of an incomplete body are None.
    """
    at, count, first, last = 0, 0, None, None
    while at + _HEAD.size <= len(body):
        head = _HEAD.unpack_from(body, at)
        if head[1] not in _MAGIC or head[0] < _HEAD.size:
            return {}
        first, last, count = first or head, head, count + 1
        at += head[0]
    if first is None or last is None:
        return dict(NOTHING) if whole and not body else {}
    known: dict[str, int | None] = {
        "first_queue_offset": first[5],
        "first_commitlog_offset": first[6],
        "first_born_ts": first[8],
    }
    if whole and at == len(body):
        known |= {
            "msg_count": count,
            "last_queue_offset": last[5],
            "last_commitlog_offset": last[6],
            "last_store_size": last[0],
        }
    return known
