"""Gaps in what is known of members: rows of gold.replay_gap.

- members with unknown queues: their logs were not imported, or they do not report queues
- groups whose clients lock their queues, and whose lock requests were not recorded
- groups that consume although no broker lists a member: their members are behind a proxy in cluster mode. A proxy that
  answers lists them.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from mqreplay.core.retry_topic import RETRY_GROUP_TOPIC_PREFIX as RETRY
from mqreplay.core.system_names import PROXY_GROUP
from mqreplay.decode.kind import CAPTURE
from mqreplay.decode.recording.advice import all_ways
from mqreplay.evidence.gap_rows import gap_rows
from mqreplay.evidence.members.membership import consumer_groups
from mqreplay.evidence.members.observed_clients import BY_POP, CLIENT_LOG, MUTE, UNPULLED, polled, unwatched_spans
from mqreplay.words.keys import MEMBER

BROKER_LOG = "broker_log"
UNDETERMINED_KINDS = ("orphan_queue", "idle_consumer")
UNKNOWN_QUEUES = "the queues of {} of the group are not known"
REASON = f"{UNKNOWN_QUEUES}. Next time: {all_ways('assignments', 'files')}"
GAP_REASONS = {
    BY_POP: f"{UNKNOWN_QUEUES}: POP assigns no queue to one client alone",
    MUTE: f"{UNKNOWN_QUEUES}: gRPC clients and DefaultMQPullConsumer do not report them",
    UNPULLED: f"{UNKNOWN_QUEUES}: the group sent heartbeats, but no pull of it was recorded, as of groups that consume "
    "by POP",
}
NO_LOCK_REQUESTS = (
    f"clients of the group lock their queues, and no request for it was recorded. Next time: {CAPTURE}, or import"
    " lock.log of each broker"
)
DECISIONS = ("gold.queue_lock", "finding lock_blocked")
SYSTEM_GROUP = "CID_RMQ_SYS_"
DECISION = "gold.queue_owner"
CONNECTIONS_KIND = "proxy_connections"
ASK = "give `mqreplay record --proxy HOST:PORT` the proxies' remoting port"
UNLISTED_MEMBERS = f"no broker lists a member of this group, and no proxy answered: {ASK}"
PERHAPS = f"no broker lists a member of this group, although its offsets advance: if it uses a proxy, {ASK}"
NOWHERE = "neither a broker nor a proxy lists a member of this group, although its offsets advance"


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
        *(pl.when(pl.col("why") == why).then(pl.format(text, members)) for why, text in GAP_REASONS.items()),
        pl.format(REASON, members),
    )
    evidence = pl.when(pl.col("why").is_null()).then(pl.lit("client_log")).otherwise(pl.lit("assignments"))
    names = pl.DataFrame({"decision": [f"finding {name}" for name in UNDETERMINED_KINDS]})
    gaps = of_group.with_columns(reason.alias("reason"), evidence.alias("evidence")).join(names, how="cross")
    return gap_rows(gaps)


def lock_gaps(assignment: pl.DataFrame, lock: pl.DataFrame) -> pl.DataFrame:
    """Return the gaps of groups that have locked queues (ProcessQueueInfo) but no row in silver.lock."""
    unseen = assignment.filter(pl.col("queues").list.len() > 0).join(
        lock.select("consumer_group").unique(), "consumer_group", how="anti"
    )
    is_locked = pl.col("queues").list.eval(pl.element().struct.field("locked").fill_null(value=False)).list.any()
    of_group = (
        unseen.filter(is_locked)
        .group_by(pl.col("ts").dt.date().alias("day"), "consumer_group")
        .agg(
            pl.col("ts").min().alias("from_ts"),
            pl.col("ts").max().alias("to_ts"),
            pl.lit(0, pl.Int64).alias("decisions"),
        )
    )
    names = pl.DataFrame({"decision": DECISIONS})
    reasons = {"evidence": "lock_requests", "reason": NO_LOCK_REQUESTS}
    gaps = of_group.with_columns(pl.lit(text).alias(name) for name, text in reasons.items())
    return gap_rows(gaps.join(names, how="cross"))


def unlisted_member_gaps(
    group_status: pl.DataFrame,
    consumer_list: pl.DataFrame,
    proxy_connection: pl.DataFrame,
    with_members: Sequence[pl.DataFrame],
) -> pl.DataFrame:
    """Return the gaps of groups whose offsets advanced and whose members are unknown.

    ``group_status`` are rows of gold.group_status; the others are of silver tables. Each frame of ``with_members`` has
    a column consumer_group: a group in it has a known member. Only groups whose lists the recorder polled have rows.
    """
    first = pl.col("queues").max()  # the first offset of each queue counts as a commit
    advanced = (
        group_status.filter(~pl.col("consumer_group").str.starts_with(SYSTEM_GROUP))
        .group_by("day", "consumer_group", "topic")
        .agg(
            pl.col("from_ts").min(),
            pl.col("to_ts").max(),
            (pl.col("commits").sum() - first).alias("commits"),
            pl.col("queues").max(),
        )
        .filter(pl.col("commits") > 0)
    )
    listed = pl.col("connections").list.len().fill_null(0) > 0
    known = [
        proxy_connection.filter(listed).select("consumer_group"),
        *(frame.select("consumer_group") for frame in with_members),
    ]
    polled = consumer_list.filter(pl.col("response_ts").is_not_null()).select("consumer_group").unique()
    unknown = advanced.join(polled, on="consumer_group", how="semi").join(
        pl.concat(known).unique(), on="consumer_group", how="anti"
    )
    answered = proxy_connection.filter(pl.col("error").is_null())["consumer_group"].unique()
    has_proxy = PROXY_GROUP in set(pl.concat(known)["consumer_group"]) or len(proxy_connection) > 0
    named = unknown.group_by("day", "consumer_group").agg(
        pl.col("from_ts").min(), pl.col("to_ts").max(), pl.col("queues").sum().cast(pl.Int64).alias("decisions")
    )
    gaps = named.with_columns(
        pl.lit(DECISION).alias("decision"),
        pl.lit(CONNECTIONS_KIND).alias("evidence"),
        pl.when(pl.col("consumer_group").is_in(answered.implode()))
        .then(pl.lit(NOWHERE))
        .otherwise(pl.lit(UNLISTED_MEMBERS if has_proxy else PERHAPS))
        .alias("reason"),
    )
    return gap_rows(gaps)
