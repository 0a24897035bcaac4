"""consume_log and produce_log: messages consumed by listeners and sent by producers."""

from __future__ import annotations

from typing import Final

from mqreplay.decode.columns import PlainColumns
from mqreplay.decode.jsonl import read_object
from mqreplay.decode.kind import QUEUE, Kind, RecordingWays

CONSUME_COLUMNS: Final = {
    "ts": "timestamp_ms",
    "client_id": "string",
    "consumer_group": "string",
    "topic": "string",
    "queue_topic": "string",
    "broker_name": "string",
    "queue_id": "int",
    "queue_offset": "bigint",
    "commitlog_offset": "bigint",
    "store_size": "int",
    "msg_id": "string",
    "keys": "string",
    "tags": "string",
    "born_ts": "timestamp_ms",
    "store_ts": "timestamp_ms",
    "reconsume_times": "int",
    "status": "string",
    "orderly": "boolean",
    "origin_topic": "string",
    "origin_msg_id": "string",
}
CONSUME_REQUIRED: Final = (
    "ts",
    "client_id",
    "consumer_group",
    "topic",
    "broker_name",
    "queue_id",
    "queue_offset",
)
PRODUCE_COLUMNS: Final = {
    "ts": "timestamp_ms",
    "topic": "string",
    "broker_name": "string",
    "queue_id": "int",
    "queue_offset": "bigint",
    "key": "string",
    "tags": "string",
    "size": "int",
    "msg_id": "string",
    "offset_msg_id": "string",
    "send_status": "string",
    "error": "string",
    "properties": "string",
}
PRODUCE_REQUIRED: Final = ("ts", "topic")
CONSUME: Final = PlainColumns(CONSUME_COLUMNS, CONSUME_REQUIRED)
PRODUCE: Final = PlainColumns(PRODUCE_COLUMNS, PRODUCE_REQUIRED)


def decode_consume(line: bytes) -> dict[str, object]:
    """Return the columns of one line of consume_log: times in epoch ms, offsets in messages, sizes in bytes.

    ``topic`` is the message's own; ``queue_topic`` that of the queue it came from (%RETRY%group for a retry),
    on ``broker_name`` and ``queue_id``.

    Raises:
        DecodeError: see `mqreplay.decode.jsonl` and `PlainColumns.take`.

    >>> line = (b'{"ts":1795228808695,"client_id":"c","consumer_group":"g","topic":"t","broker_name":"b",'
    ...         b'"queue_id":0,"queue_offset":3,"status":"CONSUME_SUCCESS","orderly":false}')
    >>> decode_consume(line)["status"]
    'CONSUME_SUCCESS'
    """
    return CONSUME.take(read_object(line))


def decode_produce(line: bytes) -> dict[str, object]:
    """Return the columns of one line of produce_log: ``ts`` in epoch ms, ``size`` of the body in bytes.

    A failed send has an error, but neither queue nor ids. ``properties`` are in the form of the wire: each
    name, byte 1, value, byte 2 (MessageDecoder#messageProperties2String).

    Raises:
        DecodeError: see `mqreplay.decode.jsonl` and `PlainColumns.take`.

    >>> decode_produce(b'{"ts":1795228806536,"topic":"t","key":"t-0","error":"time-out"}')["error"]
    'time-out'
    """
    return PRODUCE.take(read_object(line))


OF_CONSUMERS: Final = "write consume_log.jsonl in a hook of the consumers (docs/recording.md)"
OF_PRODUCERS: Final = "write produce_log.jsonl in a hook of the producers (docs/recording.md)"
CONSUME_KIND: Final = Kind(
    stem="consume_log",
    table="silver.consume",
    label="consumed messages",
    decode=decode_consume,
    columns=CONSUME_COLUMNS,
    required=CONSUME_REQUIRED,
    plain=CONSUME,
    phrases=(
        "message {msg_id} at offset {queue_offset:,}",
        QUEUE,
        "{status}",
        "redelivery {reconsume_times}",
    ),
    recording=RecordingWays(OF_CONSUMERS, OF_CONSUMERS, importance=11),
)
PRODUCE_KIND: Final = Kind(
    stem="produce_log",
    table="silver.produce",
    label="sent messages",
    decode=decode_produce,
    columns=PRODUCE_COLUMNS,
    required=PRODUCE_REQUIRED,
    plain=PRODUCE,
    recording=RecordingWays(OF_PRODUCERS, OF_PRODUCERS, importance=12),
)
