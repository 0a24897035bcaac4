"""gold.offset_continuity: where a consumer offset, as a broker kept it, did not simply move forwards.

ConsumerOffsetManager#commitOffset stores whatever it is given, so every break is possible; each kind needs its proof:
  rewind      the next snapshot holds a lower offset
  vanished    the next snapshot holds none
  beyond_max  the master stated, after it, that the queue ends before the offset
  below_min   the master stated, before it, that the queue begins after the offset
  jump        the offset rose past messages that the group was not given: by a reset, or the next pull skips them
  stale       a slave's file stayed below all that its master's had held for a while (stale_copies.py)
A rise is no break by its size alone: one slow message holds an offset back, and lets it go at once (ProcessQueue).
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

import polars as pl

from mqreplay.judge.as_of import as_of
from mqreplay.judge.offset_causes import BEGAN, with_committed, with_reset, with_skip
from mqreplay.judge.offset_resets import GROUP_QUEUE
from mqreplay.judge.queue_ends import QUEUE
from mqreplay.judge.saturating import less

CHAIN = ["source_name", *GROUP_QUEUE]  # of one offset in one file


def recording_groups_of_shard(offset_commit: pl.DataFrame) -> set[str]:
    """Return the groups of which a shard has commits. The groups of a night are the union over its shards."""
    return set(offset_commit.filter(pl.col("kind") == "UPDATE")["consumer_group"].drop_nulls().unique())


def offset_continuity(
    offset_change: pl.DataFrame,
    ends: pl.DataFrame,
    suspects: pl.DataFrame,
    resets: pl.DataFrame,
    skips: pl.DataFrame,
    offset_commit: pl.DataFrame,
    pull: pl.DataFrame,
    recording_groups: AbstractSet[str],
    reset_reach_s: int,
) -> pl.DataFrame:
    """Return one row a break in the offsets of a shard's queues, on each broker whose file shows it.

    The table is the concatenation over the shards. ``offset_change``, ``offset_commit`` and ``pull`` are the shard's
    rows of the silver tables; only brokers' files are judged. ``ends`` is queue_ends' frame, ``resets`` offset_resets',
    ``suspects`` and ``skips`` are those of judge/offset_suspects.py; rows of other queues in these four have no effect.
    ``recording_groups`` are the groups of which commits were recorded, in any shard.
    ``reset_reach_s`` is how long a reset takes at most to show in a snapshot (clients commit it, slaves copy it).
    """
    # In most queues nothing can be wrong: only the changes of the others are judged.
    judged = pl.concat([frame.select(GROUP_QUEUE) for frame in (suspects, resets, skips)]).unique()
    changes = offset_change.filter(pl.col("broker_id").is_not_null()).join(judged, on=GROUP_QUEUE, how="semi").unique()
    commits, pulls = (frame.join(judged, on=GROUP_QUEUE, how="semi") for frame in (offset_commit, pull))
    changes = _with_ends(changes, ends.join(judged, on=QUEUE, how="semi"))
    changes = with_skip(with_reset(changes, resets, reset_reach_s), skips, reset_reach_s)
    changes = with_committed(changes, commits, pulls, recording_groups, reset_reach_s)
    changes = changes.with_columns(_kind().alias("kind"))
    # The row before has the proof that an offset was past the end: it was judged when it was set.
    order = ["to_ts", "from_ts", "previous_offset", "new_offset", "source_digest"]
    before = {"kind_before": "kind", "end_before": "queue_max_offset", "ts_before": "to_ts"}
    return (
        changes.sort(order)
        .with_columns(pl.col(column).shift(1).over(CHAIN).alias(name) for name, column in before.items())
        .filter(pl.col("kind").is_not_null())
        .select(
            "day",
            "broker_name",
            "broker_id",
            "topic",
            "consumer_group",
            "queue_id",
            "kind",
            "previous_offset",
            "new_offset",
            less("new_offset", pl.coalesce("previous_offset", "new_offset")).abs().alias("size"),
            BEGAN.alias("from_ts"),
            "to_ts",
            _cause().alias("cause"),
            _redelivered_max().alias("redelivered_max"),
            "queue_min_offset",
            "queue_max_offset",
            "source_digest",
        )
    )


def _with_ends(changes: pl.DataFrame, ends: pl.DataFrame) -> pl.DataFrame:
    """Add queue_max_offset, stated first after the change, queue_min_offset, last before it, and ``max_before``.

    ``max_before`` is the end stated first after the copy before the change.
    """
    asked = changes.with_columns(BEGAN.alias("_began"))
    asked = as_of(asked, ends, QUEUE, "to_ts", {"queue_max_offset": "queue_max_offset"}, right_at="at", after=True)
    asked = as_of(asked, ends, QUEUE, "_began", {"queue_min_offset": "queue_min_offset"}, right_at="at")
    asked = as_of(asked, ends, QUEUE, "_began", {"max_before": "queue_max_offset"}, right_at="at", after=True)
    return asked.drop("_began")


def _kind() -> pl.Expr:
    new, old = pl.col("new_offset"), pl.col("previous_offset")
    rose = old.is_null() | (new > old)
    return (
        pl.when(new.is_null())
        .then(pl.lit("vanished"))
        .when(new < old)
        .then(pl.lit("rewind"))
        .when(rose & (new > pl.col("queue_max_offset")))
        .then(pl.lit("beyond_max"))
        .when(new < pl.col("queue_min_offset"))
        .then(pl.lit("below_min"))
        .when(old.is_not_null() & (pl.col("reset") | pl.col("skipped")))
        .then(pl.lit("jump"))
    )


def _corrected() -> pl.Expr:
    """Whether an offset past the end was set back to the end, as the next pull does, and not further back.

    If it was set during the recording, the end is the one stated then; otherwise the one stated after the first copy.
    """
    new, old = pl.col("new_offset"), pl.col("previous_offset")
    set_back = (pl.col("kind_before") == "beyond_max") & (new >= pl.col("end_before"))
    set_earlier = pl.col("ts_before").is_null() & (old > pl.col("max_before"))
    return set_back.fill_null(False) | set_earlier.fill_null(False)


def _cause() -> pl.Expr:
    kind, committed = pl.col("kind"), pl.col("committed")
    return (
        pl.when(kind == "vanished")
        .then(pl.lit("removed"))
        .when((kind == "rewind") & _corrected())
        .then(pl.lit("corrected"))
        .when(pl.col("reset"))
        .then(pl.lit("reset"))
        .when(committed)
        .then(pl.lit("client_commit"))
        .when(~committed)
        .then(pl.lit("set_from_outside"))
        .otherwise(pl.lit("unknown"))
    )


def _redelivered_max() -> pl.Expr:
    """Messages between the new offset and the old that the queue really held."""
    top = pl.min_horizontal("previous_offset", "max_before")
    nothing = pl.lit(0, pl.Int64)
    bottom = pl.max_horizontal("new_offset", pl.coalesce("queue_min_offset", nothing))
    # Messages past the end were never consumed, so an offset that is corrected delivers none again.
    again = pl.when(_corrected()).then(nothing).otherwise(pl.max_horizontal(less(top, bottom), nothing))
    is_other = pl.col("kind").is_in(["jump", "beyond_max", "below_min"])
    return pl.when(pl.col("kind") == "rewind").then(again).when(is_other).then(nothing)
