"""pop_acks: a consumer of POP acknowledges messages, or changes the invisible time of one."""

from __future__ import annotations

import binascii
from base64 import b64decode
from collections.abc import Mapping
from typing import Any, Final

from mqreplay.core.java import INT_MAX, INT_MIN, LONG_MAX, LONG_MIN
from mqreplay.core.pop_receipt import parse_extra_info, real_topic
from mqreplay.decode.body import body_of, items_of
from mqreplay.decode.columns import PlainColumns, missing, one_of
from mqreplay.decode.fastjson_text import Key, Value
from mqreplay.decode.fields import int_field, object_of, text_field, wrong_type
from mqreplay.decode.jsonl import read_object
from mqreplay.decode.kind import Kind
from mqreplay.words.errors import DecodeError, IllegalArgument, NumberFormat

_PLAIN: Final = PlainColumns(
    """
    ts timestamp_ms not null, response_ts timestamp_ms, kind string not null, client_id string, broker_name string,
    broker_addr string, broker_id bigint, invisible_time_ms bigint, response_code int, response_name string,
    remark string, pop_ts timestamp_ms, answer_invisible_time_ms bigint, revive_queue_id int, error string
    """
)
_RECEIPT: Final = (
    "consumer_group:string,topic:string,queue_id:int,queue_offset:bigint,pop_ts:bigint,invisible_time_ms:bigint,"
    "revive_queue_id:int"
)
COLUMNS: Final = {**_PLAIN.types, "receipts": f"array<struct<{_RECEIPT}>>"}
KINDS_OF_REQUEST: Final = ("ACK", "BATCH_ACK", "CHANGE_INVISIBLE_TIME")
MOST_RECEIPTS: Final = 100_000  # of a request: a bit set names many in few bytes
_SINGLE: Final = PlainColumns(
    """
    consumer_group string not null, topic string not null, queue_offset bigint not null, extra_info string not null
    """
)
Receipt = tuple[object, ...]


def decode_pop_ack(line: bytes) -> dict[str, object]:
    """Return the columns of one line of pop_acks: times in epoch ms, durations in ms, offsets in messages.

    ``receipts`` are the messages, each with the topic that holds it: its own or a retry topic. ``pop_ts`` and
    ``answer_invisible_time_ms`` of a changed invisible time are in the new receipt. Source: AckMessageRequestHeader,
    BatchAck, ChangeInvisibleTimeRequestHeader, ChangeInvisibleTimeResponseHeader.

    Raises:
        DecodeError: unknown_kind, missing_field, bad_receipt, and those of `mqreplay.decode.jsonl`, `body_of` and
            `PlainColumns.take`.

    >>> line = (b'{"ts":1795228808477,"kind":"ACK","consumer_group":"g","topic":"t","queue_offset":6,'
    ...         b'"extra_info":"5 1795228808000 60000 3 0 b 2 6"}')
    >>> decode_pop_ack(line)["receipts"]
    [('g', 't', 2, 6, 1795228808000, 60000, 3)]
    >>> body = b'{"acks":[{"b":"BQ==","c":"g","it":60000,"pt":1795228808000,"q":2,"r":"0","rq":3,"so":5,"t":"t"}]}'
    >>> batch = decode_pop_ack(b'{"ts":1795228808477,"kind":"BATCH_ACK","body":' + body + b"}")
    >>> [receipt[3] for receipt in batch["receipts"]]
    [5, 7]
    """
    record = read_object(line)
    ack = _PLAIN.take(record)
    if one_of("kind", ack["kind"], KINDS_OF_REQUEST) == "BATCH_ACK":
        body = body_of(record, "body")
        if body is None:
            raise missing("body")
        ack["receipts"] = _batch(body)
    else:
        ack["receipts"] = [_single(record)]
    return ack


def _single(record: Mapping[str, Any]) -> Receipt:
    fields = _SINGLE.take(record)
    try:
        handle = parse_extra_info(str(fields["extra_info"]))
    except (IllegalArgument, NumberFormat) as error:
        raise DecodeError("bad_receipt", f"extra_info: {error}") from None
    place = (fields["consumer_group"], fields["topic"], handle.queue_id, fields["queue_offset"])
    return (*place, handle.retrieve_time, handle.invisible_time, handle.revive_queue_id)


def _batch(body: Mapping[Key, Value]) -> list[Receipt]:
    """BatchAckMessageRequestBody: the messages of one queue and POP that have their bit set."""
    receipts = list[Receipt]()
    for item in items_of(body, "acks"):
        ack = object_of(item, "acks")
        group, topic, mark = (_text(ack, *names) for names in (("c", "consumerGroup"), ("t", "topic"), ("r", "retry")))
        start, popped, invisible = (
            _number(ack, *names) for names in (("so", "startOffset"), ("pt", "popTime"), ("it", "invisibleTime"))
        )
        queue_id, revive = (
            int_field(ack, _name(ack, *names), 0, INT_MIN, INT_MAX)
            for names in (("q", "queueId"), ("rq", "reviveQueueId"))
        )
        held = real_topic(mark, topic, group)
        for index in _bits(_text(ack, "b", "bitSet")):
            if start + index > LONG_MAX or len(receipts) >= MOST_RECEIPTS:
                raise DecodeError("bad_receipt", f"an offset is no long, or more than {MOST_RECEIPTS} receipts")
            receipts.append((group, held, queue_id, start + index, popped, invisible, revive))
    return receipts


def _bits(text: str) -> list[int]:
    """The bits of a BitSet#toByteArray in base 64, the lowest first."""
    try:
        data = b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise wrong_type("b", "a bit set in base 64", text) from None
    if len(data) * 8 > MOST_RECEIPTS:
        raise DecodeError("bad_receipt", f"a bit set of {len(data)} bytes")
    return [place * 8 + bit for place, byte in enumerate(data) for bit in range(8) if byte >> bit & 1]


def _name(ack: Mapping[Key, Value], short: str, full: str) -> str:
    return short if short in ack else full


def _text(ack: Mapping[Key, Value], short: str, full: str) -> str:
    value = text_field(ack, _name(ack, short, full), None)
    if value is None:
        raise missing(short)
    return value


def _number(ack: Mapping[Key, Value], short: str, full: str) -> int:
    return int_field(ack, _name(ack, short, full), 0, LONG_MIN, LONG_MAX)


KIND: Final = Kind(
    stem="pop_acks",
    table="silver.pop_ack",
    label="acknowledgements of POP",
    decode=decode_pop_ack,
    columns=COLUMNS,
    required=_PLAIN.required,
)
