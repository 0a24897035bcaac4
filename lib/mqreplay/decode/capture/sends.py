"""The fields of a send and of its answer, by our names.

SEND_MESSAGE_V2 and SEND_BATCH_MESSAGE shorten the names of SEND_MESSAGE's header to one letter each. Sources:
SendMessageRequestHeader, SendMessageRequestHeaderV2, SendMessageResponseHeader, MessageDecoder.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Final

from mqreplay.decode.capture.headers import numbers_of

# SendMessageRequestHeaderV2, by the names of SendMessageRequestHeader.
FULL_NAMES: Final = {
    "a": "producerGroup",
    "b": "topic",
    "e": "queueId",
    "f": "sysFlag",
    "g": "bornTimestamp",
    "i": "properties",
    "j": "reconsumeTimes",
    "m": "batch",
}
NUMBERS: Final = {
    "queueId": "queue_id",
    "sysFlag": "sys_flag",
    "bornTimestamp": "born_ts",
    "reconsumeTimes": "reconsume_times",
}
STORED: Final = {"queueId": "answer_queue_id", "queueOffset": "queue_offset"}
NAME_VALUE_SEPARATOR, PROPERTY_SEPARATOR = "\x01", "\x02"
# MessageConst. A message with one of the last ones is stored in a topic of the broker until it is due.
UNIQ_KEY, KEYS, TAGS, TRANSACTION_PREPARED = "UNIQ_KEY", "KEYS", "TAGS", "TRAN_MSG"
DELAYED: Final = frozenset({"DELAY", "TIMER_DELAY_SEC", "TIMER_DELAY_MS", "TIMER_DELIVER_MS"})
# A message of a batch (MessageDecoder#encodeMessage): total size, magic code, body CRC, flag and body size; its body;
# the size of its properties; its properties.
_HEAD: Final = struct.Struct(">iiiii")
_PROPERTIES: Final = struct.Struct(">h")
Fields = dict[str, object]


def send_fields(header: Mapping[str, str], *, is_batch: bool = False) -> Fields:
    """Return the fields of a request; ``is_batch``: its code says that it is a batch.

    >>> sent = send_fields({"a": "p", "b": "t", "e": "-1", "i": "UNIQ_KEY\\x01K7\\x02DELAY\\x013"})
    >>> [sent.get(name) for name in ("producer_group", "topic", "queue_id", "msg_id", "is_delayed")]
    ['p', 't', None, 'K7', True]
    """
    ext = {FULL_NAMES.get(name, name): value for name, value in header.items()}
    properties = properties_of(ext.get("properties", ""))
    fields = numbers_of(ext, NUMBERS) | {"producer_group": ext.get("producerGroup"), "topic": ext.get("topic")}
    if str(fields.get("queue_id", "")).startswith("-"):  # the broker chooses a queue
        del fields["queue_id"]
    is_batch = is_batch or ext.get("batch") == "true"
    return fields | {
        "is_batch": is_batch,
        "msg_id": properties.get(UNIQ_KEY),
        "keys": properties.get(KEYS),
        "tags": None if is_batch else properties.get(TAGS, ""),
        "is_transaction": properties.get(TRANSACTION_PREPARED, "").lower() == "true",
        "is_delayed": not DELAYED.isdisjoint(properties),
    }


def batch_of(body: bytes, is_whole: bool) -> list[dict[str, str | None]] | None:
    """Return msg_id, keys and tags of each message of a batch, in order; None for an incomplete or another body.

    Source: MessageDecoder#decodeMessages. Tags are empty for a message without tags.

    >>> text = b"UNIQ_KEY\x01K8\x02TAGS\x01A"
    >>> body = _HEAD.pack(24 + len(text), 0, 0, 0, 2) + b"xy" + _PROPERTIES.pack(len(text)) + text
    >>> batch_of(body, True), batch_of(body[:-1], True)
    ([{'msg_id': 'K8', 'keys': None, 'tags': 'A'}], None)
    """
    messages: list[dict[str, str | None]] = []
    at = 0
    while is_whole and at < len(body):
        if at + _HEAD.size > len(body):
            return None
        total, _, _, _, size = _HEAD.unpack_from(body, at)
        of_properties = at + _HEAD.size + size
        begin = of_properties + _PROPERTIES.size
        if size < 0 or begin > len(body) or at + total > len(body):
            return None
        end = begin + _PROPERTIES.unpack_from(body, of_properties)[0]
        if end != at + total or end < begin:
            return None
        properties = properties_of(body[begin:end].decode("utf-8", "replace"))
        found = {"msg_id": properties.get(UNIQ_KEY), "keys": properties.get(KEYS), "tags": properties.get(TAGS, "")}
        messages.append(found)
        at = end
    return messages or None


def stored_fields(header: Mapping[str, str]) -> Fields:
    """Return where the answer says that the message is stored.

    >>> stored_fields({"queueId": "1", "queueOffset": "12", "msgId": "7F00000100002A9F000000000000B411"})
    {'answer_queue_id': 1, 'queue_offset': 12, 'offset_msg_id': '7F00000100002A9F000000000000B411'}
    """
    return numbers_of(header, STORED) | {"offset_msg_id": header.get("msgId")}


def properties_of(text: str) -> dict[str, str]:
    """Return the properties of a message; parts without a value are left out.

    >>> properties_of("KEYS\\x01k1\\x02WAIT\\x01true\\x02")
    {'KEYS': 'k1', 'WAIT': 'true'}
    """
    pairs = (part.partition(NAME_VALUE_SEPARATOR) for part in text.split(PROPERTY_SEPARATOR))
    return {name: value for name, separator, value in pairs if separator}
