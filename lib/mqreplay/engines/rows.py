"""The rows that tasks and the driver read: from files of tables, or from frames that Spark gives to a task."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import polars as pl
import pyarrow as pa

from mqreplay.engines.shards import Counts, Shard, count_buckets, total
from mqreplay.lake.buckets import Key, buckets
from mqreplay.lake.row_filter import Days
from mqreplay.lake.table_files import Buckets, TableFiles, read_buckets, read_files
from mqreplay.lake.warehouse import Warehouse

Wanted = pl.Expr | Shard | None  # which rows: those for which an expression is true, those of a shard, or all


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
    """Rows in the files of tables.

    By table: ``keys`` of its shards (files with buckets are sorted by it); ``unread`` columns, which all columns lack.
    """

    cluster: str
    files: Mapping[str, TableFiles]
    keys: Mapping[str, Key] = field(default_factory=dict)
    unread: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def read(
        self, table: str, days: Days, wanted: pl.Expr, of: Wanted = None, columns: Sequence[str] | None = None
    ) -> pl.DataFrame:
        """As RowSource.read."""
        files = self.files[table]
        gone = self.unread.get(table, ())
        names = columns if columns is not None else [name for name in _names(files.schema) if name not in gone]
        mine = days.of_cluster(self.cluster).condition & wanted
        if isinstance(of, Shard):
            return read_files(files, names, mine, Buckets(of.low, of.high, self.keys[table]))
        return read_files(files, names, mine if of is None else mine & of)

    def counts(self, tables: Mapping[str, Key], days: Days) -> Counts:
        """As CountedRows.counts."""
        mine = days.of_cluster(self.cluster).condition
        found = [count_buckets(read_buckets(self.files[table], key, mine)) for table, key in tables.items()]
        return total(found)

    def pieces(self, tables: Sequence[str], rows: int) -> list[FileRows]:
        """Return the files of these tables in pieces of about this number of rows; one if they are few."""
        if sum(self.files[table].rows for table in tables) <= rows:
            return [self]
        none = self._without_rows(tables)
        pieces = [none | {table: piece} for table in tables for piece in self.files[table].pieces(rows)]
        return [replace(self, files={**self.files, **piece}) for piece in pieces]

    def of_part(self, tables: Collection[str]) -> FileRows:
        """Return these rows for a part of the work: of the tables that have keys, only ``tables`` have rows."""
        return replace(self, files={**self.files, **self._without_rows(self.keys.keys() - tables)})

    def _without_rows(self, tables: Iterable[str]) -> dict[str, TableFiles]:
        return {table: replace(self.files[table], files=()) for table in tables}


def file_rows(warehouse: Warehouse, cluster: str, days: Mapping[str, Days]) -> FileRows:
    """Return the files that may hold rows of the cluster and days."""
    return FileRows(cluster, {name: warehouse.files(name, each.of_cluster(cluster)) for name, each in days.items()})


@dataclass(frozen=True)
class NamedRows:
    """Rows that the driver reads by the names of tables in a catalog."""

    warehouse: Warehouse
    cluster: str

    def read(
        self, table: str, days: Days, wanted: pl.Expr, of: Wanted = None, columns: Sequence[str] | None = None
    ) -> pl.DataFrame:
        """As RowSource.read; the driver reads no shards."""
        assert not isinstance(of, Shard)
        rows = self.warehouse.read(table, days.of_cluster(self.cluster)).filter(wanted if of is None else wanted & of)
        names = columns if columns is not None else _names(self.warehouse.contracts[table].arrow_schema)
        return rows.select(names).collect()


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


def _names(schema: pa.Schema) -> list[str]:
    """Return the columns of a table without the cluster, in order."""
    return [name for name in schema.names if name != "cluster"]
