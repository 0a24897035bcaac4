"""Disks that are so full that a broker takes no message (DefaultMessageStore.CleanCommitLogService#isSpaceToDelete)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import polars as pl

from mqreplay.core.store_settings import int_setting
from mqreplay.decode.broker_runtime import DISKS
from mqreplay.evidence.brokers.broker_descriptions import PROPERTIES, properties_of
from mqreplay.evidence.brokers.commit_logs import RUN, SLICE
from mqreplay.evidence.frames import columns, typed
from mqreplay.words.keys import BROKER

# The least and the largest percentage of disk use that a broker of 5.x allows: above warning_ratio the disk is marked
# full, at or below clean_ratio the mark is removed. The largest ones are the defaults.
RATIOS: Final = {
    "warning_ratio": ("diskSpaceWarningLevelRatio", 35, 90),
    "clean_ratio": ("diskSpaceCleanForciblyRatio", 30, 85),
}
FULL: dict[str, pl.DataType] = {
    **columns("broker_name", "broker_id", "from_ts", "to_ts"),
    "polls": pl.Int64(),
    "ratio": pl.Float64(),
    "warning_ratio": pl.Float64(),
    "ends": pl.Boolean(),
    "record_ids": pl.List(pl.String),
}


def full_disks(broker_runtime: pl.DataFrame, broker: pl.DataFrame) -> pl.DataFrame:
    """Return the times in which a disk of a broker is marked full, by its runtime figures: the columns of FULL.

    From the first poll with a ratio above warning_ratio to the first one with all ratios at or below clean_ratio;
    ``ends`` if there is one. A broker that starts has no mark. ``ratio`` is the highest, ``record_ids`` are the polls
    above warning_ratio. Polls without a ratio have no effect. ``broker`` is silver.broker: its last settings count.
    """
    answered = broker_runtime.filter(pl.col("error").is_null() & pl.col("runtime").is_not_null())
    known = answered.select(*RUN, "ts", "record_id", "runtime")
    parts = [_with_ratio(part) for part in known.iter_slices(SLICE)]
    if not parts:
        return pl.DataFrame(schema=FULL)
    read = pl.concat(parts).drop_nulls("ratio").join(_limits(broker), BROKER, how="left")
    defaults = [pl.col(name).fill_null(most / 100) for name, (_, _, most) in RATIOS.items()]
    polls = read.with_columns(defaults).sort(*BROKER, "ts", "record_id")
    is_above, is_below = pl.col("ratio") > pl.col("warning_ratio"), pl.col("ratio") <= pl.col("clean_ratio")
    mark = pl.when(is_above).then(True).when(is_below).then(False)
    marked = polls.with_columns(mark.forward_fill().over(RUN).fill_null(False).alias("is_full"))
    run = (pl.col("is_full") != pl.col("is_full").shift(1).over(BROKER)).fill_null(True).cum_sum().over(BROKER)
    following = pl.col("ts").shift(-1).over(BROKER).alias("following")
    full = marked.with_columns(run.alias("run"), following).filter("is_full")
    last = pl.col("following").last()
    above = pl.col("record_id").filter(is_above)
    found = full.group_by(*BROKER, "run", maintain_order=True).agg(
        pl.col("ts").min().alias("from_ts"),
        pl.coalesce(last, pl.col("ts").last()).alias("to_ts"),
        pl.len().alias("polls"),
        pl.col("ratio", "warning_ratio").max(),
        last.is_not_null().alias("ends"),
        above.alias("record_ids"),
    )
    return typed(found, FULL)


def _limits(broker: pl.DataFrame) -> pl.DataFrame:
    """Return the ratios of brokers with settings. Before 5.0 they are system properties, which nothing records.

    Follows DefaultMessageStore.CleanCommitLogService#getDiskSpaceWarningLevelRatio, #getDiskSpaceCleanForciblyRatio.
    """
    last = broker.sort("ts").group_by(BROKER).agg(pl.col("properties").cast(PROPERTIES).last())
    rows = [
        (*(row[name] for name in BROKER), *(_ratio(properties_of(row), *limits) for limits in RATIOS.values()))
        for row in last.rows(named=True)
    ]
    schema = {name: broker.schema[name] for name in BROKER} | dict.fromkeys(RATIOS, pl.Float64())
    return pl.DataFrame(rows, schema, orient="row")


def _ratio(properties: Mapping[str, str], name: str, least: int, most: int) -> float:
    return min(max(int_setting(properties, name, most), least), most) / 100


def _with_ratio(polls: pl.DataFrame) -> pl.DataFrame:
    """Replace ``runtime`` by ``ratio``: the higher one of the disks of a broker; null: not recorded."""
    item = pl.element().struct.field
    texts = pl.col("runtime").cast(PROPERTIES).list.eval(item("value").filter(item("key").is_in(DISKS)))
    ratio = texts.list.eval(pl.element().cast(pl.Float64, strict=False)).list.max()
    read = pl.when(ratio >= 0).then(ratio)  # UtilAll#getDiskPartitionSpaceUsedPercent gives -1 if it cannot read one
    return polls.select(*RUN, "ts", "record_id", read.alias("ratio"))
