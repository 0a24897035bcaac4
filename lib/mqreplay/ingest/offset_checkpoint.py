"""The consumer offsets at the start of each day, stored once, so that a night does not read all earlier nights.

silver.offset_change holds only changes: the offset at an instant is that of the last change, which may be long ago. For
each day after the first, silver.offset_checkpoint holds the last change of each offset before it, made from the rows of
the previous day. If a day is missing, its rows are made from the last available day and the changes since.
"""

from __future__ import annotations

import datetime as dt

import polars as pl

from mqreplay.lake.row_filter import RowFilter
from mqreplay.lake.warehouse import Warehouse

CHECKPOINT, OFFSET_CHANGES = "silver.offset_checkpoint", "silver.offset_change"
CHAIN = ["source_name", "topic", "consumer_group", "broker_name", "queue_id"]
OFFSET_SOURCE = ["cluster", "broker_id", "client_id"]  # columns of a source


class OffsetCheckpoint:
    """The stored offsets of one cluster. Use it under the warehouse's lock; days are in UTC."""

    def __init__(self, warehouse: Warehouse, cluster: str) -> None:
        """Read which days are stored."""
        self._warehouse, self._cluster = warehouse, cluster
        kept = warehouse.read(CHECKPOINT, RowFilter(cluster)).select("day").unique().collect()
        self._days: set[dt.date] = set(kept["day"])

    def lacks(self, day: dt.date) -> bool:
        """Return whether there are offsets at the start of the day that are not stored."""
        if day in self._days:
            return False
        return any(kept < day for kept in self._days) or not self._before(day).limit(1).collect().is_empty()

    def keep(self, day: dt.date) -> None:
        """Store the offsets at the start of the day if it `lacks` them."""
        if self.lacks(day):
            self.add(day)

    def add(self, day: dt.date) -> None:
        """Store the offsets at the start of the day, which it `lacks`."""
        rows = self.last_before(day).with_columns(day=pl.lit(day)).collect(engine="streaming")
        self._warehouse.replace_rows(CHECKPOINT, rows, None)
        self._days.add(day)

    def forget(self, after: dt.date, until: dt.date) -> None:
        """Remove the offsets of days after the first up to the second day: the changes before them will differ."""
        wrong = frozenset(kept for kept in self._days if after < kept <= until)
        if wrong:
            self._warehouse.replace_rows(CHECKPOINT, [], RowFilter(self._cluster, wrong))
            self._days -= wrong

    def last_before(self, day: dt.date) -> pl.LazyFrame:
        """Return the last row of silver.offset_change of each offset before the day, without its day and file."""
        changes = self._before(day)
        last = pl.col("previous_offset", "new_offset", "from_ts").max_by("to_ts")
        return changes.group_by(*CHAIN, *OFFSET_SOURCE).agg(last, pl.col("to_ts").max())

    def from_day(self, day: dt.date) -> pl.LazyFrame:
        """Return rows of silver.offset_change from the day on, and the last earlier row of each offset.

        Stored rows have no source_digest.
        """
        kept = max((kept for kept in self._days if kept <= day), default=None)
        if kept is None:
            return self._rows(OFFSET_CHANGES, dt.date.min, dt.date.max)
        before = self._rows(CHECKPOINT, kept, kept).with_columns(day=pl.col("to_ts").dt.date())
        return pl.concat([self._rows(OFFSET_CHANGES, kept, dt.date.max), before], how="diagonal")

    def _before(self, day: dt.date) -> pl.LazyFrame:
        return self.from_day(day).filter(pl.col("day") < day)

    def _rows(self, name: str, first: dt.date, last: dt.date) -> pl.LazyFrame:
        return self._warehouse.read(name, RowFilter(self._cluster, between=(first, last)))
