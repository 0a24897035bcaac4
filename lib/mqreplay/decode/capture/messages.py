"""The messages in a call: in a send of a batch, in an answer of a pull or of POP. Source: MessageDecoder#decode.

Of a pull: their number, first and last position. Those of POP distinguish a revived message from a new one.
"""

from __future__ import annotations

import struct
from typing import Final

from mqreplay.core.pop_receipt import split_extra_info, topic_type
from mqreplay.decode.capture.calls import Call
from mqreplay.decode.capture.codes import POP_MESSAGE, PULLS, SEND_BATCH_MESSAGE, SENDS
from mqreplay.decode.capture.sends import batch_of

# total size, magic, body CRC, queue id, flag, queue offset, commit log offset, system flag, bornTimestamp
_HEAD: Final = struct.Struct(">iIiiiqqiq")
_V1, _V2 = 0xDAA320A7, 0xDAA320AB  # MessageVersion
_MAGIC: Final = (_V1, _V2)
_BORN_HOST_V6, _STORE_HOST_V6 = 1 << 4, 1 << 5  # MessageSysFlag
_RETRY_FIELD: Final = 4  # of POP_CK
NOTHING: Final = {"msg_count": 0}


def without_messages(call: Call) -> Call:
    """Return a call with the facts of its messages instead of their bytes; a call without messages unchanged."""
    request, answer = call.request, call.response
    if request.code in SENDS:
        is_batch = request.code == SEND_BATCH_MESSAGE or "true" in (request.ext.get("m"), request.ext.get("batch"))
        batch = batch_of(request.body, request.is_whole) if is_batch else None
        return call._replace(request=request._replace(body=b""), messages=batch)
    if answer is None or not (request.code in PULLS or request.code == POP_MESSAGE):
        return call
    is_pop = request.code == POP_MESSAGE
    facts = pop_messages_of(answer.body) if is_pop else messages_of(answer.body, answer.is_whole)
    return call._replace(response=answer._replace(body=b""), messages=facts)


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


def pop_messages_of(body: bytes) -> list[dict[str, object]]:
    """Return the messages of a body, up to the first incomplete one.

    Each has its queue, offset (messages), mark of its topic, id, times consumed before, time of storing (epoch ms).
    A broker gives a message of a retry topic its own topic again, and then POP_CK has the mark.
    """
    at, messages = 0, list[dict[str, object]]()
    while at + _HEAD.size <= len(body):
        size = struct.unpack_from(">i", body, at)[0]
        if size < _HEAD.size or at + size > len(body):
            break
        try:
            messages.append(_message(body[at : at + size]))
        except (struct.error, UnicodeDecodeError, IndexError, ValueError):
            break
        at += size
    return messages


def _message(data: bytes) -> dict[str, object]:
    _, magic, _, queue_id, _, queue_offset, _, flags, _ = _HEAD.unpack_from(data)
    if magic not in _MAGIC:
        raise ValueError("not a message")
    at = _HEAD.size + (20 if flags & _BORN_HOST_V6 else 8)
    (store_ts,) = struct.unpack_from(">q", data, at)
    at += 8 + (20 if flags & _STORE_HOST_V6 else 8)
    reconsume_times, _, length = struct.unpack_from(">iqi", data, at)
    at += 16 + length
    length = struct.unpack_from(">H", data, at)[0] if magic == _V2 else data[at]
    at += 2 if magic == _V2 else 1
    topic = data[at : at + length].decode()
    at += length
    (length,) = struct.unpack_from(">H", data, at)
    text = data[at + 2 : at + 2 + length].decode()
    properties = dict(entry.split("\x01", 1) for entry in text.split("\x02") if "\x01" in entry)
    receipt = split_extra_info(properties.get("POP_CK", ""))
    return {
        "queue_id": queue_id,
        "queue_offset": queue_offset,
        "topic_type": receipt[_RETRY_FIELD] if len(receipt) > _RETRY_FIELD else topic_type(topic),
        "msg_id": properties.get("UNIQ_KEY"),
        "reconsume_times": reconsume_times,
        "store_ts": store_ts,
    }
