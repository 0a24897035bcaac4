"""heartbeats: HEART_BEAT with its HeartbeatData, UNREGISTER_CLIENT with its header, and ends of connections."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from mqreplay.decode.body import body_of, items_of
from mqreplay.decode.columns import PlainColumns, missing, one_of, source_of
from mqreplay.decode.fastjson_text import Key, Value
from mqreplay.decode.fields import bool_field, object_of, text_field
from mqreplay.decode.jsonl import read_object
from mqreplay.decode.kind import BROKER_LOG_ADVICE, RECORD, Kind, RecordingWays
from mqreplay.decode.subscriptions import SUBSCRIPTIONS, subscriptions_of

_PLAIN: Final = PlainColumns(
    """
    ts timestamp_ms not null, response_ts timestamp_ms, heard_ts timestamp_ms, kind string not null,
    client_id string not null, broker_name string, broker_addr string, broker_id bigint, mode string,
    response_code int, error string, source string, language string
    """
)
COLUMNS: Final = {
    **_PLAIN.types,
    "consumer_group": "string",
    "producer_group": "string",
    "closed_group": "string",
    "consumers": (
        "array<struct<group_name:string,consume_type:string,message_model:string,consume_from_where:string,"
        f"unit_mode:boolean,subscriptions:{SUBSCRIPTIONS}>>"
    ),
    "producer_groups": "array<string>",
}
# The last is no request: a broker removed a client from a group because its connection closed, or 120 s passed without
# a heartbeat (ConsumerManager#doChannelCloseEvent, #scanNotActiveChannel).
KINDS_OF_REQUEST: Final = ("HEART_BEAT", "UNREGISTER_CLIENT", "CHANNEL_CLOSE")
SOURCES: Final = ("heartbeat", "broker_log", "client_log")  # the first one is the default


def decode_heartbeat(line: bytes) -> dict[str, object]:
    """Return the columns of one line of heartbeats; times in epoch ms.

    ``consumers`` and ``producer_groups`` are what a HEART_BEAT announces (None without a body); ``consumer_group`` and
    ``producer_group`` what an UNREGISTER_CLIENT removes. ``closed_group`` is the consumer group that the client of a
    CHANNEL_CLOSE was in, and ``heard_ts`` its last heartbeat, if the broker named it. ``source`` is who recorded it.
    A 5.x client with useHeartbeatV2 sends its subscriptions once, and then bodies ``withoutSub``: the subscriptions of
    these are None.
    Source: HeartbeatData, ConsumerData, SubscriptionData, ProducerData, MQClientInstance#prepareHeartbeatData.

    Raises:
        DecodeError: unknown_kind, missing_field, wrong_type, and those of `mqreplay.decode.jsonl` and
            `PlainColumns.take`.

    >>> line = (b'{"ts":1795228807566,"kind":"HEART_BEAT","client_id":"c","body":{"clientID":"c",'
    ...         b'"consumerDataSet":[{"groupName":"g","messageModel":"CLUSTERING","subscriptionDataSet":'
    ...         b'[{"topic":"t","subString":"*","expressionType":"TAG","subVersion":5}]}],'
    ...         b'"producerDataSet":[{"groupName":"p"}]}}')
    >>> beat = decode_heartbeat(line)
    >>> beat["consumers"], beat["producer_groups"]
    ([('g', None, 'CLUSTERING', None, False, [('t', '*', 'TAG', 5)])], ['p'])
    >>> line = (b'{"ts":1795228837566,"kind":"HEART_BEAT","client_id":"c","body":{"clientID":"c","withoutSub":true,'
    ...         b'"consumerDataSet":[{"groupName":"g","messageModel":"CLUSTERING","subscriptionDataSet":[]}]}}')
    >>> decode_heartbeat(line)["consumers"]
    [('g', None, 'CLUSTERING', None, False, None)]
    """
    record = read_object(line)
    beat = _PLAIN.take(record)
    beat["source"] = source_of(record, SOURCES)
    kind = one_of("kind", beat["kind"], KINDS_OF_REQUEST)
    header = (body_of(record, "header") if kind != "HEART_BEAT" else None) or {}
    closed = kind == "CHANNEL_CLOSE"
    beat["consumer_group"] = None if closed else text_field(header, "consumerGroup", None)
    beat["producer_group"] = None if closed else text_field(header, "producerGroup", None)
    beat["closed_group"] = text_field(header, "consumerGroup", None) if closed else None
    body = body_of(record, "body") if kind == "HEART_BEAT" else None
    if body is None:
        beat["consumers"] = beat["producer_groups"] = None
        return beat
    listed = not bool_field(body, "withoutSub", False)
    beat["consumers"] = [
        _consumer(object_of(data, "consumerDataSet"), listed) for data in items_of(body, "consumerDataSet")
    ]
    beat["producer_groups"] = [
        _group_name(object_of(data, "producerDataSet")) for data in items_of(body, "producerDataSet")
    ]
    return beat


def _group_name(data: Mapping[Key, Value]) -> str:
    name = text_field(data, "groupName", None)
    if name is None:
        raise missing("groupName")
    return name


def _consumer(data: Mapping[Key, Value], listed: bool) -> tuple[object, ...]:
    """Return a ConsumerData; ``listed``: the heartbeat lists its subscriptions."""
    return (
        _group_name(data),
        text_field(data, "consumeType", None),
        text_field(data, "messageModel", None),
        text_field(data, "consumeFromWhere", None),
        bool_field(data, "unitMode", False),
        subscriptions_of(items_of(data, "subscriptionDataSet"), "subscriptionDataSet") if listed else None,
    )


KIND: Final = Kind(
    stem="heartbeats",
    table="silver.heartbeat",
    label="heartbeats and unregistrations",
    decode=decode_heartbeat,
    columns=COLUMNS,
    required=_PLAIN.required,
    renamed={
        "consumers": "consumer_data_set",
        "consumer_group": "unregistered_consumer_group",
        "producer_group": "unregistered_producer_group",
        "closed_group": "closed_consumer_group",
    },
    phrases=(
        "{kind} to {broker_name}-{broker_id}",
        "{consumer_data_set}",
        "group {closed_consumer_group}",
        "last heartbeat {heard_ts}",
        "error: {error}",
    ),
    recording=RecordingWays(BROKER_LOG_ADVICE, RECORD, BROKER_LOG_ADVICE, importance=5),
)
