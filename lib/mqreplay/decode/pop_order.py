"""consumerOrderInfo.json of a broker of 5.x: what groups that consume by POP in order last got from each queue."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from mqreplay.core.java import INT_MAX, INT_MIN, LONG_MAX, LONG_MIN
from mqreplay.decode.fastjson_text import Key, Value, read_fastjson
from mqreplay.decode.fields import bare_int, int_field, object_of, table_of, text_field, wrong_type
from mqreplay.decode.kind import QUEUE_PHRASE, FileKind
from mqreplay.words.errors import DecodeError

SEPARATOR: Final = "@"  # ConsumerOrderInfoManager#buildKey


class OffsetTime(NamedTuple):
    """When a message is visible again (epoch ms), where a client changed it."""

    offset: int
    time: int


class OffsetCount(NamedTuple):
    """How often a message was delivered before."""

    offset: int
    times: int


class PopOrder(NamedTuple):
    """The record of one queue, as stored; the fields are those of core.pop_order.OrderInfo."""

    topic: str
    consumer_group: str
    queue_id: int
    attempt_id: str | None
    pop_time: int
    invisible_time: int | None
    offset_list: tuple[int, ...] | None
    offset_next_visible_time: tuple[OffsetTime, ...] | None
    offset_consumed_count: tuple[OffsetCount, ...] | None
    last_consume_timestamp: int
    commit_offset_bit: int


def decode_pop_order(data: bytes) -> list[PopOrder]:
    """Return the records in the bytes of a consumerOrderInfo.json, in the order written.

    An absent field has the default of RocketMQ's class. Source: ConsumerOrderInfoManager#encode, OrderInfo.

    Raises:
        DecodeError: torn, foreign, wrong_type, bad_number, bad_key and those of fastjson_text.

    >>> (row,) = decode_pop_order(b'{"table":{"t@g":{3:{"cm":1,"i":30000,"l":7,"o":[5,1],"popTime":7}}}}')
    >>> row.topic, row.consumer_group, row.queue_id, row.offset_list, row.commit_offset_bit
    ('t', 'g', 3, (5, 1), 1)
    """
    rows = []
    for key, queues in table_of(read_fastjson(data), "table").items():
        if not isinstance(key, str) or key.count(SEPARATOR) != 1:
            raise DecodeError("bad_key", "topic@group is expected")
        topic, group = key.split(SEPARATOR)
        for number, value in object_of(queues, key).items():
            queue_id = bare_int(number, "a queue id")
            if queue_id > INT_MAX:
                raise DecodeError("bad_number", f"a queue id should be 0 to {INT_MAX}, and is {queue_id}")
            rows.append(_order_of(topic, group, queue_id, object_of(value, f"{key} {queue_id}")))
    return rows


def _order_of(topic: str, group: str, queue_id: int, fields: Mapping[Key, Value]) -> PopOrder:
    times, counts = _pairs(fields, "ot", LONG_MIN, LONG_MAX), _pairs(fields, "oc", INT_MIN, INT_MAX)
    return PopOrder(
        topic,
        group,
        queue_id,
        text_field(fields, "a", None),
        _long(fields, "popTime"),
        _long(fields, "i") if fields.get("i") is not None else None,
        _offsets(fields.get("o")),
        None if times is None else tuple(OffsetTime(*pair) for pair in times),
        None if counts is None else tuple(OffsetCount(*pair) for pair in counts),
        _long(fields, "l"),
        _long(fields, "cm"),
    )


def _long(fields: Mapping[Key, Value], name: str) -> int:
    return int_field(fields, name, 0, LONG_MIN, LONG_MAX)


def _offsets(value: Value) -> tuple[int, ...] | None:
    if value is None:
        return None
    if not isinstance(value, list):
        raise wrong_type("o", "a list", value)
    found = []
    for each in value:
        if type(each) is not int:
            raise wrong_type("an offset of o", "a whole number", each)
        if not LONG_MIN <= each <= LONG_MAX:
            raise DecodeError("bad_number", f"an offset of o should fit 64 bits, and is {each}")
        found.append(each)
    return tuple(found)


def _pairs(fields: Mapping[Key, Value], name: str, low: int, high: int) -> list[tuple[int, int]] | None:
    """Return the integers by offset of a map, in order of the offsets: Java's maps have none."""
    value = fields.get(name)
    if value is None:
        return None
    found = []
    for key, number in object_of(value, name).items():
        if type(number) is not int:
            raise wrong_type(f"a value of {name}", "a whole number", number)
        if not low <= number <= high:
            raise DecodeError("bad_number", f"a value of {name} should be {low} to {high}, and is {number}")
        found.append((bare_int(key, f"an offset of {name}"), number))
    return sorted(found)


KIND: Final = FileKind(
    stem="pop_orders",
    table="silver.pop_order",
    label="consumerOrderInfo.json",
    by_recorder=True,
    phrases=(
        QUEUE_PHRASE,
        "first offset and distances {offset_list}",
        "acknowledged bits {commit_offset_bit}",
        "{change}",
    ),
)
