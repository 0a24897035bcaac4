"""cluster_info: answers to GET_BROKER_CLUSTER_INFO, the brokers that one name server knows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from mqreplay.decode.body import body_of, broker_addrs_of, texts_of
from mqreplay.decode.columns import PlainColumns
from mqreplay.decode.fastjson_text import Key, Value
from mqreplay.decode.fields import object_of, text_field, wrong_type
from mqreplay.decode.jsonl import read_object
from mqreplay.decode.kind import Kind

_PLAIN: Final = PlainColumns(
    """
    ts timestamp_ms not null, previous_ts timestamp_ms, namesrv_addr string, error string
    """
)
COLUMNS: Final = {
    **_PLAIN.types,
    "brokers": "array<struct<broker_name:string,cluster:string,broker_addrs:map<bigint,string>>>",
    "clusters": "map<string,array<string>>",
}


def decode_cluster_info(line: bytes) -> dict[str, object]:
    """Return the columns of one line of cluster_info; ``ts`` in epoch ms.

    ``brokers`` is brokerAddrTable and ``clusters`` (cluster to broker names) is clusterAddrTable, both in the
    body's order, and None where there is no body. Source: ClusterInfo.

    Raises:
        DecodeError: see `mqreplay.decode.jsonl`, `body_of` and `PlainColumns.take`.

    >>> line = (b'{"ts":1795228795108,"body":{"brokerAddrTable":{"b":{"brokerAddrs":{"0":"h:1"},'
    ...         b'"brokerName":"b","cluster":"C"}},"clusterAddrTable":{"C":["b"]}}}')
    >>> info = decode_cluster_info(line)
    >>> info["brokers"], info["clusters"]
    ([('b', 'C', {0: 'h:1'})], {'C': ['b']})
    """
    record = read_object(line)
    info = _PLAIN.take(record)
    body = body_of(record, "body")
    info["brokers"] = None if body is None else _brokers(_table(body, "brokerAddrTable"))
    info["clusters"] = None if body is None else _clusters(_table(body, "clusterAddrTable"))
    return info


def _table(body: Mapping[Key, Value], name: str) -> Mapping[Key, Value]:
    value = body.get(name)
    return {} if value is None else object_of(value, name)


def _brokers(table: Mapping[Key, Value]) -> list[tuple[str, str | None, dict[int, str]]]:
    rows = []
    for name, value in table.items():
        data = object_of(value, str(name))
        broker_name = text_field(data, "brokerName", str(name)) or str(name)
        addrs = broker_addrs_of(data.get("brokerAddrs"), "brokerAddrs")
        rows.append((broker_name, text_field(data, "cluster", None), addrs))
    return rows


def _clusters(table: Mapping[Key, Value]) -> dict[str, list[str]]:
    clusters: dict[str, list[str]] = {}
    for name, names in table.items():
        if not isinstance(name, str):
            raise wrong_type("a cluster name", "a string", name)
        clusters[name] = texts_of(names, f"the brokers of {name}")
    return clusters


KIND: Final = Kind(
    stem="cluster_info",
    table="silver.cluster_info",
    label="lists of the cluster's brokers",
    decode=decode_cluster_info,
    columns=COLUMNS,
    required=_PLAIN.required,
    by_recorder=True,
)
