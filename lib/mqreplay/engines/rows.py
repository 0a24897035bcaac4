"""The rows that tasks and the driver read: from files of tables, or from frames that Spark gives to a task."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import polars as pl
import pyarrow as pa

from mqreplay.engines.shards import Counts, Shard, count_buckets, total
from mqreplay.lake.buckets import Key, buckets
from mqreplay.lake.row_filter import RowFilter
from mqreplay.lake.table_files import Buckets, TableFiles, read_buckets, read_files
from mqreplay.lake.warehouse import Warehouse

Wanted = pl.Expr | Shard | None  # which rows: those for which an expression is true, those of a shard, or all


@dataclass(frozen=True)
class Days:
    """The days from ``first`` to ``last``, both included; a missing end has no limit."""

    first: dt.date | None = None
    last: dt.date | None = None

    @property
    def condition(self) -> pl.Expr:
        """Return whether a row is of these days."""
        day = pl.col("day")
        if self.first is not None and self.last is not None:
            return day.is_between(self.first, self.last)
        if self.first is not None:
            return day >= self.first
        return day <= self.last if self.last is not None else pl.lit(True)

    def of_cluster(self, cluster: str) -> RowFilter:
        """Return the selection of a cluster's rows of these days."""
        if self == Days():
            return RowFilter(cluster)
        return RowFilter(cluster, between=(self.first or dt.date.min, self.last or dt.date.max))


class RowSource(Protocol):
    """Rows of one cluster by table."""

    def read(
        self,
        table: str,
        days: Days,
        wanted: pl.Expr,
        of: Wanted = None,
        columns: Sequence[str] | None = None,
    ) -> pl.DataFrame:
        """Return the ``wanted`` rows of these days: all, or those of a shard or those for which ``of`` is true.

        ``columns`` None: all except the cluster.
        """
        ...


class CountedRows(RowSource, Protocol):
    """Rows that can be counted by their shard."""

    def counts(self, tables: Mapping[str, Key], days: Days) -> Counts:
        """Return the number of rows of these days in each bucket of the tables' keys."""
        ...


@dataclass(frozen=True)
class FileRows:
    """Rows in the files of tables. ``keys``: by table, the key of its shards; files with buckets are sorted by it."""

    cluster: str
    files: Mapping[str, TableFiles]
    keys: Mapping[str, Key] = field(default_factory=dict)

    def read(
        self, table: str, days: Days, wanted: pl.Expr, of: Wanted = None, columns: Sequence[str] | None = None
    ) -> pl.DataFrame:
        """As RowSource.read."""
        files = self.files[table]
        names = columns if columns is not None else [name for name in files.schema.names if name != "cluster"]
        mine = (pl.col("cluster") == self.cluster) & days.condition & wanted
        if isinstance(of, Shard):
            return read_files(files, names, mine, Buckets(of.low, of.high, self.keys[table]))
        return read_files(files, names, mine if of is None else mine & of)

    def counts(self, tables: Mapping[str, Key], days: Days) -> Counts:
        """As CountedRows.counts."""
        mine = (pl.col("cluster") == self.cluster) & days.condition
        found = [count_buckets(read_buckets(self.files[table], key, mine)) for table, key in tables.items()]
        return total(found)

    def pieces(self, tables: Sequence[str], rows: int) -> list[FileRows]:
        """Return the files of these tables in pieces of about this number of rows; one if they are few."""
        if sum(self.files[table].rows for table in tables) <= rows:
            return [self]
        none = {table: replace(self.files[table], files=()) for table in tables}
        pieces = [none | {table: piece} for table in tables for piece in self.files[table].pieces(rows)]
        return [replace(self, files={**self.files, **piece}) for piece in pieces]


def file_rows(warehouse: Warehouse, cluster: str, days: Mapping[str, Days]) -> FileRows:
    """Return the files that may hold rows of the cluster and days."""
    return FileRows(cluster, {name: warehouse.files(name, each.of_cluster(cluster)) for name, each in days.items()})


@dataclass(frozen=True)
class FrameRows:
    """Rows in frames, all of one task. ``schemas``: the columns of each table; a table without a frame has no rows."""

    schemas: Mapping[str, pa.Schema]
    frames: Mapping[str, pl.DataFrame] = field(default_factory=dict)

    def read(
        self, table: str, days: Days, wanted: pl.Expr, of: Wanted = None, columns: Sequence[str] | None = None
    ) -> pl.DataFrame:
        """As RowSource.read: a shard is what the task has, so it selects nothing."""
        schema = pl.Schema(self.schemas[table])
        names = columns if columns is not None else [name for name in schema if name != "cluster"]
        rows = self.frames.get(table, pl.DataFrame(schema=schema))
        chosen = days.condition & wanted
        return rows.filter(chosen & of if isinstance(of, pl.Expr) else chosen).select(names)

    def counts(self, tables: Mapping[str, Key], days: Days) -> Counts:
        """As CountedRows.counts."""
        found = {table: rows.filter(days.condition) for table, rows in self.frames.items() if table in tables}
        return total([count_buckets(buckets(rows, tables[table])) for table, rows in found.items()])
