"""Decoding on one machine: tasks write Parquet files, and the driver commits them by delta-rs."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import polars as pl
import pyarrow as pa

from mqreplay.engines.engine import Context, Decoded, DecodedTable, Decoder, Engine, Item, Result
from mqreplay.lake.row_filter import RowFilter
from mqreplay.lake.table_writer import TableWriter, WrittenFile
from mqreplay.lake.warehouse import Warehouse


class TableDecoders:
    """What the decoders of all engines need: the warehouse and the cluster of the rows."""

    def __init__(self, warehouse: Warehouse, cluster: str) -> None:
        """Take the warehouse and the cluster."""
        self._warehouse, self._cluster = warehouse, cluster

    def writers(self, items: Sequence[tuple[DecodedTable, Any]]) -> dict[str, TableWriter]:
        """Return a writer for each table of the items."""
        tables = {table.name: table for table, _ in items}
        of_cluster = {"cluster": self._cluster}
        return {name: self._warehouse.writer(name, of_cluster, table.day_of) for name, table in tables.items()}

    def none(self, table: DecodedTable) -> FileNewRows:
        """As DecoderRunner.none."""
        return FileNewRows(self._warehouse, table.name, [])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass


class FileDecoderRunner(TableDecoders):
    """Decoders as calls of Engine.map."""

    def __init__(self, engine: Engine, warehouse: Warehouse, cluster: str) -> None:
        """Take the engine, and the warehouse and cluster of the rows."""
        super().__init__(warehouse, cluster)
        self._engine = engine

    def run(
        self,
        decode: Decoder[Item, Context, Result],
        items: Sequence[tuple[DecodedTable, Item]],
        context: Context,
    ) -> Decoded[Result]:
        """As DecoderRunner.run."""
        writers = self.writers(items)
        written: dict[str, list[WrittenFile]] = {name: [] for name in writers}
        results: list[Result] = []
        named = [(table.name, item) for table, item in items]
        done = self._engine.map(_Write(decode.__name__), named, (decode, writers, context))
        for (name, _), (result, files) in zip(named, done, strict=True):
            results.append(result)
            written[name] += files
        return Decoded(results, {name: FileNewRows(self._warehouse, name, files) for name, files in written.items()})


@dataclass(frozen=True)
class FileNewRows:
    """New rows in written files of a table."""

    warehouse: Warehouse
    name: str
    files: list[WrittenFile]

    @property
    def count(self) -> int:
        """As NewRows.count."""
        return sum(file.rows for file in self.files)

    def scan(self) -> pl.LazyFrame:
        """As NewRows.scan."""
        return self.warehouse.written_rows(self.name, self.files)

    def without(self, gone: pl.Expr) -> FileNewRows:
        """As NewRows.without."""
        return FileNewRows(self.warehouse, self.name, self.warehouse.without(self.name, self.files, gone))

    def commit(self, replaced: RowFilter | None) -> None:
        """As NewRows.commit, in one commit."""
        self.warehouse.commit_files(self.name, self.files, replaced)


@dataclass(frozen=True)
class _Write:
    """A task of Engine.map: it decodes an item of a table and writes its rows. ``__name__`` is the decoder's."""

    __name__: str

    def __call__(
        self, named: tuple[str, Any], shared: tuple[Decoder[Any, Any, Any], Mapping[str, TableWriter], Any]
    ) -> tuple[Any, list[WrittenFile]]:
        """Return the result of the decoder, and the files."""
        (name, item), (decode, writers, context) = named, shared
        rows = WithResult(decode(item, writers[name].asked, context))
        files = writers[name].write(rows)
        return rows.result, files


class WithResult:
    """The rows of a generator; after the last one, ``result`` is what the generator returned."""

    def __init__(self, rows: Generator[pa.RecordBatch, None, Any]) -> None:
        self._rows = rows
        self.result: Any = None

    def __iter__(self) -> Generator[pa.RecordBatch, None, None]:
        self.result = yield from self._rows
