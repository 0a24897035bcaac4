"""The rows that a report shows: those of one cluster's last days, or of one night."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

import polars as pl

from mqreplay.lake.row_filter import RowFilter
from mqreplay.lake.warehouse import Warehouse


@dataclass(frozen=True)
class Window:
    """The rows of a cluster from a day to another (UTC); None: all. Only files that may hold such rows are read."""

    warehouse: Warehouse
    cluster: str
    since: dt.date | None = None
    until: dt.date | None = None

    def read(self, name: str) -> pl.LazyFrame:
        """Return the rows of a table. Those without a day, or files without an instant, belong to every day."""
        columns = self.warehouse.contracts[name].arrow_schema.names
        since, until = self.since or dt.date.min, self.until or dt.date.max
        if (since, until) == (dt.date.min, dt.date.max):
            return self.warehouse.read(name, RowFilter(self.cluster))
        if "day" in columns:
            return self.warehouse.read(name, RowFilter(self.cluster, between=(since, until), undated=True))
        rows = self.warehouse.read(name, RowFilter(self.cluster))
        if "last_ts" not in columns:
            return rows
        first, last = (pl.col(ts).dt.date() for ts in ("first_ts", "last_ts"))
        return rows.filter((last.fill_null(dt.date.max) >= since) & (first.fill_null(dt.date.min) <= until))
