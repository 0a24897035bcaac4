"""Groups whose clients lock their queues: those without recorded requests, and whether a group had a lock."""

from __future__ import annotations

import datetime as dt
from typing import Final

import polars as pl

from mqreplay.core.rebalance_lock_manager import REBALANCE_LOCK_MAX_LIVE_TIME
from mqreplay.decode.kind import CAPTURE
from mqreplay.evidence.gap_rows import gap_rows

REASON = f"clients of the group lock their queues, and no request for it was recorded. Next time: {CAPTURE}, or import"
REASON += " lock.log of each broker"
LIVE: Final = dt.timedelta(milliseconds=REBALANCE_LOCK_MAX_LIVE_TIME)
CLOCKS: Final = dt.timedelta(seconds=1)
DECISIONS = ("gold.queue_lock", "finding lock_blocked")


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
    reasons = {"evidence": "lock_requests", "reason": REASON}
    gaps = of_group.with_columns(pl.lit(text).alias(name) for name, text in reasons.items())
    return gap_rows(gaps.join(names, how="cross"))


def with_unexpired_locks(rows: pl.DataFrame, lock: pl.DataFrame) -> pl.DataFrame:
    """Add has_lock: the group had an unexpired lock on broker ``stored_by`` at ``sent_ts``; null: not known.

    A request without a grant, one near the expiry, and any release leave it unknown (RebalanceLockManager).
    """
    near = rows.select("record_id", "consumer_group", pl.col("stored_by").alias("broker_name"), "sent_ts").join(
        lock.select(*("consumer_group", "broker_name", "ts", "response_ts", "kind", "lock_ok_mq_set")),
        ["consumer_group", "broker_name"],
    )
    age = pl.col("sent_ts") - pl.col("ts")
    granted = (pl.col("kind") == "LOCK_BATCH_MQ") & (pl.col("lock_ok_mq_set").list.len() > 0)
    answered = pl.coalesce("response_ts", "ts") < pl.col("sent_ts") - CLOCKS
    is_sure = (granted & answered & (age < LIVE - CLOCKS)).any() & (pl.col("kind") == "LOCK_BATCH_MQ").all()
    held = near.filter(age.is_between(-CLOCKS, LIVE + CLOCKS)).group_by("record_id").agg(is_sure.alias("is_sure"))
    joined = rows.join(held, "record_id", how="left", maintain_order="left")
    has_lock = pl.when(pl.col("is_sure").is_null()).then(pl.lit(value=False)).when("is_sure").then(pl.lit(value=True))
    return joined.with_columns(has_lock.alias("has_lock")).drop("is_sure")
