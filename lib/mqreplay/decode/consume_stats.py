"""consume_stats: answers to GET_CONSUME_STATS, offsets of a group and ends of its queues on one broker."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from mqreplay.core.java import LONG_MAX, LONG_MIN
from mqreplay.decode.body import answer_of
from mqreplay.decode.columns import PlainColumns, instant_field, missing
from mqreplay.decode.fastjson_text import Key, Value
from mqreplay.decode.fields import int_field, object_of, wrong_type
from mqreplay.decode.jsonl import read_object
from mqreplay.decode.kind import Kind
from mqreplay.decode.message_queue import MessageQueue, keyed_by_queue

_PLAIN: Final = PlainColumns(
    """
    ts timestamp_ms not null, response_ts timestamp_ms, broker_name string, broker_id bigint,
    consumer_group string not null, response_code int, remark string, error string
    """
)
COLUMNS: Final = {
    **_PLAIN.types,
    "consume_tps": "double",
    "offsets": (
        "array<struct<topic:string,broker_name:string,queue_id:int,broker_offset:bigint,consumer_offset:bigint,"
        "last_timestamp:bigint>>"
    ),
    "unheld": "array<struct<topic:string,broker_name:string,queue_id:int>>",
}
_QUEUE: Final = PlainColumns("topic string not null, broker_name string not null, queue_id int not null")


def decode_consume_stats(line: bytes) -> dict[str, object]:
    """Return the columns of one line of consume_stats: times in epoch ms, offsets in messages, consume_tps per second.

    ``offsets`` has a tuple a queue, its fields as `COLUMNS` names them, in the body's order; None where there is no
    body. ``last_timestamp`` is when the message at the group's offset was stored, None if unknown. ``unheld`` are the
    queues that no client held by mqadmin, where it found clients of others; None: not known. Source: ConsumeStats,
    OffsetWrapper, ConsumerProgressSubCommand.

    Raises:
        DecodeError: see `mqreplay.decode.jsonl`, `body_of` and `PlainColumns.take`.

    >>> line = (b'{"ts":1795228830217,"consumer_group":"g","body":"{\\\\"consumeTps\\\\":17.5,\\\\"offsetTable\\\\":'
    ...         b'{{\\\\"brokerName\\\\":\\\\"b\\\\",\\\\"queueId\\\\":1,\\\\"topic\\\\":\\\\"t\\\\"}:'
    ...         b'{\\\\"brokerOffset\\\\":9,\\\\"consumerOffset\\\\":7,\\\\"lastTimestamp\\\\":0}}}"}')
    >>> stats = decode_consume_stats(line)
    >>> stats["consume_tps"], stats["offsets"]
    (17.5, [('t', 'b', 1, 9, 7, None)])
    """
    record = read_object(line)
    stats: dict[str, object] = {"consume_tps": None, "offsets": None, "unheld": None} | _PLAIN.take(record)
    unheld = record.get("unheld")
    if unheld is not None:
        if not isinstance(unheld, list) or not all(isinstance(queue, dict) for queue in unheld):
            raise wrong_type("unheld", "a list of objects", unheld)
        stats["unheld"] = [tuple(_QUEUE.take(queue)[name] for name in _QUEUE.types) for queue in unheld]
    body = answer_of(record)
    if body is None:
        return stats
    stats["consume_tps"] = _number(body, "consumeTps")
    table = body.get("offsetTable")
    if table is None:
        raise missing("offsetTable in body")
    rows = keyed_by_queue(object_of(table, "offsetTable"), "offsetTable")
    stats["offsets"] = [_row(queue, object_of(value, "an offset of offsetTable")) for queue, value in rows]
    return stats


def _row(queue: MessageQueue, offset: Mapping[Key, Value]) -> tuple[str, str, int, int, int, int | None]:
    for name in ("brokerOffset", "consumerOffset"):
        if offset.get(name) is None:
            raise missing(name)
    stored = instant_field(offset, "lastTimestamp", 0)
    return (
        *queue,
        int_field(offset, "brokerOffset", 0, LONG_MIN, LONG_MAX),
        int_field(offset, "consumerOffset", 0, LONG_MIN, LONG_MAX),
        stored if stored > 0 else None,
    )


def _number(body: Mapping[Key, Value], name: str) -> float | None:
    value = body.get(name)
    if value is None:
        return None
    if type(value) not in (int, float) or not abs(value) < 1e300:  # type: ignore[arg-type]
        raise wrong_type(name, "a number", value)
    return float(value)  # type: ignore[arg-type]


KIND: Final = Kind(
    stem="consume_stats",
    table="silver.consume_stats",
    label="offsets and ends of the groups' queues",
    decode=decode_consume_stats,
    columns=COLUMNS,
    required=_PLAIN.required,
    by_recorder=True,
    phrases=("offsets and ends of {offsets}", "error: {error}"),
)
