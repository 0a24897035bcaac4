"""From when to when a broker's lock table gave a queue to a client, for orderly listeners.

Source: RebalanceLockManager, RebalanceImpl#lock, #lockAll.
"""

from __future__ import annotations

import polars as pl

from mqreplay.judge.membership import MEMBER, within_session
from mqreplay.judge.pull_intervals import HELD
from mqreplay.judge.queue_events import KEY, QUEUE

LOCKED_S = 60  # RebalanceLockManager.REBALANCE_LOCK_MAX_LIVE_TIME


def lock_intervals(lock: pl.DataFrame, members: pl.DataFrame) -> pl.DataFrame:
    """Return HELD, from_ts, to_ts: from a grant until the owner unlocks, another client gets it, or it expires.

    A client asks for one queue when it takes it, and for all its queues of a broker to renew them: no request shows
    all that it holds. ``members`` is the frame of `membership`.
    """
    events = pl.concat(
        [_events(lock, "LOCK_BATCH_MQ", "lock_ok_mq_set", True), _events(lock, "UNLOCK_BATCH_MQ", "mq_set", False)]
    ).sort("ts", "granted", "client_id")
    owner = pl.when("granted").then("client_id").forward_fill().over(KEY)
    # A client that lost a lock unlocks nothing that another one holds.
    valid = events.filter(owner == pl.col("client_id")).with_columns(pl.col("ts").shift(-1).over(KEY).alias("_next"))
    expires = pl.col("ts") + pl.duration(seconds=LOCKED_S)
    spans = within_session(valid.filter("granted"), members, pl.min_horizontal("_next", expires))
    goes_on = pl.col("until").shift(1).over(HELD) == pl.col("ts")
    numbered = spans.with_columns((~goes_on).fill_null(True).alias("_begins")).with_columns(
        pl.col("_begins").cum_sum().over(HELD).alias("_interval")
    )
    intervals = numbered.group_by(*HELD, "_interval").agg(
        pl.col("ts").min().alias("from_ts"), pl.col("until").max().alias("to_ts")
    )
    return intervals.drop("_interval")


def _events(lock: pl.DataFrame, kind: str, queues: str, granted: bool) -> pl.DataFrame:
    listed = lock.filter((pl.col("kind") == kind) & (pl.col(queues).list.len() > 0))
    each = listed.select(*MEMBER, "ts", pl.col(queues).alias("queue")).explode("queue")
    queue = [pl.col("queue").struct.field(name) for name in QUEUE]
    return each.select(*MEMBER, *queue, "ts", pl.lit(granted).alias("granted"))
