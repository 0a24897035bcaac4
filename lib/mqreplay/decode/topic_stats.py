"""topic_stats: offsets of a topic's queues on one broker, from GET_TOPIC_STATS_INFO or single requests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from mqreplay.core.java import LONG_MAX, LONG_MIN
from mqreplay.decode.body import answer_of
from mqreplay.decode.columns import PlainColumns, instant_field, missing
from mqreplay.decode.fastjson_text import Key, Value
from mqreplay.decode.fields import int_field, object_of, wrong_type
from mqreplay.decode.jsonl import read_object
from mqreplay.decode.kind import AGAIN, RECORD, Kind, RecordingWays
from mqreplay.decode.message_queue import MessageQueue, keyed_by_queue

_PLAIN: Final = PlainColumns(
    """
    ts timestamp_ms not null, broker_name string, broker_id bigint, topic string not null, error string
    """
)
COLUMNS: Final = {
    **_PLAIN.types,
    "offsets": (
        "array<struct<topic:string,broker_name:string,queue_id:int,min_offset:bigint,max_offset:bigint,"
        "last_update_timestamp:bigint>>"
    ),
}
_ASKED: Final = PlainColumns("queue_id int not null, min_offset bigint, max_offset bigint")


def decode_topic_stats(line: bytes) -> dict[str, object]:
    """Return the columns of one line of topic_stats: times in epoch ms, offsets in messages.

    ``offsets`` has a tuple a queue, its fields as `COLUMNS` names them, in the order recorded; None where there is no
    answer. Of queues asked one by one (GET_MAX_OFFSET, GET_MIN_OFFSET) what was not asked is None.
    ``last_update_timestamp`` is 0 or -1 where there is none. Source: TopicStatsTable, TopicOffset.

    Raises:
        DecodeError: see `mqreplay.decode.jsonl`, `body_of` and `PlainColumns.take`.

    >>> line = (b'{"ts":1795228799803,"broker_name":"b","topic":"t","body":"{\\\\"offsetTable\\\\":'
    ...         b'{{\\\\"brokerName\\\\":\\\\"b\\\\",\\\\"queueId\\\\":1,\\\\"topic\\\\":\\\\"t\\\\"}:'
    ...         b'{\\\\"lastUpdateTimestamp\\\\":0,\\\\"maxOffset\\\\":9,\\\\"minOffset\\\\":2}}}"}')
    >>> decode_topic_stats(line)["offsets"]
    [('t', 'b', 1, 2, 9, 0)]
    """
    record = read_object(line)
    stats = _PLAIN.take(record)
    body = answer_of(record)
    if body is None:
        offsets = record.get("offsets")
        stats["offsets"] = None if offsets is None else _asked(offsets, stats["topic"], stats["broker_name"])
        return stats
    table = body.get("offsetTable")
    if table is None:
        raise missing("offsetTable in body")
    rows = keyed_by_queue(object_of(table, "offsetTable"), "offsetTable")
    stats["offsets"] = [_row(queue, object_of(value, "a topic offset")) for queue, value in rows]
    return stats


def _asked(offsets: object, topic: object, broker_name: object) -> list[tuple[object, ...]]:
    if not isinstance(offsets, list) or not all(isinstance(offset, dict) for offset in offsets):
        raise wrong_type("offsets", "a list of objects", offsets)
    taken = [_ASKED.take(offset) for offset in offsets]
    return [(topic, broker_name, one["queue_id"], one["min_offset"], one["max_offset"], None) for one in taken]


def _row(queue: MessageQueue, offset: Mapping[Key, Value]) -> tuple[str, str, int, int, int, int]:
    for name in ("minOffset", "maxOffset"):
        if offset.get(name) is None:
            raise missing(name)
    return (
        *queue,
        int_field(offset, "minOffset", 0, LONG_MIN, LONG_MAX),
        int_field(offset, "maxOffset", 0, LONG_MIN, LONG_MAX),
        instant_field(offset, "lastUpdateTimestamp", 0),
    )


KIND: Final = Kind(
    stem="topic_stats",
    table="silver.topic_stats",
    label="the end offsets of the queues",
    decode=decode_topic_stats,
    columns=COLUMNS,
    required=_PLAIN.required,
    by_recorder=True,
    recording=RecordingWays(AGAIN, RECORD, "import output of mqadmin topicStatus", importance=8),
)
