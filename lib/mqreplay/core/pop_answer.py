"""What the header of a POP answer says about the messages in it: the receipts that their consumer can return.

The header has a start offset and the messages' offsets per queue, as `mark queue value` joined by `;`. The mark is that
of pop_receipt.topic_type: an answer mixes messages of the topic and of its retry topics.
"""

from __future__ import annotations

from collections.abc import Callable

from mqreplay.core.java import string_hash
from mqreplay.core.java_maps import hash_map_order
from mqreplay.core.parse_number import parse_int, parse_long
from mqreplay.core.pop_receipt import ReceiptHandle, split_extra_info
from mqreplay.errors import IllegalArgument

_CAPACITY = 4  # new HashMap<>(4)


def parse_start_offset_info(start_offset_info: str | None) -> dict[str, int] | None:
    """Return `mark@queue` -> start offset (messages), None for no text (ExtraInfoUtil#parseStartOffsetInfo).

    Raises IllegalArgument where an entry has not three fields or its queue is there twice, NumberFormat for no number.

    >>> parse_start_offset_info("0 2 5;1 0 9"), parse_start_offset_info("")
    ({'0@2': 5, '1@0': 9}, None)
    """
    return _numbers(start_offset_info, "startOffsetInfo", parse_long)


def parse_msg_offset_info(msg_offset_info: str | None) -> dict[str, list[int]] | None:
    """Return `mark@queue` -> offsets of the messages, None for no text (ExtraInfoUtil#parseMsgOffsetInfo).

    Raises as parse_start_offset_info does; the error has what was read before.

    >>> parse_msg_offset_info("0 2 5,6,8")
    {'0@2': [5, 6, 8]}
    """
    found: dict[str, list[int]] = {}
    for key, value in _entries(msg_offset_info):
        if value is None:
            raise IllegalArgument(f"parse msgOffsetMap error, {_map_text(found)}")
        if key in found:
            raise IllegalArgument(f"parse msgOffsetMap error, duplicate, {_map_text(found)}")
        found[key] = [parse_long(offset) for offset in _split(value, ",")]
    return found if msg_offset_info else None


def parse_order_count_info(order_count_info: str | None) -> dict[str, int] | None:
    """Return how often messages of an ordered group were consumed before (ExtraInfoUtil#parseOrderCountInfo).

    Keys are `mark@queue` for the least count in a queue, and `mark@qoQUEUE%OFFSET` for one message.
    Raises as parse_start_offset_info does.

    >>> parse_order_count_info("0 qo2%5 1;0 2 0")
    {'0@qo2%5': 1, '0@2': 0}
    """
    return _numbers(order_count_info, "orderCountInfo", parse_int)


def _numbers(text: str | None, name: str, parse: Callable[[str], int]) -> dict[str, int] | None:
    found: dict[str, int] = {}
    for key, value in _entries(text):
        if value is None:
            raise IllegalArgument(f"parse {name} error, {text}")
        if key in found:
            raise IllegalArgument(f"parse {name} error, duplicate, {text}")
        found[key] = parse(value)
    return found if text else None


def popped_receipts(
    start_offset_info: str | None,
    msg_offset_info: str | None,
    pop_time: int,
    invisible_time: int,
    revive_qid: int,
    broker_name: str,
) -> list[ReceiptHandle]:
    """Return the receipt of each message of a POP answer, in the order of its header; pop_time epoch ms.

    Follows MQClientAPIImpl#processPopResponse, which makes a message's POP_CK from these. A queue without a start
    offset is left out: the client has no receipt for its messages. invisible_time in ms. Raises as the parsers do.

    >>> [receipt[:1] + receipt[4:8] for receipt in popped_receipts("0 2 5", "0 2 5,7", 1000, 300, 1, "broker-a")]
    [(5, '0', 'broker-a', 2, 5), (5, '0', 'broker-a', 2, 7)]
    """
    starts = parse_start_offset_info(start_offset_info) or {}
    found = []
    for key, offsets in (parse_msg_offset_info(msg_offset_info) or {}).items():
        mark, _, queue = key.partition("@")
        if key in starts:
            found += [
                ReceiptHandle(
                    starts[key], pop_time, invisible_time, revive_qid, mark, broker_name, parse_int(queue), offset
                )
                for offset in offsets
            ]
    return found


def _entries(info: str | None) -> list[tuple[str, str | None]]:
    """(`mark@queue`, value) of each entry; the value is None where an entry has not three fields."""
    entries: list[tuple[str, str | None]] = []
    for entry in _split(info, ";") if info else []:
        fields = split_extra_info(entry)
        entries.append((f"{fields[0]}@{fields[1]}", fields[2]) if len(fields) == 3 else ("", None))
    return entries


def _split(text: str, separator: str) -> list[str]:
    """String#split: empty parts at the end are left out, a text without the separator is one part."""
    if separator not in text:
        return [text]
    stripped = text.rstrip(separator)
    return stripped.split(separator) if stripped else []


def _map_text(found: dict[str, list[int]]) -> str:
    """AbstractMap#toString of the HashMap."""
    keys = hash_map_order(found, string_hash, _CAPACITY)
    return "{" + ", ".join(f"{key}=[{', '.join(map(str, found[key]))}]" for key in keys) + "}"
