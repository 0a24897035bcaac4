"""Passes on one machine: tasks read the files of silver tables, and write files of gold tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl

from mqreplay.engines.engine import Engine
from mqreplay.engines.passes import PIECE_ROWS, Input, Pass, Result, RowFunction
from mqreplay.engines.rows import CountedRows, FileRows, Wanted
from mqreplay.engines.shards import ALL, Counts, Shard
from mqreplay.lake.buckets import Key
from mqreplay.lake.row_filter import Days, RowFilter
from mqreplay.lake.table_writer import TableWriter, WrittenFile
from mqreplay.lake.warehouse import Warehouse

Files = dict[str, list[WrittenFile]]  # by table
WRITERS = 3


@dataclass(frozen=True)
class GoldTarget:
    """The warehouse and the cluster of gold rows."""

    warehouse: Warehouse
    cluster: str

    def writer(self, table: str) -> TableWriter:
        """Return what tasks write the rows of a table with."""
        return self.warehouse.writer(table, {"cluster": self.cluster})


class FilePassRunner:
    """Passes as calls of Engine.map. Without a target, gold rows are not written."""

    def __init__(self, engine: Engine, source: FileRows, target: GoldTarget | None) -> None:
        """Take the engine, the files of the day, and the target."""
        self._engine, self._source, self._target = engine, source, target
        self._files: Files = {}

    @property
    def source(self) -> FileRows:
        """As PassRunner.source."""
        return self._source

    def run(self, step: Pass[Input, Result], shards: Sequence[Shard], inputs: Input) -> Iterator[Result]:
        """As PassRunner.run, in the order of the shards."""
        writers = {table: self._target.writer(table) for table in step.gold} if self._target is not None else {}
        self._files |= {table: [] for table in step.gold}
        keys = {table.name: table.key for table in step.tables if table.key is not None}
        unread = {table.name: table.unread for table in step.tables}
        shared = _Shared(step, inputs, replace(self._source, keys=keys, unread=unread), writers)
        items: Sequence[Shard | FileRows] = shards
        if not step.is_dealt:
            items = self._source.pieces([table.name for table in step.tables], PIECE_ROWS)
        for result, files in self._engine.map(_NamedTask(step.name), items, shared):
            for table, written in files.items():
                self._files[table] += written
            yield result

    def commit(self, replaced: RowFilter | None) -> None:
        """As PassRunner.commit."""
        if self._target is None:
            return
        warehouse = self._target.warehouse
        with ThreadPoolExecutor(WRITERS) as pool:
            list(pool.map(lambda each: warehouse.commit_files(each[0], each[1], replaced), self._files.items()))


@dataclass(frozen=True)
class _Shared:
    step: Pass[Any, Any]
    inputs: Any
    source: FileRows
    writers: Mapping[str, TableWriter]


@dataclass
class _FileGold:
    """Writes each frame of gold rows at once, so that a task does not hold it."""

    writers: Mapping[str, TableWriter]
    files: Files = field(default_factory=dict)

    def add(self, table: str, rows: pl.DataFrame) -> None:
        """As GoldRows.add."""
        if table in self.writers:
            self.files.setdefault(table, []).extend(self.writers[table].write_rows(rows))


@dataclass(frozen=True)
class _NamedTask:
    """The function of Engine.map, with the name of the pass."""

    __name__: str

    def __call__(self, item: Shard | FileRows, shared: _Shared) -> tuple[Any, Files]:
        gold = _FileGold(shared.writers)
        source, shard = (shared.source, item) if isinstance(item, Shard) else (item, ALL)
        step, inputs = shared.step, shared.inputs
        if shard.part:
            source = source.of_part(step.parts[shard.part])
        return step.run(with_row_functions(step, source, inputs), shard, inputs, gold), gold.files


def with_row_functions(step: Pass[Any, Any], source: CountedRows, inputs: Any) -> CountedRows:
    """Return the source; the rows of tables with a row function have its columns, too."""
    functions = {table.name: table.function for table in step.tables if table.function is not None}
    return _ComputedRows(source, functions, inputs) if functions else source


@dataclass(frozen=True)
class _ComputedRows:
    source: CountedRows
    functions: Mapping[str, RowFunction[Any, Any]]
    inputs: Any

    def read(
        self, table: str, days: Days, wanted: pl.Expr, of: Wanted = None, columns: Sequence[str] | None = None
    ) -> pl.DataFrame:
        """As RowSource.read."""
        rows, of_row = self.source.read(table, days, wanted, of, columns), self.functions.get(table)
        if of_row is None or columns is not None:
            return rows
        if of_row.before is not None:
            rows = rows.with_columns(of_row.before.of(rows))
        return rows.hstack(of_row.function(rows.select(of_row.reads), of_row.settings(self.inputs)))

    def counts(self, tables: Mapping[str, Key], days: Days) -> Counts:
        """As CountedRows.counts."""
        return self.source.counts(tables, days)
