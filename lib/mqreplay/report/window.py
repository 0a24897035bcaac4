"""The rows that a report shows: those of one cluster's last days."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

import polars as pl

from mqreplay.lake.row_filter import RowFilter
from mqreplay.lake.warehouse import Warehouse


@dataclass(frozen=True)
class Window:
    """The rows of a cluster since a day (UTC); None: all. Only files that may hold such rows are read."""

    warehouse: Warehouse
    cluster: str
    since: dt.date | None = None

    def read(self, name: str) -> pl.LazyFrame:
        """Return the rows of a table. Those without a day, or files without an instant, belong to every day."""
        columns = self.warehouse.contracts[name].arrow_schema.names
        if self.since is None:
            return self.warehouse.read(name, RowFilter(self.cluster))
        if "day" in columns:
            return self.warehouse.read(name, RowFilter(self.cluster, between=(self.since, dt.date.max), undated=True))
        rows = self.warehouse.read(name, RowFilter(self.cluster))
        return (
            rows.filter(pl.col("last_ts").dt.date().fill_null(dt.date.max) >= self.since)
            if "last_ts" in columns
            else rows
        )
