"""flow_controls: pulls that flow control held back, as clients log them (DefaultMQPushConsumerImpl#pullMessage)."""

from __future__ import annotations

from typing import Final

from mqreplay.decode.columns import PlainColumns, one_of
from mqreplay.decode.jsonl import read_object
from mqreplay.decode.kind import QUEUE, Kind

COLUMNS: Final = {
    "ts": "timestamp_ms",
    "client_id": "string",
    "consumer_group": "string",
    "topic": "string",
    "broker_name": "string",
    "queue_id": "int",
    "flow_control": "string",
    "threshold": "bigint",
    "min_offset": "bigint",
    "max_offset": "bigint",
    "cached_msgs": "bigint",
    "cached_mib": "bigint",
    "times": "bigint",
    "source": "string",
}
REQUIRED: Final = (
    *("ts", "client_id", "consumer_group", "topic", "broker_name", "queue_id", "flow_control"),
    *("min_offset", "max_offset"),
)
LIMITS: Final = ("count", "size", "span")
_PLAIN: Final = PlainColumns(COLUMNS, REQUIRED)


def decode_flow_control(line: bytes) -> dict[str, object]:
    """Return the columns of one line of flow_controls: time in epoch ms, offsets and counts in messages.

    Raises:
        DecodeError: unknown_kind, and those of `mqreplay.decode.jsonl` and `PlainColumns.take`.

    >>> line = (b'{"ts":1795228808333,"client_id":"c","consumer_group":"g","topic":"t","broker_name":"b","queue_id":2,'
    ...         b'"flow_control":"count","threshold":1000,"min_offset":5,"max_offset":1005,"cached_msgs":1001}')
    >>> decode_flow_control(line)["cached_msgs"]
    1001
    """
    controlled = _PLAIN.take(read_object(line))
    one_of("flow_control", controlled["flow_control"], LIMITS)
    return controlled


KIND: Final = Kind(
    stem="flow_controls",
    table="silver.flow_control",
    label="pulls that flow control held back",
    decode=decode_flow_control,
    columns=COLUMNS,
    required=REQUIRED,
    phrases=("flow control by {flow_control}", QUEUE, "{cached_msgs:,} messages cached"),
)
