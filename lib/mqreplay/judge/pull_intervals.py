"""What pulls tell of ownership: from its first pull of a queue to its last, a client holds the queue.

Both functions are of one shard. A queue lies in one shard with all its pulls, so the results of all shards are put one
below the other.
"""

from __future__ import annotations

import polars as pl

from mqreplay.judge.membership import MEMBER
from mqreplay.judge.queue_events import KEY, QUEUE
from mqreplay.judge.value_numbers import value_numbers

HELD = [*MEMBER, *QUEUE]


def pull_intervals_of_shard(pull: pl.DataFrame, pull_gap_s: int) -> pl.DataFrame:
    """Return HELD, from_ts, to_ts: intervals in which a client pulled a queue for its group.

    An interval goes on over a silence of at most ``pull_gap_s`` seconds, and over a longer one if no other client
    pulled the queue for the group meanwhile.
    """
    ends = [pl.col("request_ts").alias("ts"), pl.coalesce("response_ts", "request_ts").alias("until")]
    queue, held = value_numbers(pull, KEY, "_queue"), value_numbers(pull, HELD, "_held")
    pulls = pull.select(*HELD, *ends, queue, held).sort("ts", "client_id")
    silence_ms = pl.col("ts").dt.epoch("ms") - pl.col("ts").shift(1).over("_held").dt.epoch("ms")
    alone = pl.col("_held").shift(1).over("_queue") == pl.col("_held")
    goes_on = (silence_ms <= pull_gap_s * 1000) | (silence_ms.is_not_null() & alone)
    numbered = pulls.with_columns((~goes_on).fill_null(True).alias("_begins")).with_columns(
        pl.col("_begins").cum_sum().over("_held").alias("_interval")
    )
    intervals = numbered.group_by("_held", "_interval").agg(
        pl.col(HELD).first(), pl.col("ts").min().alias("from_ts"), pl.col("until").max().alias("to_ts")
    )
    return intervals.drop("_held", "_interval")


def pulled_queues_of_shard(pull: pl.DataFrame) -> pl.DataFrame:
    """Return QUEUE, first_ts, last_ts: from when to when any client pulled a queue."""
    return pull.group_by(QUEUE).agg(
        pl.col("request_ts").min().alias("first_ts"),
        pl.coalesce("response_ts", "request_ts").max().alias("last_ts"),
    )
