"""consumer_connections, proxy_connections: answers to GET_CONSUMER_CONNECTION_LIST, the connected clients."""

from __future__ import annotations

from typing import Final

from mqreplay.decode.body import answer_of, items_of
from mqreplay.decode.columns import PlainColumns, missing
from mqreplay.decode.fastjson_text import Value
from mqreplay.decode.fields import int_field, object_of, text_field
from mqreplay.decode.jsonl import read_object
from mqreplay.decode.kind import Kind
from mqreplay.decode.subscriptions import SUBSCRIPTIONS, subscriptions_of
from mqreplay.words.keys import BROKER

_PLAIN: Final = PlainColumns(
    """
    ts timestamp_ms not null, response_ts timestamp_ms, previous_ts timestamp_ms, broker_name string,
    broker_id bigint, consumer_group string not null, response_code int, remark string, error string
    """
)
_OF_BODY: Final = {
    "consume_type": "string",
    "message_model": "string",
    "consume_from_where": "string",
    "connections": "array<struct<client_id:string,client_addr:string,language:string,version:int>>",
    "subscriptions": SUBSCRIPTIONS,
}
COLUMNS: Final = {**_PLAIN.types, **_OF_BODY}
_PROXY: Final = PlainColumns("proxy_addr string not null")


def decode_consumer_connection(line: bytes) -> dict[str, object]:
    """Return the columns of one line of consumer_connections; times in epoch ms.

    ``connections`` and ``subscriptions`` are in the body's order; all columns of the body are None without a body (an
    error, or a group that is not online). Source: ConsumerConnection, Connection, SubscriptionData.

    Raises:
        DecodeError: see `mqreplay.decode.jsonl`, `body_of` and `PlainColumns.take`.

    >>> line = (b'{"ts":1795228830217,"consumer_group":"g","body":{"connectionSet":[{"clientAddr":"10.0.0.1:5",'
    ...         b'"clientId":"c","language":"JAVA","version":407}],"messageModel":"CLUSTERING"}}')
    >>> answer = decode_consumer_connection(line)
    >>> answer["connections"], answer["subscriptions"], answer["message_model"]
    ([('c', '10.0.0.1:5', 'JAVA', 407)], [], 'CLUSTERING')
    """
    record = read_object(line)
    answer = dict.fromkeys(_OF_BODY) | _PLAIN.take(record)
    body = answer_of(record)
    if body is None:
        return answer
    answer["consume_type"] = text_field(body, "consumeType", None)
    answer["message_model"] = text_field(body, "messageModel", None)
    answer["consume_from_where"] = text_field(body, "consumeFromWhere", None)
    answer["connections"] = [_connection(value) for value in items_of(body, "connectionSet")]
    table = object_of(body.get("subscriptionTable") or {}, "subscriptionTable")
    answer["subscriptions"] = subscriptions_of(table.values(), "subscriptionTable")
    return answer


def decode_proxy_connection(line: bytes) -> dict[str, object]:
    """Return the columns of one line of proxy_connections; times in epoch ms.

    A proxy in cluster mode knows the members of all proxies. Source: ConsumerManagerActivity, HeartbeatSyncer.

    Raises:
        DecodeError: see `decode_consumer_connection`.

    >>> line = (b'{"ts":1795228830217,"proxy_addr":"10.0.0.9:8080","consumer_group":"g",'
    ...         b'"body":{"connectionSet":[{"clientId":"c"}]}}')
    >>> answer = decode_proxy_connection(line)
    >>> answer["proxy_addr"], answer["connections"]
    ('10.0.0.9:8080', [('c', None, None, 0)])
    """
    answer = decode_consumer_connection(line)
    return _PROXY.decode(line) | {name: value for name, value in answer.items() if name not in BROKER}


def _connection(value: Value) -> tuple[str, str | None, str | None, int]:
    data = object_of(value, "connectionSet")
    client_id = text_field(data, "clientId", None)
    if client_id is None:
        raise missing("clientId")
    return (
        client_id,
        text_field(data, "clientAddr", None),
        text_field(data, "language", None),
        int_field(data, "version", 0),
    )


KIND: Final = Kind(
    stem="consumer_connections",
    table="silver.consumer_connection",
    label="connections of the groups' members",
    decode=decode_consumer_connection,
    columns=COLUMNS,
    required=_PLAIN.required,
    by_recorder=True,
)
PROXY_KIND: Final = Kind(
    stem="proxy_connections",
    table="silver.proxy_connection",
    label="connections by a proxy",
    decode=decode_proxy_connection,
    columns=_PROXY.types | {name: kind for name, kind in COLUMNS.items() if name not in BROKER},
    required=("ts", "consumer_group", "proxy_addr"),
    by_recorder=True,
)
