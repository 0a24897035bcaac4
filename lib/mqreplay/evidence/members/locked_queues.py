"""Groups whose clients lock their queues, and whose lock requests were not recorded."""

from __future__ import annotations

import polars as pl

from mqreplay.decode.kind import CAPTURE
from mqreplay.evidence.gap_rows import gap_rows

REASON = f"clients of the group lock their queues, and no request for it was recorded. Next time: {CAPTURE}, or import"
REASON += " lock.log of each broker"
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
