"""Standstills of queues that a member of the group held.

The committed offset is the smallest one not yet processed (ProcessQueue#removeMessage), so one message whose processing
never finishes blocks its queue. So does a broker that refuses the reads.
"""

from __future__ import annotations

import polars as pl

from mqreplay.evidence.arrays.keys import KEY
from mqreplay.evidence.arrays.nearest import as_of

REFUSED = 2  # ResponseCode.SYSTEM_BUSY: a 5.x slave that may not be read


def refused_pulls_of_shard(pull: pl.DataFrame) -> pl.DataFrame:
    """Return how many pulls of a queue were refused at each instant.

    Columns: consumer_group, topic, broker_name, queue_id, request_ts, refused.
    """
    refused = pull.filter(pl.col("response_code") == REFUSED, pl.col("request_ts").is_not_null())
    return refused.group_by(*KEY, "request_ts").agg(pl.len().cast(pl.Int64).alias("refused"))


def held_standstills(
    still: pl.DataFrame, refused_pulls: pl.DataFrame, owners: pl.DataFrame, stuck_s: int
) -> pl.DataFrame:
    """Return the spans of ``still`` in which members held the queue for at least ``stuck_s`` seconds.

    Columns: KEY, from_ts, to_ts, ``offset``, ``waiting`` (messages after it), ``refused`` (pulls that a broker refused
    since the offset was set). ``still`` is standstills.py's frame, ``refused_pulls`` the rows of
    `refused_pulls_of_shard` of all shards, ``owners`` gold.queue_owner.
    """
    spans = still.join(owners, KEY, how="semi").explode("spans").unnest("spans")
    held = _with_held_ms(spans, owners).filter(pl.col("held_ms") >= stuck_s * 1000)
    columns = ("from_ts", "to_ts", "offset", "waiting", "refused")
    return _with_refused(held, refused_pulls).select(*KEY, *columns)


def _with_held_ms(spans: pl.DataFrame, owners: pl.DataFrame) -> pl.DataFrame:
    """Add ``held_ms``: how long members held the queue during each span; two members count twice.

    Until an instant the queue was held for the sum of (instant - start) over the intervals that began, less the sum of
    (instant - end) over those that ended. Running sums give both, without a join of spans and intervals.
    """
    intervals = owners.filter(pl.col("to_ts") > pl.col("from_ts"))
    edges = pl.concat(
        intervals.select(*KEY, pl.col(edge).alias("at"), pl.lit(step, pl.Int64).alias("holders"))
        for edge, step in (("from_ts", 1), ("to_ts", -1))
    )
    steps = edges.with_columns(since_ms=pl.col("holders") * pl.col("at").dt.epoch("ms"))
    sums = ("holders", "since_ms")
    by_instant = steps.group_by(*KEY, "at").agg(pl.col(sums).sum()).sort("at")
    sums_until = by_instant.with_columns(pl.col(sums).cum_sum().over(KEY))

    def held_until(instant: str) -> pl.Series:
        asked = spans.select(*KEY, instant)
        joined = as_of(asked, sums_until, KEY, instant, {name: name for name in sums}, right_at="at")
        held_ms = pl.col("holders") * pl.col(instant).dt.epoch("ms") - pl.col("since_ms")
        return joined.select(held_ms.fill_null(0)).to_series()

    return spans.with_columns(held_ms=held_until("to_ts") - held_until("from_ts"))


def _with_refused(spans: pl.DataFrame, refused_pulls: pl.DataFrame) -> pl.DataFrame:
    """Add ``refused``: the number of refused pulls from ``since_ts`` to ``to_ts``, both included."""
    refused_until = refused_pulls.sort("request_ts").with_columns(pl.col("refused").cum_sum().over(KEY))
    asked = spans.with_columns(before_ts=pl.col("since_ts") - pl.duration(microseconds=1))
    for instant, name in (("before_ts", "before"), ("to_ts", "until")):
        asked = as_of(asked, refused_until, KEY, instant, {name: "refused"}, right_at="request_ts")
    refused = pl.col("until").fill_null(0) - pl.col("before").fill_null(0)
    return asked.with_columns(refused=refused).drop("before_ts", "before", "until")
