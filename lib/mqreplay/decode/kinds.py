"""The kinds of JSONL files in a recording. All facts of a kind are in its record here.

`KINDS["pull_log"].decode(line)` returns a dict with exactly the names of ``columns``; absent fields are None. The types
are those of `mqreplay.decode.columns`: Spark DDL, with ``timestamp_ms`` for an int of epoch
milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from mqreplay.decode import (
    assignments,
    broker_runtime,
    cluster_info,
    consume_stats,
    consumer_connections,
    consumer_lists,
    heartbeats,
    lock_requests,
    lowered_offsets,
    message_logs,
    offset_commits,
    pop_acks,
    pop_assignments,
    pop_log,
    proxy_connections,
    pull_log,
    rebalance_log,
    recorder_events,
    routes,
    server_requests,
    topic_stats,
)
from mqreplay.decode.columns import PlainColumns


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of record. ``stem`` is the beginning of its files' names; ``table`` is the silver table of its rows.

    ``decode`` takes a line (bytes), and may raise DecodeError. ``required`` columns are never None. ``time`` is the
    column of its instant, by the recorder's clock if ``by_recorder``. ``plain`` is set if decode only takes these
    columns: such lines can be read many at a time. ``renamed``: columns with another name in the table.
    """

    stem: str
    table: str
    decode: Callable[[bytes], dict[str, object]]
    columns: Mapping[str, str]
    required: tuple[str, ...]
    time: str = "ts"
    by_recorder: bool = False
    plain: PlainColumns | None = None
    renamed: Mapping[str, str] = field(default_factory=dict)


KINDS: Final[dict[str, Kind]] = {
    kind.stem: kind
    for kind in (
        Kind(
            "pull_log",
            "silver.pull",
            pull_log.decode_pull,
            pull_log.COLUMNS,
            pull_log.REQUIRED,
            time="request_ts",
            plain=pull_log.PLAIN,
        ),
        Kind(
            "offset_commits",
            "silver.offset_commit",
            offset_commits.decode_offset_commit,
            offset_commits.COLUMNS,
            offset_commits.REQUIRED,
        ),
        Kind(
            "lowered_offsets",
            "silver.lowered_offset",
            lowered_offsets.decode_lowered_offset,
            lowered_offsets.COLUMNS,
            lowered_offsets.REQUIRED,
            by_recorder=True,
        ),
        Kind(
            "heartbeats",
            "silver.heartbeat",
            heartbeats.decode_heartbeat,
            heartbeats.COLUMNS,
            heartbeats.REQUIRED,
            renamed={
                "consumers": "consumer_data_set",
                "consumer_group": "unregistered_consumer_group",
                "producer_group": "unregistered_producer_group",
                "closed_group": "closed_consumer_group",
            },
        ),
        Kind(
            "consumer_lists",
            "silver.consumer_list",
            consumer_lists.decode_consumer_list,
            consumer_lists.COLUMNS,
            consumer_lists.REQUIRED,
        ),
        Kind("routes", "silver.route", routes.decode_route, routes.COLUMNS, routes.REQUIRED),
        Kind(
            "rebalance_log",
            "silver.rebalance",
            rebalance_log.decode_rebalance,
            rebalance_log.COLUMNS,
            rebalance_log.REQUIRED,
        ),
        Kind(
            "assignments",
            "silver.assignment",
            assignments.decode_assignment,
            assignments.COLUMNS,
            assignments.REQUIRED,
        ),
        Kind(
            "broker_runtime",
            "silver.broker_runtime",
            broker_runtime.decode_broker_runtime,
            broker_runtime.COLUMNS,
            broker_runtime.REQUIRED,
            by_recorder=True,
            renamed={"full": "full_table", "boot_timestamp": "boot_ts", "table": "runtime"},
        ),
        Kind(
            "lock_requests",
            "silver.lock",
            lock_requests.decode_lock_request,
            lock_requests.COLUMNS,
            lock_requests.REQUIRED,
        ),
        Kind(
            "consume_log",
            "silver.consume",
            message_logs.decode_consume,
            message_logs.CONSUME_COLUMNS,
            message_logs.CONSUME_REQUIRED,
            plain=message_logs.CONSUME,
        ),
        Kind(
            "produce_log",
            "silver.produce",
            message_logs.decode_produce,
            message_logs.PRODUCE_COLUMNS,
            message_logs.PRODUCE_REQUIRED,
            plain=message_logs.PRODUCE,
        ),
        Kind(
            "topic_stats",
            "silver.topic_stats",
            topic_stats.decode_topic_stats,
            topic_stats.COLUMNS,
            topic_stats.REQUIRED,
            by_recorder=True,
        ),
        Kind(
            "server_requests",
            "silver.server_request",
            server_requests.decode_server_request,
            server_requests.COLUMNS,
            server_requests.REQUIRED,
        ),
        Kind(
            "cluster_info",
            "silver.cluster_info",
            cluster_info.decode_cluster_info,
            cluster_info.COLUMNS,
            cluster_info.REQUIRED,
            by_recorder=True,
        ),
        Kind(
            "consumer_connections",
            "silver.consumer_connection",
            consumer_connections.decode_consumer_connection,
            consumer_connections.COLUMNS,
            consumer_connections.REQUIRED,
            by_recorder=True,
        ),
        Kind(
            "proxy_connections",
            "silver.proxy_connection",
            proxy_connections.decode_proxy_connection,
            proxy_connections.COLUMNS,
            proxy_connections.REQUIRED,
            by_recorder=True,
        ),
        Kind(
            "consume_stats",
            "silver.consume_stats",
            consume_stats.decode_consume_stats,
            consume_stats.COLUMNS,
            consume_stats.REQUIRED,
            by_recorder=True,
        ),
        Kind("pop_log", "silver.pop", pop_log.decode_pop, pop_log.COLUMNS, pop_log.REQUIRED, time="request_ts"),
        Kind("pop_acks", "silver.pop_ack", pop_acks.decode_pop_ack, pop_acks.COLUMNS, pop_acks.REQUIRED),
        Kind(
            "pop_assignments",
            "silver.pop_assignment",
            pop_assignments.decode_pop_assignment,
            pop_assignments.COLUMNS,
            pop_assignments.REQUIRED,
        ),
        Kind(
            "recorder_events",
            "silver.recorder_event",
            recorder_events.decode_recorder_event,
            recorder_events.COLUMNS,
            recorder_events.REQUIRED,
            by_recorder=True,
        ),
    )
}
