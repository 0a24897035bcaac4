"""Disagreements of two sources about a client's queues that last longer than their precision."""

from __future__ import annotations

import polars as pl

from mqreplay.decisions.queue_owner import HELD, held_views, intervals_of
from mqreplay.evidence.gap_rows import GAP
from mqreplay.evidence.members.observed_clients import CLIENT_LOG, RUNNING_INFO
from mqreplay.evidence.members.ownership import counted_spans

COMPARED = ("assignment", RUNNING_INFO, CLIENT_LOG)  # a computed share is not yet held
PRECISION_S = 21  # a client is polled every 20 s


def source_gaps(assignment: pl.DataFrame, rebalance: pl.DataFrame, members: pl.DataFrame) -> pl.DataFrame:
    """Return the gaps for time spans in which two sources disagree about an owner.

    ``members`` is the frame of `membership`. A source covers a client from its first view to its last.
    """
    views = {source: each for source, each in held_views(assignment, rebalance, members) if source in COMPARED}
    pairs = [(one, other) for i, one in enumerate(COMPARED) for other in COMPARED[i + 1 :]]
    found = [_between(one, views[one], other, views[other]) for one, other in pairs]
    return pl.concat([pl.DataFrame(schema=GAP), *found])


def _between(one: str, first: pl.DataFrame, other: str, second: pl.DataFrame) -> pl.DataFrame:
    member = HELD[:2]
    both = _spoken(first).join(_spoken(second), member, suffix="_other")
    common = both.select(
        *member,
        pl.max_horizontal("from_ts", "from_ts_other").alias("from_ts"),
        pl.min_horizontal("to_ts", "to_ts_other").alias("to_ts"),
    ).filter(pl.col("from_ts") < pl.col("to_ts"))
    held = {
        name: intervals_of(views.join(common, member, how="semi")) for name, views in (("one", first), ("two", second))
    }
    queues = pl.concat([frame.select(HELD) for frame in held.values()]).unique()
    spans = held | {"common": queues.join(common, member)}
    counted = counted_spans(spans, HELD)
    differs = (pl.col("common") > 0) & ((pl.col("one") > 0) != (pl.col("two") > 0))
    long = (pl.col("to_ts").dt.epoch("ms") - pl.col("from_ts").dt.epoch("ms")) > PRECISION_S * 1000
    own = {
        "day": pl.col("from_ts").dt.date(),
        "decision": pl.lit("gold.queue_owner"),
        "evidence": pl.lit("contradiction"),
        "decisions": pl.lit(1),
        "reason": pl.lit(f"{one} and {other} disagree about the owner of a queue; {one} counts"),
    } | {name: pl.col(name) for name in ("consumer_group", "topic", "broker_name", "from_ts", "to_ts")}
    return counted.filter(differs & long).select(own[name].cast(kind).alias(name) for name, kind in GAP.items())


def _spoken(views: pl.DataFrame) -> pl.DataFrame:
    return views.group_by(HELD[:2]).agg(pl.col("ts").min().alias("from_ts"), pl.col("ts").max().alias("to_ts"))
