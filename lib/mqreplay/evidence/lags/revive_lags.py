"""Revive queues that a broker does not work off, so that messages nobody acknowledged come back late."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from mqreplay.core.pop_revive import REVIVE_GROUP, is_revive_topic, revive_behind_messages
from mqreplay.evidence.arrays.frame_arrays import INT64_MAX, less
from mqreplay.evidence.intervals import INSTANT, with_run, with_state
from mqreplay.evidence.offsets.queue_ends import polled_ends
from mqreplay.words.keys import QUEUE

AT = [*QUEUE, "at"]
COUNTS_RIGHT = "5.3.4"  # before, a broker's own count has one more: the last checkpoint that it processed


def revive_lags_of_shard(
    offset_change: pl.DataFrame, topic_stats: pl.DataFrame, last_copies: Mapping[str, int], lag_s: int
) -> pl.DataFrame:
    """Return the spans of ``lag_s`` seconds and longer in which a revive queue was behind.

    Columns: broker_name, topic, queue_id, from_ts, to_ts, behind (messages).

    A reading of the end that grew since the reading before shows checkpoints that are due. ``lag_s`` seconds later the
    revive service must have processed one of them; so its offset is at least the end of the reading before. It may stay
    below the end for ever: it counts no acknowledgements after the last checkpoint, and late ones arrive alone. So one
    late reading proves nothing; a span has only late ones. Without ends nothing is known: the offset also stands still
    where brokers merge checkpoints and acknowledgements in memory.
    ``last_copies``: time of the last copy of the master's file by broker name (microseconds).
    Follows PopReviveService#consumeReviveMessage, #mergeAndRevive.
    """
    changes = _changes(offset_change)
    copies = pl.DataFrame([*last_copies.items()], {"broker_name": pl.String, "copied_us": pl.Int64}, orient="row")
    copied = copies.select("broker_name", pl.col("copied_us").cast(INSTANT).alias("copied_ts"))
    due = pl.col("at") + pl.duration(seconds=lag_s)
    known = _growths(topic_stats).join(copied, "broker_name").filter(due <= pl.col("copied_ts"))
    shown = known.with_columns(due.alias("due_ts")).sort("due_ts")
    # A change between two copies may be as old as the first one.
    oldest = changes.with_columns(pl.col("from_ts").fill_null(pl.col("to_ts")).alias("due_ts")).sort("due_ts")
    judged = with_state(shown, oldest.select(*QUEUE, "due_ts", "offset"), QUEUE, "due_ts")
    late = (pl.col("offset") < pl.col("end_before")).fill_null(False)
    in_order = judged.with_columns(late.alias("is_late")).sort(AT)
    runs = with_run(in_order, ~pl.col("is_late"), QUEUE).filter("is_late").group_by(*QUEUE, "run")
    spans = runs.agg(
        pl.col("at").min().alias("from_ts"),
        pl.col("at").max().alias("last_ts"),
        pl.struct("end", "offset").sort_by(less("end", "offset")).last().alias("furthest"),
        pl.col("end_before").last().alias("wanted"),
        pl.col("copied_ts").max(),
    ).filter(pl.col("last_ts") - pl.col("from_ts") >= pl.duration(seconds=lag_s))
    after = spans.join(changes.select(*QUEUE, "to_ts", "offset"), QUEUE).filter(
        (pl.col("to_ts") > pl.col("last_ts")) & (pl.col("offset") >= pl.col("wanted"))
    )
    ends = after.group_by(*QUEUE, "run").agg(pl.col("to_ts").min())
    ended = spans.join(ends, [*QUEUE, "run"], how="left")
    to_ts = pl.col("to_ts").fill_null(pl.col("copied_ts"))
    behind = [_behind(**furthest) for furthest in ended["furthest"]]
    found = ended.with_columns(pl.Series("behind", behind, pl.Int64))
    return found.select(*QUEUE, "from_ts", to_ts, "behind").sort(*QUEUE, "from_ts")


def _behind(end: int, offset: int) -> int:
    """Return the checkpoints not processed yet, as brokers since 5.3.4 count them; at most MOST."""
    return min(revive_behind_messages(end, offset, version=COUNTS_RIGHT), INT64_MAX)


def _changes(offset_change: pl.DataFrame) -> pl.DataFrame:
    """Return how offsets of revive queues changed, by copies of masters.

    Columns: broker_name, topic, queue_id, from_ts, to_ts, offset.
    """
    of_master = (pl.col("broker_id") == 0) & pl.col("client_id").is_null()
    return offset_change.filter(of_master & (pl.col("consumer_group") == REVIVE_GROUP)).select(
        *QUEUE, pl.col("from_ts", "to_ts").cast(INSTANT), pl.col("new_offset").alias("offset")
    )


def _growths(topic_stats: pl.DataFrame) -> pl.DataFrame:
    """Return the readings at which the end of a revive queue was higher than before.

    Columns: broker_name, topic, queue_id, at, end, end_before.
    """
    of_revival = pl.col("topic").map_elements(is_revive_topic, pl.Boolean)
    ends = polled_ends(topic_stats.filter(of_revival)).with_columns(pl.col("at").cast(INSTANT)).sort(AT)
    before = pl.col("queue_max_offset").shift(1).over(QUEUE)
    read = ends.select(*AT, pl.col("queue_max_offset").alias("end"), before.alias("end_before"))
    return read.filter(pl.col("end") > pl.col("end_before"))
