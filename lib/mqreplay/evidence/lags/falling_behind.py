"""Queues in which a group advances, but more slowly than messages arrive: its lag grows for minutes.

A group that was stopped, restarted or got a burst catches up: its lag rises in one step, or falls again. So a span
counts only if the lag rose in most of its steps, and if the group had not worked half of it off later.
"""

from __future__ import annotations

import polars as pl

from mqreplay.evidence.arrays.keys import KEY, QUEUE
from mqreplay.evidence.arrays.nearest import as_of
from mqreplay.evidence.members.membership import is_of_application

STEP_S = 30  # ends of queues are polled every 30 s
NOISE = 0.9  # a lag that falls by less goes on growing
MOST_STEPS = 2 / 3  # of the steps of a span: the lag rose, the offset advanced
LARGEST_STEP = 0.5  # of the growth: a burst comes in one step
BEHIND_S = 60  # of what arrives: commits and polls alone make a lag of some seconds


def falling_behind_of_shard(offset_change: pl.DataFrame, ends: pl.DataFrame, behind_s: int) -> pl.DataFrame:
    """Return the spans of ``behind_s`` seconds and longer in which a queue's lag grew although its offset advanced.

    Columns: KEY, from_ts, to_ts, lag_before, waiting (at the end), arrived, consumed (messages), halved_ts: when the
    group had worked off half of it; null if it did not. ``ends`` is queue_ends' frame.
    """
    of_master = (pl.col("broker_id") == 0) & pl.col("client_id").is_null() & pl.col("new_offset").is_not_null()
    changes = offset_change.filter(of_master).select(*KEY, "to_ts", "new_offset")
    points = _with_runs(_points(changes, changes.select(KEY).unique().filter(is_of_application()), ends))
    by = [*KEY, "run"]
    peaks = points.filter(pl.col("ts") <= pl.col("ts").sort_by("lag", "ts").last().over(by))
    rose, advanced = pl.col("rise") > 0, pl.col("did") > 0
    inner = pl.col("rise").is_not_null()
    steps, growth = inner.sum(), pl.col("lag").last() - pl.col("lag").first()
    spans = (
        peaks.sort("ts")
        .with_columns(pl.when(pl.int_range(pl.len()).over(by) > 0).then(pl.col("rise", "did")))
        .group_by(by)
        .agg(
            pl.col("ts").first().alias("from_ts"),
            pl.col("ts").last().alias("to_ts"),
            pl.col("lag").first().alias("lag_before"),
            pl.col("lag").last().alias("waiting"),
            (pl.col("end").last() - pl.col("end").first()).alias("arrived"),
            (pl.col("offset").last() - pl.col("offset").first()).alias("consumed"),
            (((rose & inner).sum() >= steps * MOST_STEPS) & ((advanced & inner).sum() >= steps * MOST_STEPS)).alias(
                "steady"
            ),
            (pl.col("rise").max() <= growth * LARGEST_STEP).alias("no_burst"),
        )
    )
    length_s = (pl.col("to_ts") - pl.col("from_ts")).dt.total_milliseconds() / 1000
    is_long = (length_s >= behind_s) & (pl.col("waiting") * length_s >= pl.col("arrived") * BEHIND_S)
    found = spans.filter(is_long & pl.col("steady") & pl.col("no_burst") & (pl.col("waiting") > pl.col("lag_before")))
    later = found.select(*KEY, "to_ts", "waiting").join(points.select(*KEY, "ts", "lag"), KEY)
    halved = later.filter((pl.col("ts") > pl.col("to_ts")) & (pl.col("lag") <= pl.col("waiting") / 2))
    first = halved.group_by(*KEY, "to_ts").agg(pl.col("ts").min().alias("halved_ts"))
    columns = ("from_ts", "to_ts", "lag_before", "waiting", "arrived", "consumed", "halved_ts")
    return found.join(first, [*KEY, "to_ts"], how="left").select(*KEY, *columns).sort(*KEY, "from_ts")


def _points(changes: pl.DataFrame, keys: pl.DataFrame, ends: pl.DataFrame) -> pl.DataFrame:
    """Return the lag at one statement of the end in STEP_S seconds: KEY, ts, end, offset, lag."""
    bucket = pl.col("at").dt.truncate(f"{STEP_S}s").alias("bucket")
    highs = ends.filter(pl.col("queue_max_offset").is_not_null()).join(keys, QUEUE, how="semi")
    each = highs.group_by(*QUEUE, bucket).agg(
        pl.col("at").max().alias("ts"), pl.col("queue_max_offset").max().alias("end")
    )
    met = as_of(keys.join(each, QUEUE), changes, KEY, "ts", {"offset": "new_offset"}, right_at="to_ts")
    known = met.filter(pl.col("offset").is_not_null())
    return known.with_columns(lag=(pl.col("end") - pl.col("offset")).clip(0)).drop("bucket")


def _with_runs(points: pl.DataFrame) -> pl.DataFrame:
    """Return the points with rise and did (since the point before), and run: while the lag does not fall."""
    before = {name: pl.col(name).shift(1).over(KEY) for name in ("lag", "offset", "ts")}
    falls = (pl.col("lag") < before["lag"] * NOISE) | (pl.col("ts") - before["ts"] > pl.duration(seconds=4 * STEP_S))
    return points.sort(*KEY, "ts").with_columns(
        rise=pl.col("lag") - before["lag"],
        did=pl.col("offset") - before["offset"],
        run=falls.fill_null(True).cum_sum().over(KEY),
    )


def falling_behind(spans: pl.DataFrame, jumps: pl.DataFrame) -> pl.DataFrame:
    """Return the spans of `falling_behind_of_shard`, without those of groups that worked their lag off.

    ``jumps`` are rows of gold.offset_continuity: an offset that was set ahead works nothing off.
    """
    set_ahead = jumps.filter((pl.col("kind") == "jump") & (pl.col("broker_id") == 0))
    met = spans.join(set_ahead.select(*KEY, jump_ts="to_ts"), KEY)
    between = (pl.col("jump_ts") > pl.col("to_ts")) & (pl.col("jump_ts") <= pl.col("halved_ts"))
    jumped = met.filter(between).select(*KEY, "from_ts").unique()
    kept = spans.filter(pl.col("halved_ts").is_null())
    return pl.concat(
        [kept, spans.filter(pl.col("halved_ts").is_not_null()).join(jumped, [*KEY, "from_ts"], how="semi")]
    )
