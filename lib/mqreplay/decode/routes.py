"""routes: answers to GET_ROUTEINFO_BY_TOPIC, the queues of a topic that a name server knows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from mqreplay.decode.body import body_of, broker_addrs_of, items_of
from mqreplay.decode.columns import PlainColumns, missing
from mqreplay.decode.fastjson_text import Key, Value
from mqreplay.decode.fields import int_field, object_of, text_field
from mqreplay.decode.jsonl import read_object
from mqreplay.decode.kind import AGAIN, RECORD, Kind, RecordingWays

_PLAIN: Final = PlainColumns(
    """
    ts timestamp_ms not null, response_ts timestamp_ms, previous_ts timestamp_ms, client_id string,
    topic string not null, namesrv_addr string, response_code int, remark string, error string
    """
)
COLUMNS: Final = {
    **_PLAIN.types,
    "queue_datas": (
        "array<struct<broker_name:string,read_queue_nums:int,write_queue_nums:int,perm:int,topic_sys_flag:int>>"
    ),
    "broker_datas": "array<struct<broker_name:string,broker_addrs:map<bigint,string>>>",
    "queue_mappings": "array<struct<broker_name:string,scope:string,total_queues:int>>",
}


def decode_route(line: bytes) -> dict[str, object]:
    """Return the columns of one line of routes; times in epoch ms.

    ``queue_datas`` and ``broker_datas`` are in the body's order, and None without a body (an error, or a topic
    that the name server does not know). ``queue_mappings`` has the logical queues of a static topic (5.x), None for
    other topics. Source: TopicRouteData, QueueData, BrokerData, TopicQueueMappingInfo.

    Raises:
        DecodeError: see `mqreplay.decode.jsonl`, `body_of` and `PlainColumns.take`.

    >>> line = (b'{"ts":1795228806536,"topic":"t","body":{"queueDatas":[{"brokerName":"b","readQueueNums":4,'
    ...         b'"writeQueueNums":4,"perm":6}],"brokerDatas":[{"brokerName":"b","brokerAddrs":{"0":"h"}}]}}')
    >>> route = decode_route(line)
    >>> route["queue_datas"], route["broker_datas"]
    ([('b', 4, 4, 6, 0)], [('b', {0: 'h'})])
    """
    record = read_object(line)
    route = _PLAIN.take(record)
    body = body_of(record, "body")
    if body is None:
        route["queue_datas"] = route["broker_datas"] = route["queue_mappings"] = None
        return route
    queues, brokers = items_of(body, "queueDatas"), items_of(body, "brokerDatas")
    route["queue_datas"] = [_queue_data(object_of(data, "queueDatas")) for data in queues]
    route["broker_datas"] = [_broker_data(object_of(data, "brokerDatas")) for data in brokers]
    mappings = object_of(body.get("topicQueueMappingByBroker") or {}, "topicQueueMappingByBroker")
    route["queue_mappings"] = [_queue_mapping(name, data) for name, data in mappings.items()] or None
    return route


def _broker_name(data: Mapping[Key, Value]) -> str:
    name = text_field(data, "brokerName", None)
    if name is None:
        raise missing("brokerName")
    return name


def _queue_mapping(name: Key, value: Value) -> tuple[str, str | None, int]:
    data = object_of(value, "topicQueueMappingByBroker")
    return str(name), text_field(data, "scope", None), int_field(data, "totalQueues", 0)


def _broker_data(data: Mapping[Key, Value]) -> tuple[str, dict[int, str]]:
    return _broker_name(data), broker_addrs_of(data.get("brokerAddrs"), "brokerAddrs")


def _queue_data(data: Mapping[Key, Value]) -> tuple[str, int, int, int, int]:
    for name in ("readQueueNums", "writeQueueNums", "perm"):
        if data.get(name) is None:
            raise missing(name)
    # Older versions write topicSynFlag.
    flag = "topicSysFlag" if "topicSysFlag" in data else "topicSynFlag"
    return (
        _broker_name(data),
        int_field(data, "readQueueNums", 0),
        int_field(data, "writeQueueNums", 0),
        int_field(data, "perm", 0),
        int_field(data, flag, 0),
    )


KIND: Final = Kind(
    stem="routes",
    table="silver.route",
    label="routes of the topics",
    decode=decode_route,
    columns=COLUMNS,
    required=_PLAIN.required,
    recording=RecordingWays(AGAIN, RECORD, importance=6),
)
