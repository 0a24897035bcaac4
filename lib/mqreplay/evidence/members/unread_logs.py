"""Members with unknown queues: their logs were not imported, or they do not report queues."""

from __future__ import annotations

import polars as pl

from mqreplay.core.retry_topic import RETRY_GROUP_TOPIC_PREFIX as RETRY
from mqreplay.evidence.gap_rows import gap_rows
from mqreplay.evidence.members.membership import MEMBER, consumer_groups
from mqreplay.evidence.members.observed_clients import BY_POP, CLIENT_LOG, MUTE, UNPULLED, polled, unwatched_spans
from mqreplay.evidence_advice import all_ways

BROKER_LOG = "broker_log"
UNDETERMINED = ("orphan_queue", "idle_consumer")
UNKNOWN = "the queues of {} of the group are not known"
REASON = f"{UNKNOWN}. Next time: {all_ways('assignments', 'files')}"
REASONS = {
    BY_POP: f"{UNKNOWN}: POP assigns no queue to one client alone",
    MUTE: f"{UNKNOWN}: gRPC clients and DefaultMQPullConsumer do not report them",
    UNPULLED: f"{UNKNOWN}: the group sent heartbeats, but no pull of it was recorded, as of groups that consume by POP",
}


def unread_members(
    members: pl.DataFrame, heartbeat: pl.DataFrame, assignment: pl.DataFrame, rebalance: pl.DataFrame
) -> pl.DataFrame:
    """Return the sessions of members that only brokers' logs show.

    Columns: consumer_group, client_id, from_ts, to_ts, why.

    ``members`` is the frame of `membership`. A client whose imported log names no queue held none: one log covers all
    groups of a process.
    """
    by_log = polled(heartbeat, BROKER_LOG)
    dropped = by_log.select(pl.col("closed_consumer_group").alias("consumer_group"), "client_id").drop_nulls()
    named = pl.concat([consumer_groups(by_log).select(MEMBER), dropped]).unique()
    process = pl.col("client_id").str.split("#").list.first().alias("process")
    read = pl.concat([polled(rows, CLIENT_LOG).select(process) for rows in (assignment, rebalance)]).unique()
    unseen = members.filter(~pl.col("watched")).join(named, MEMBER, how="semi")
    # A client that joined before the log begins may be known only by its last heartbeat.
    begun = pl.min_horizontal("from_ts", pl.col("to_ts") - pl.duration(seconds=1)).alias("from_ts")
    unread = unseen.with_columns(process, begun).join(read, "process", how="anti")
    return unwatched_spans(unread, None)


def unpulled_members(
    members: pl.DataFrame,
    owners: pl.DataFrame,
    assignment: pl.DataFrame,
    rebalance: pl.DataFrame,
    unshared: pl.DataFrame,
) -> pl.DataFrame:
    """Return the sessions of members of groups without evidence that their members hold queues.

    Columns: consumer_group, client_id, from_ts, to_ts, why.

    A group that consumes by POP sends heartbeats, and pulls its retry topic alone. ``owners`` is gold.queue_owner,
    ``members`` the frame of `membership`, ``unshared`` that of unshared_groups.
    """
    own = ~pl.col("topic").str.starts_with(RETRY)
    shown = [owners.filter(own), assignment.filter(pl.col("queues").is_not_null()), rebalance, unshared]
    known = pl.concat([rows.select("consumer_group") for rows in shown]).unique()
    return unwatched_spans(members.join(known, "consumer_group", how="anti"), UNPULLED)


def unwatched_gaps(unwatched: pl.DataFrame, least_s: int) -> pl.DataFrame:
    """Return the gaps of spans longer than ``least_s`` seconds in which queues of members are unknown.

    ``unwatched`` are rows of UNWATCHED. Shorter spans hide no finding.
    """
    long = unwatched.filter(pl.col("to_ts") - pl.col("from_ts") > pl.duration(seconds=least_s))
    clients = pl.col("client_id").n_unique()
    of_group = long.group_by(pl.col("from_ts").dt.date().alias("day"), "consumer_group", "why").agg(
        pl.col("from_ts").min(), pl.col("to_ts").max(), clients.cast(pl.Int64).alias("decisions")
    )
    number = pl.col("decisions")
    members = pl.when(number == 1).then(pl.lit("1 member")).otherwise(pl.format("{} members", number))
    reason = pl.coalesce(
        *(pl.when(pl.col("why") == why).then(pl.format(text, members)) for why, text in REASONS.items()),
        pl.format(REASON, members),
    )
    evidence = pl.when(pl.col("why").is_null()).then(pl.lit("client_log")).otherwise(pl.lit("assignments"))
    names = pl.DataFrame({"decision": [f"finding {name}" for name in UNDETERMINED]})
    gaps = of_group.with_columns(reason.alias("reason"), evidence.alias("evidence")).join(names, how="cross")
    return gap_rows(gaps)
