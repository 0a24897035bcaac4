"""pop_log: a POP_MESSAGE request of a client or proxy and its answer, with the receipt of each message."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from mqreplay.core.pop_receipt import popped_receipts
from mqreplay.decode.columns import PlainColumns
from mqreplay.decode.fastjson_text import Key, Value
from mqreplay.decode.fields import object_of, wrong_type
from mqreplay.decode.jsonl import read_object
from mqreplay.decode.kind import Kind
from mqreplay.words.errors import DecodeError, IllegalArgument, NumberFormat

_PLAIN: Final = PlainColumns(
    """
    request_ts timestamp_ms not null, response_ts timestamp_ms, client_id string, consumer_group string not null,
    topic string not null, broker_name string not null, broker_addr string, broker_id bigint, asked_queue_id int,
    max_msg_nums int, invisible_time_ms bigint, poll_time_ms bigint, init_mode int, is_order boolean,
    attempt_id string, expression string, expression_type string, response_code int, response_name string,
    remark string, pop_ts timestamp_ms, answer_invisible_time_ms bigint, revive_queue_id int, rest_num bigint,
    error string
    """
)
_RECEIPT: Final = "topic_type:string,queue_id:int,start_offset:bigint,queue_offset:bigint"
_MESSAGE: Final = "msg_id:string,reconsume_times:int,store_ts:bigint"
COLUMNS: Final = {**_PLAIN.types, "receipts": f"array<struct<{_RECEIPT},{_MESSAGE}>>"}
_INFO: Final = PlainColumns("start_offset_info string, msg_offset_info string")
_OF_MESSAGE: Final = PlainColumns(
    """
    topic_type string, queue_id int not null, queue_offset bigint not null, msg_id string, reconsume_times int,
    store_ts timestamp_ms
    """
)
Receipt = tuple[object, ...]


def decode_pop(line: bytes) -> dict[str, object]:
    """Return the columns of one line of pop_log: times in epoch ms, durations in ms, offsets in messages.

    ``receipts`` has each message that the answer's header names, None without an answer. Source:
    PopMessageRequestHeader, PopMessageResponseHeader, ExtraInfoUtil.

    Raises:
        DecodeError: bad_receipt, and those of `mqreplay.decode.jsonl` and `PlainColumns.take`.

    >>> line = (b'{"request_ts":1795228808477,"consumer_group":"g","topic":"t","broker_name":"b","response_code":0,'
    ...         b'"pop_ts":1795228808480,"answer_invisible_time_ms":60000,"revive_queue_id":3,'
    ...         b'"start_offset_info":"0 2 5","msg_offset_info":"0 2 5,6"}')
    >>> decode_pop(line)["receipts"][1][:4]
    ('0', 2, 5, 6)
    """
    record = read_object(line)
    pop = _PLAIN.take(record)
    info = _INFO.take(record)
    answered = pop["response_code"] is not None
    messages = record.get("messages") or []
    if not isinstance(messages, list):
        raise wrong_type("messages", "a list", messages)
    pop["receipts"] = _receipts(pop, info, messages) if answered else None
    return pop


def _receipts(pop: Mapping[str, object], info: Mapping[str, object], messages: list[Value]) -> list[Receipt]:
    start, offsets = (None if info[name] is None else str(info[name]) for name in _INFO.types)
    if offsets is None:
        return []
    by_place = {}
    for message in messages:
        fields = _OF_MESSAGE.take(_named(object_of(message, "messages")))
        by_place[fields["topic_type"], fields["queue_id"], fields["queue_offset"]] = fields
    try:
        # The receipts' own fields only: times and revive queue are the answer's.
        found = popped_receipts(start, offsets, 0, 0, 0, str(pop["broker_name"]))
    except (IllegalArgument, NumberFormat) as error:
        raise DecodeError("bad_receipt", f"start_offset_info or msg_offset_info: {error}") from None
    receipts = list[Receipt]()
    for receipt in found:
        if receipt.offset is None or not all(-(2**63) <= n < 2**63 for n in (receipt.start_offset, receipt.offset)):
            raise DecodeError("bad_receipt", "an offset of msg_offset_info is no long")
        known = by_place.get((receipt.topic_type, receipt.queue_id, receipt.offset), {})
        place = (receipt.topic_type, receipt.queue_id, receipt.start_offset, receipt.offset)
        receipts.append((*place, known.get("msg_id"), known.get("reconsume_times"), known.get("store_ts")))
    return receipts


def _named(message: Mapping[Key, Value]) -> dict[str, object]:
    if not all(isinstance(name, str) for name in message):
        raise wrong_type("messages", "objects with names", message)
    return {str(name): value for name, value in message.items()}


KIND: Final = Kind(
    stem="pop_log",
    table="silver.pop",
    label="requests of POP",
    decode=decode_pop,
    columns=COLUMNS,
    required=_PLAIN.required,
    time="request_ts",
)
