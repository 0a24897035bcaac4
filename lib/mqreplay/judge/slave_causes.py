"""Causes of what slaves' files show: a slave copies the offsets of its master (SlaveSynchronize#syncConsumerOffset)."""

from __future__ import annotations

import polars as pl

from mqreplay.judge.nearest import as_of
from mqreplay.judge.queue_events import KEY

COPIED = "copied_from_master"
NOT_OF_MASTERS = ("stale", "vanished")  # kinds with another cause on a slave, or without an offset


def has_master(changes: pl.DataFrame) -> pl.Series:
    """Return for each change whether the file of a master shows an offset of its queue and group, too."""
    return changes.select((pl.col("broker_id") == 0).any().over(KEY)).to_series()


def with_causes_of_masters(breaks: pl.DataFrame, reach_s: int) -> pl.DataFrame:
    """Return the breaks; the row of a slave has the cause of the master's row that leads to the same offset.

    Where a master has no such row within ``reach_s`` seconds, a rewind that the slave copied has the cause of the
    master's rewind: between two copies its offset rises. ``breaks`` are rows of gold.offset_continuity, all brokers'.
    """
    numbered = breaks.with_row_index("_row")
    of_slave = (pl.col("broker_id") > 0) & ~pl.col("kind").is_in(NOT_OF_MASTERS)
    slaves, masters = numbered.filter(of_slave), numbered.filter(pl.col("broker_id") == 0)
    if slaves.is_empty() or masters.is_empty():
        return breaks
    same = _causes(slaves, masters.filter(pl.col("new_offset").is_not_null()), [*KEY, "new_offset"], reach_s)
    copied = slaves.filter((pl.col("cause") == COPIED) & (pl.col("kind") == "rewind"))
    between = _causes(copied, masters.filter(pl.col("kind") == "rewind"), KEY, reach_s)
    causes = pl.concat([same, between]).unique("_row", keep="first", maintain_order=True)
    named = numbered.join(causes, "_row", how="left", maintain_order="left")
    return named.with_columns(pl.coalesce("of_master", "cause").alias("cause")).select(breaks.columns)


def _causes(slaves: pl.DataFrame, masters: pl.DataFrame, by: list[str] | tuple[str, ...], reach_s: int) -> pl.DataFrame:
    """Return _row and ``of_master``: the cause of the last row of a master that a slave can have copied."""
    latest = masters.sort("to_ts", "_row").unique([*by, "from_ts"], keep="last")
    found = as_of(slaves, latest, list(by), "to_ts", {"began": "from_ts"}, right_at="from_ts")
    met = found.join(
        latest.select(*by, pl.col("from_ts").alias("began"), pl.col("to_ts").alias("ended"), of_master="cause"),
        [*by, "began"],
    )
    in_reach = pl.col("ended") >= pl.col("from_ts") - pl.duration(seconds=reach_s)
    return met.filter(in_reach).select("_row", "of_master")
