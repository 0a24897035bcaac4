"""Receipt handles: what a consumer returns to acknowledge a message from POP, or to change its invisible time.

Remoting clients call it POP_CK (ExtraInfoUtil): seven fields for all messages of a queue in an answer, or eight with
the message's offset. gRPC clients get nine (ReceiptHandle). Fields are separated by single spaces. Times in epoch ms,
invisible times in ms, offsets in messages.

The header of a POP answer says which receipts its consumer can return: it has a start offset and the messages' offsets
per queue, as `mark queue value` joined by `;`. The mark is that of `topic_type`: an answer mixes messages of the topic
and of its retry topics.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from mqreplay.core.java import string_hash, to_long
from mqreplay.core.java_maps import hash_map_order
from mqreplay.core.java_numbers import parse_int, parse_long
from mqreplay.core.retry_topic import build_pop_retry_topic, is_pop_retry_topic_v2, is_retry_topic
from mqreplay.words.errors import IllegalArgument

NORMAL_TOPIC = "0"
RETRY_TOPIC = "1"
RETRY_TOPIC_V2 = "2"
ORDER_REVIVE_QUEUE = 999  # KeyBuilder.POP_ORDER_REVIVE_QUEUE: the receipt of an ordered group, which has no checkpoint
NO_COMMIT_LOG_OFFSET = -1
# The getters of ExtraInfoUtil, in the order of the fields that they read.
_GETTERS = (
    "getCkQueueOffset",
    "getPopTime",
    "getInvisibleTime",
    "getReviveQid",
    "getRetry",
    "getBrokerName",
    "getQueueId",
    "getQueueOffset",
)
_CAPACITY = 4  # new HashMap<>(4)


class ReceiptHandle(NamedTuple):
    """One receipt. ``start_offset`` (messages): the first offset of its checkpoint, which is that of a queue's answer.

    ``topic_type`` says from which topic the message came: "0" its own, "1" or "2" a retry topic of that version.
    ``offset`` is None in a handle of seven fields; ``commit_log_offset`` (bytes) is -1 except in one of nine.
    """

    start_offset: int
    retrieve_time: int
    invisible_time: int
    revive_queue_id: int
    topic_type: str
    broker_name: str
    queue_id: int
    offset: int | None
    commit_log_offset: int = NO_COMMIT_LOG_OFFSET

    @property
    def next_visible_time(self) -> int:
        """When the message is due again if it is not acknowledged, epoch ms (ReceiptHandle#getNextVisibleTime).

        >>> decode_receipt_handle("5 1000 300 7 0 broker-a 2 6").next_visible_time
        1300
        """
        return to_long(self.retrieve_time + self.invisible_time)

    @property
    def is_order(self) -> bool:
        """Whether the message was consumed in order (ExtraInfoUtil#isOrder).

        >>> decode_receipt_handle("5 1000 300 999 0 broker-a 2 6").is_order
        True
        """
        return self.revive_queue_id == ORDER_REVIVE_QUEUE


def decode_receipt_handle(receipt_handle: str) -> ReceiptHandle:
    """Return the receipt of a handle with eight or nine fields (ReceiptHandle#decode); more are ignored.

    Raises IllegalArgument where there are fewer, NumberFormat where one is no number.

    >>> decode_receipt_handle("5 1000 300 7 1 broker-a 2 6 4096")[3:]
    (7, '1', 'broker-a', 2, 6, 4096)
    """
    fields = split_extra_info(receipt_handle)
    if len(fields) < len(_GETTERS):
        raise IllegalArgument(f"Parse failed, dataList size {len(fields)}")
    return ReceiptHandle(
        *_seven_fields(fields),
        offset=parse_long(fields[7]),
        commit_log_offset=parse_long(fields[8]) if len(fields) > len(_GETTERS) else NO_COMMIT_LOG_OFFSET,
    )


def encode_receipt_handle(handle: ReceiptHandle) -> str:
    """Return a receipt as a handle of nine fields, as proxies give it to gRPC clients (ReceiptHandle#encode).

    >>> encode_receipt_handle(decode_receipt_handle("5 1000 300 7 0 broker-a 2 6"))
    '5 1000 300 7 0 broker-a 2 6 -1'
    """
    return " ".join(map(str, handle))


def parse_extra_info(extra_info: str | None) -> ReceiptHandle:
    """Return the receipt of a handle with seven or more fields, as the broker reads it from a request's extraInfo.

    Follows ExtraInfoUtil#split, #getCkQueueOffset, #getPopTime, #getInvisibleTime, #getReviveQid, #getRetry,
    #getBrokerName, #getQueueId and #getQueueOffset. Raises IllegalArgument with the getter of the first field that is
    missing, NumberFormat where a field before it is no number.

    >>> parse_extra_info("5 1000 300 7 0 broker-a 2").offset is None
    True
    >>> parse_extra_info("5 1000")  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    IllegalArgument: java.lang.IllegalArgumentException: getInvisibleTime fail, extraInfoStrs length 2
    """
    if extra_info is None:
        raise IllegalArgument("split extraInfo is null")
    fields = split_extra_info(extra_info)
    return ReceiptHandle(*_seven_fields(fields), offset=parse_long(fields[7]) if len(fields) >= len(_GETTERS) else None)


def build_extra_info(handle: ReceiptHandle) -> str:
    """Return a receipt as POP_CK, with eight fields or without an offset seven (ExtraInfoUtil#buildExtraInfo).

    >>> build_extra_info(parse_extra_info("5 1000 300 7 0 broker-a 2 6 4096"))
    '5 1000 300 7 0 broker-a 2 6'
    """
    return " ".join(map(str, handle[:7] if handle.offset is None else handle[:8]))


def topic_type(topic: str) -> str:
    """Return the mark of a topic in handles and answers: "0" normal, "1" and "2" retry (ExtraInfoUtil#getRetry).

    >>> topic_type("T"), topic_type("%RETRY%g_T"), topic_type("%RETRY%g+T")
    ('0', '1', '2')
    """
    if is_pop_retry_topic_v2(topic):
        return RETRY_TOPIC_V2
    return RETRY_TOPIC if is_retry_topic(topic) else NORMAL_TOPIC


def real_topic(topic_type: str, topic: str, group_name: str) -> str:
    """Return the topic that holds the message of a receipt (ReceiptHandle#getRealTopic).

    Any other mark than "1" and "2" is a normal topic.

    >>> real_topic("0", "T", "g"), real_topic("1", "T", "g"), real_topic("2", "T", "g")
    ('T', '%RETRY%g_T', '%RETRY%g+T')
    """
    if topic_type in (RETRY_TOPIC, RETRY_TOPIC_V2):
        return build_pop_retry_topic(topic, group_name, topic_type == RETRY_TOPIC_V2)
    return topic


def split_extra_info(extra_info: str) -> list[str]:
    """Return the fields of a handle as Java splits them: empty ones at the end are left out (ExtraInfoUtil#split).

    >>> split_extra_info("1  2 "), split_extra_info(""), split_extra_info(" ")
    (['1', '', '2'], [''], [])
    """
    if " " not in extra_info:
        return [extra_info]
    stripped = extra_info.rstrip(" ")
    return stripped.split(" ") if stripped else []


def _seven_fields(fields: list[str]) -> tuple[int, int, int, int, str, str, int]:
    def field(index: int) -> str:
        if index >= len(fields):
            raise IllegalArgument(f"{_GETTERS[index]} fail, extraInfoStrs length {len(fields)}")
        return fields[index]

    return (
        parse_long(field(0)),
        parse_long(field(1)),
        parse_long(field(2)),
        parse_int(field(3)),
        field(4),
        field(5),
        parse_int(field(6)),
    )


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
    offsets: dict[str, list[int]] = {}
    for key, value in _entries(msg_offset_info):
        if value is None:
            raise IllegalArgument(f"parse msgOffsetMap error, {_map_text(offsets)}")
        if key in offsets:
            raise IllegalArgument(f"parse msgOffsetMap error, duplicate, {_map_text(offsets)}")
        offsets[key] = [parse_long(offset) for offset in _split(value, ",")]
    return offsets if msg_offset_info else None


def parse_order_count_info(order_count_info: str | None) -> dict[str, int] | None:
    """Return how often messages of an ordered group were consumed before (ExtraInfoUtil#parseOrderCountInfo).

    Keys are `mark@queue` for the least count in a queue, and `mark@qoQUEUE%OFFSET` for one message.
    Raises as parse_start_offset_info does.

    >>> parse_order_count_info("0 qo2%5 1;0 2 0")
    {'0@qo2%5': 1, '0@2': 0}
    """
    return _numbers(order_count_info, "orderCountInfo", parse_int)


def _numbers(text: str | None, name: str, parse: Callable[[str], int]) -> dict[str, int] | None:
    numbers: dict[str, int] = {}
    for key, value in _entries(text):
        if value is None:
            raise IllegalArgument(f"parse {name} error, {text}")
        if key in numbers:
            raise IllegalArgument(f"parse {name} error, duplicate, {text}")
        numbers[key] = parse(value)
    return numbers if text else None


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
    receipts = []
    for key, offsets in (parse_msg_offset_info(msg_offset_info) or {}).items():
        mark, _, queue = key.partition("@")
        if key in starts:
            receipts += [
                ReceiptHandle(
                    starts[key], pop_time, invisible_time, revive_qid, mark, broker_name, parse_int(queue), offset
                )
                for offset in offsets
            ]
    return receipts


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


def _map_text(offsets: dict[str, list[int]]) -> str:
    """AbstractMap#toString of the HashMap."""
    keys = hash_map_order(offsets, string_hash, _CAPACITY)
    return "{" + ", ".join(f"{key}=[{', '.join(map(str, offsets[key]))}]" for key in keys) + "}"
