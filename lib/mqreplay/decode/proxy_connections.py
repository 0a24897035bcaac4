"""proxy_connections: answers of proxies to GET_CONSUMER_CONNECTION_LIST, the clients of a group behind them."""

from __future__ import annotations

from typing import Final

from mqreplay.decode.columns import PlainColumns
from mqreplay.decode.consumer_connections import COLUMNS as OF_BROKERS
from mqreplay.decode.consumer_connections import decode_consumer_connection
from mqreplay.decode.jsonl import read_object
from mqreplay.decode.kind import Kind

_OF_BROKER: Final = ("broker_name", "broker_id")
COLUMNS: Final = {"proxy_addr": "string"} | {name: kind for name, kind in OF_BROKERS.items() if name not in _OF_BROKER}
REQUIRED: Final = ("ts", "consumer_group", "proxy_addr")
_PLAIN: Final = PlainColumns({"proxy_addr": "string"}, ("proxy_addr",))


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
    columns = _PLAIN.take(read_object(line))
    return columns | {name: value for name, value in answer.items() if name not in _OF_BROKER}


KIND: Final = Kind(
    stem="proxy_connections",
    table="silver.proxy_connection",
    label="connections by a proxy",
    decode=decode_proxy_connection,
    columns=COLUMNS,
    required=REQUIRED,
    by_recorder=True,
)
