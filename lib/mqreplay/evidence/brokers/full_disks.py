"""Disks that are so full that a broker takes no message (DefaultMessageStore.CleanCommitLogService#isSpaceToDelete)."""

from __future__ import annotations

from typing import Final

import polars as pl

from mqreplay.decode.broker_runtime import DISKS
from mqreplay.evidence.brokers.broker_descriptions import PROPERTIES
from mqreplay.evidence.brokers.commit_logs import BROKER, RUN, SLICE
from mqreplay.evidence.time_spans import INSTANT

WARNING_RATIO: Final = 0.90  # diskSpaceWarningLevelRatio: above it the disk is marked full
CLEAN_RATIO: Final = 0.85  # diskSpaceCleanForciblyRatio: the mark is removed at or below it
FULL: dict[str, pl.DataType] = {
    "broker_name": pl.String(),
    "broker_id": pl.Int64(),
    "from_ts": INSTANT,
    "to_ts": INSTANT,
    "polls": pl.Int64(),
    "ratio": pl.Float64(),
    "ends": pl.Boolean(),
    "record_ids": pl.List(pl.String),
}


def full_disks(broker_runtime: pl.DataFrame) -> pl.DataFrame:
    """Return the times in which a disk of a broker is marked full, by its runtime figures: the columns of FULL.

    From the first poll with a ratio above WARNING_RATIO to the first one with all ratios at or below CLEAN_RATIO;
    ``ends`` if there is one. A broker that starts has no mark. ``ratio`` is the highest, ``record_ids`` are the polls
    above WARNING_RATIO. Polls without a ratio have no effect.
    """
    answered = broker_runtime.filter(pl.col("error").is_null() & pl.col("runtime").is_not_null())
    known = answered.select(*RUN, "ts", "record_id", "runtime")
    parts = [_with_ratio(part) for part in known.iter_slices(SLICE)]
    if not parts:
        return pl.DataFrame(schema=FULL)
    polls = pl.concat(parts).drop_nulls("ratio").sort(*BROKER, "ts", "record_id")
    mark = pl.when(pl.col("ratio") > WARNING_RATIO).then(True).when(pl.col("ratio") <= CLEAN_RATIO).then(False)
    marked = polls.with_columns(mark.forward_fill().over(RUN).fill_null(False).alias("is_full"))
    run = (pl.col("is_full") != pl.col("is_full").shift(1).over(BROKER)).fill_null(True).cum_sum().over(BROKER)
    following = pl.col("ts").shift(-1).over(BROKER).alias("following")
    full = marked.with_columns(run.alias("run"), following).filter("is_full")
    last = pl.col("following").last()
    above = pl.col("record_id").filter(pl.col("ratio") > WARNING_RATIO)
    found = full.group_by(*BROKER, "run", maintain_order=True).agg(
        pl.col("ts").min().alias("from_ts"),
        pl.coalesce(last, pl.col("ts").last()).alias("to_ts"),
        pl.len().alias("polls"),
        pl.col("ratio").max(),
        last.is_not_null().alias("ends"),
        above.alias("record_ids"),
    )
    return found.select(pl.col(name).cast(kind) for name, kind in FULL.items())


def _with_ratio(polls: pl.DataFrame) -> pl.DataFrame:
    """Replace ``runtime`` by ``ratio``: the higher one of the disks of a broker; null: not recorded."""
    item = pl.element().struct.field
    texts = pl.col("runtime").cast(PROPERTIES).list.eval(item("value").filter(item("key").is_in(DISKS)))
    ratio = texts.list.eval(pl.element().cast(pl.Float64, strict=False)).list.max()
    read = pl.when(ratio >= 0).then(ratio)  # UtilAll#getDiskPartitionSpaceUsedPercent gives -1 if it cannot read one
    return polls.select(*RUN, "ts", "record_id", read.alias("ratio"))
