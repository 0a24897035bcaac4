"""Receipt handles: what a consumer returns to acknowledge a message from POP, or to change its invisible time.

Remoting clients call it POP_CK (ExtraInfoUtil): seven fields for all messages of a queue in an answer, or eight with
the message's offset. gRPC clients get nine (ReceiptHandle). Fields are separated by single spaces. Times in epoch ms,
invisible times in ms, offsets in messages.
"""

from __future__ import annotations

from typing import NamedTuple

from mqreplay.core.java import to_long
from mqreplay.core.parse_number import parse_int, parse_long
from mqreplay.core.pop_retry_topic import build_pop_retry_topic, is_pop_retry_topic_v2
from mqreplay.core.retry_topic import is_retry_topic
from mqreplay.errors import IllegalArgument

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
    >>> parse_extra_info("5 1000")
    Traceback (most recent call last):
    mqreplay.errors.IllegalArgument: java.lang.IllegalArgumentException: getInvisibleTime fail, extraInfoStrs length 2
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
