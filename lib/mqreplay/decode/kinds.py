"""The kinds of JSONL a recording holds: for each file's stem its decoder and its columns.

Whoever reads a recording needs this table and nothing of the fields: `KINDS["pull_log"].decode(line)` gives a
dict with exactly the names of ``columns``, in whose values an absent field is None. The types are those of
`mqreplay.decode.columns`: Spark DDL, with ``timestamp_ms`` for an int of epoch milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from mqreplay.decode import (
    assignments,
    broker_runtime,
    cluster_info,
    consumer_lists,
    heartbeats,
    lock_requests,
    message_logs,
    offset_commits,
    pull_log,
    rebalance_log,
    routes,
    server_requests,
    topic_stats,
)
from mqreplay.decode.columns import PlainColumns


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of record. ``decode`` takes a line (bytes), may raise DecodeError; ``time`` names its instant.

    ``required`` are the columns that are never None: without them a record means nothing. ``plain`` is set where
    decode does no more than take these columns: such lines may be read many at a time.
    """

    stem: str
    decode: Callable[[bytes], dict[str, object]]
    columns: Mapping[str, str]
    required: tuple[str, ...]
    time: str = "ts"
    plain: PlainColumns | None = None


KINDS: Final[dict[str, Kind]] = {
    kind.stem: kind
    for kind in (
        Kind("pull_log", pull_log.decode_pull, pull_log.COLUMNS, pull_log.REQUIRED, "request_ts", pull_log.PLAIN),
        Kind(
            "offset_commits",
            offset_commits.decode_offset_commit,
            offset_commits.COLUMNS,
            offset_commits.REQUIRED,
        ),
        Kind("heartbeats", heartbeats.decode_heartbeat, heartbeats.COLUMNS, heartbeats.REQUIRED),
        Kind(
            "consumer_lists",
            consumer_lists.decode_consumer_list,
            consumer_lists.COLUMNS,
            consumer_lists.REQUIRED,
        ),
        Kind("routes", routes.decode_route, routes.COLUMNS, routes.REQUIRED),
        Kind("rebalance_log", rebalance_log.decode_rebalance, rebalance_log.COLUMNS, rebalance_log.REQUIRED),
        Kind("assignments", assignments.decode_assignment, assignments.COLUMNS, assignments.REQUIRED),
        Kind(
            "broker_runtime",
            broker_runtime.decode_broker_runtime,
            broker_runtime.COLUMNS,
            broker_runtime.REQUIRED,
        ),
        Kind("cluster_info", cluster_info.decode_cluster_info, cluster_info.COLUMNS, cluster_info.REQUIRED),
        Kind("lock_requests", lock_requests.decode_lock_request, lock_requests.COLUMNS, lock_requests.REQUIRED),
        Kind(
            "consume_log",
            message_logs.decode_consume,
            message_logs.CONSUME_COLUMNS,
            message_logs.CONSUME_REQUIRED,
            plain=message_logs.CONSUME,
        ),
        Kind(
            "produce_log",
            message_logs.decode_produce,
            message_logs.PRODUCE_COLUMNS,
            message_logs.PRODUCE_REQUIRED,
            plain=message_logs.PRODUCE,
        ),
        Kind("topic_stats", topic_stats.decode_topic_stats, topic_stats.COLUMNS, topic_stats.REQUIRED),
        Kind(
            "server_requests",
            server_requests.decode_server_request,
            server_requests.COLUMNS,
            server_requests.REQUIRED,
        ),
    )
}
