"""flow_controls: pulls that flow control held back, as clients log them (DefaultMQPushConsumerImpl#pullMessage)."""

from __future__ import annotations

from typing import Final

from mqreplay.decode.columns import PlainColumns, one_of
from mqreplay.decode.jsonl import read_object
from mqreplay.decode.kind import QUEUE_PHRASE, Kind

_PLAIN: Final = PlainColumns(
    """
    ts timestamp_ms not null, client_id string not null, consumer_group string not null, topic string not null,
    broker_name string not null, queue_id int not null, flow_control string not null, threshold bigint,
    min_offset bigint not null, max_offset bigint not null, cached_msgs bigint, cached_mib bigint, times bigint,
    source string
    """
)
LIMITS: Final = ("count", "size", "span")


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
    columns=_PLAIN.types,
    required=_PLAIN.required,
    phrases=("flow control by {flow_control}", QUEUE_PHRASE, "{cached_msgs:,} messages cached"),
)
