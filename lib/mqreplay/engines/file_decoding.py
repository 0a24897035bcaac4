"""Decoding on one machine: tasks write Parquet files, and the driver commits them by delta-rs."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import polars as pl
import pyarrow as pa

from mqreplay.engines.decoding import Context, Decoded, DecodedTable, Decoder, Item, Result
from mqreplay.engines.engine import Engine
from mqreplay.lake.row_filter import RowFilter
from mqreplay.lake.table_writer import TableWriter, WrittenFile
from mqreplay.lake.warehouse import Warehouse


class FileDecoderRunner:
    """Decoders as calls of Engine.map."""

    def __init__(self, engine: Engine, warehouse: Warehouse, cluster: str) -> None:
        """Take the engine, and the warehouse and cluster of the rows."""
        self._engine, self._warehouse, self._cluster = engine, warehouse, cluster

    def run(
        self,
        decode: Decoder[Item, Context, Result],
        items: Sequence[tuple[DecodedTable, Item]],
        context: Context,
    ) -> Decoded[Result]:
        """As DecoderRunner.run."""
        tables = {table.name: table for table, _ in items}
        writers = {name: self._warehouse.writer(name, self._same, table.day_of) for name, table in tables.items()}
        written: dict[str, list[WrittenFile]] = {name: [] for name in tables}
        results: list[Result] = []
        named = [(table.name, item) for table, item in items]
        for (name, _), (result, files) in zip(
            named, self._engine.map(_Write(decode.__name__), named, (decode, writers, context)), strict=True
        ):
            results.append(result)
            written[name] += files
        return Decoded(results, {name: FileNewRows(self._warehouse, name, files) for name, files in written.items()})

    def none(self, table: DecodedTable) -> FileNewRows:
        """As DecoderRunner.none."""
        return FileNewRows(self._warehouse, table.name, [])

    @property
    def _same(self) -> dict[str, str]:
        return {"cluster": self._cluster}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass


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
