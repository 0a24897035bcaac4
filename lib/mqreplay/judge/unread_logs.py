"""Members in brokers' logs with unknown queues, because their own logs were not imported."""

from __future__ import annotations

import polars as pl

from mqreplay.evidence_advice import all_ways
from mqreplay.judge.membership import MEMBER, consumer_groups
from mqreplay.judge.observed_clients import CLIENT_LOG, polled
from mqreplay.judge.replay_gap import GAP

BROKER_LOG = "broker_log"
UNDETERMINED = ("orphan_queue", "idle_consumer")
REASON = f"the queues of {{}} of the group are not known. Next time: {all_ways('assignments', 'files')}"


def unread_members(
    members: pl.DataFrame, heartbeat: pl.DataFrame, assignment: pl.DataFrame, rebalance: pl.DataFrame
) -> pl.DataFrame:
    """Return MEMBER, from_ts, to_ts: sessions that only brokers' logs show.

    ``members`` is the frame of `membership`. A client whose imported log names no queue held none: one log covers all
    groups of a process.
    """
    named = consumer_groups(polled(heartbeat, BROKER_LOG)).select(MEMBER).unique()
    process = pl.col("client_id").str.split("#").list.first().alias("process")
    read = pl.concat([polled(rows, CLIENT_LOG).select(process) for rows in (assignment, rebalance)]).unique()
    unseen = members.filter(~pl.col("watched")).join(named, MEMBER, how="semi")
    unread = unseen.with_columns(process).join(read, "process", how="anti")
    return unread.filter(pl.col("to_ts") > pl.col("from_ts")).select(*MEMBER, "from_ts", "to_ts")


def unwatched_gaps(unwatched: pl.DataFrame, least_s: int) -> pl.DataFrame:
    """Return the gaps (columns of GAP) of spans longer than ``least_s`` s in which queues of members are unknown.

    ``unwatched`` has MEMBER, from_ts and to_ts. Shorter spans hide no finding.
    """
    long = unwatched.filter(pl.col("to_ts") - pl.col("from_ts") > pl.duration(seconds=least_s))
    clients = pl.col("client_id").n_unique()
    of_group = long.group_by(pl.col("from_ts").dt.date().alias("day"), "consumer_group").agg(
        pl.col("from_ts").min(),
        pl.col("to_ts").max(),
        pl.lit("client_log").alias("evidence"),
        clients.cast(pl.Int64).alias("decisions"),
        pl.format(
            REASON, pl.when(clients == 1).then(pl.lit("1 member")).otherwise(pl.format("{} members", clients))
        ).alias("reason"),
    )
    names = pl.DataFrame({"decision": [f"finding {name}" for name in UNDETERMINED]})
    gaps = of_group.join(names, how="cross")
    return gaps.select(
        (pl.col(name) if name in gaps.columns else pl.lit(None)).cast(kind).alias(name) for name, kind in GAP.items()
    )
