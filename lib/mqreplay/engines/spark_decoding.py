"""Decoding on Spark: a DataFrame of files goes through mapInArrow, and its rows into Delta tables.

Many tables get a few rows each: these are collected, and committed by delta-rs as on one machine. Spark writes the
others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl
import pyarrow as pa

from mqreplay.engines.engine import Context, Decoded, DecodedTable, Decoder, Item, NewRows, Result
from mqreplay.engines.file_decoding import FileNewRows, TableDecoders, WithResult
from mqreplay.engines.packing import item_frame, packed, unpacked
from mqreplay.engines.spark_tables import FEW_ROWS, SparkTables, described, known_errors
from mqreplay.lake.ipc_blobs import batches_of, blob_of, blob_tables
from mqreplay.lake.row_filter import RowFilter
from mqreplay.lake.storage import storage, use_storage
from mqreplay.lake.table_writer import TableWriter

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FILE_ROWS = 1_000_000  # rows of a file that Spark writes, at most
# Rows of a table are packed, since each table has other columns; the last row of an item has its result.
PACKED = pa.schema(
    [("number", pa.int32()), ("table", pa.string()), ("rows", pa.int64()), ("data", pa.binary()), ("done", pa.bool_())]
)
PACKED_DDL = "number INT, table STRING, rows BIGINT, data BINARY, done BOOLEAN"


class SparkDecoderRunner(TableDecoders):
    """Decoders as functions of mapInArrow."""

    def __init__(self, tables: SparkTables, cluster: str) -> None:
        """Take the tables and the cluster of the rows."""
        super().__init__(tables.warehouse, cluster)
        self._tables = tables
        self._cached: list[DataFrame] = []

    def run(
        self,
        decode: Decoder[Item, Context, Result],
        items: Sequence[tuple[DecodedTable, Item]],
        context: Context,
    ) -> Decoded[Result]:
        """As DecoderRunner.run: two jobs, and one for each table with many rows."""
        if not items:
            return Decoded([], {})
        from pyspark import StorageLevel

        tables = {table.name: table for table, _ in items}
        writers = self.writers(items)
        schemas = {name: writer.asked for name, writer in writers.items()}
        task = _task(packed((decode, schemas, context, storage())), decode.__name__)
        cached = (
            item_frame(self._tables.session, [(table.name, item) for table, item in items])
            .mapInArrow(task, PACKED_DDL)
            .persist(StorageLevel.DISK_ONLY)
        )
        self._cached.append(cached)
        with described(self._tables.session, f"{decode.__name__.replace('_', ' ')} of {self._cluster}"), known_errors():
            ends = {row.number: row for row in cached.where("done").collect()}
        results = [unpacked(bytes(ends[number].data)) for number in range(len(items))]
        counts = dict.fromkeys(tables, 0)
        for row in ends.values():
            counts[row.table] += row.rows
        most = FEW_ROWS if self._tables.may_write(self._cluster) else sum(counts.values())
        few = [name for name, count in counts.items() if 0 < count <= most]
        found: dict[str, list[pa.RecordBatch]] = {name: [] for name in few}
        if few:
            for row in _of_table(cached, *few).collect():
                found[row.table] += batches_of(bytes(row.data))
        rows: dict[str, NewRows] = {}
        for name, table in tables.items():
            if counts[name] <= most:
                rows[name] = FileNewRows(self._warehouse, name, writers[name].write(found.get(name, [])))
            else:
                rows[name] = SparkNewRows(self._tables, table, writers[name], _of_table(cached, name), counts[name])
        return Decoded(results, rows)

    def __exit__(self, *_: object) -> None:
        for frame in self._cached:
            frame.unpersist()
        self._cached.clear()


@dataclass(frozen=True)
class SparkNewRows:
    """New rows of one table, packed in the column ``data`` of a DataFrame."""

    tables: SparkTables
    table: DecodedTable
    writer: TableWriter
    blobs: DataFrame
    count: int

    def scan(self) -> pl.LazyFrame:
        """As NewRows.scan: the driver has all rows in memory."""
        batches = [batch for row in self.blobs.collect() for batch in batches_of(bytes(row.data))]
        rows = pa.Table.from_batches(map(self.writer.completed, batches), self.writer.schema)
        return pl.DataFrame(pl.from_arrow(rows)).lazy()

    def without(self, gone: pl.Expr) -> NewRows:
        """As NewRows.without: the driver has all rows in memory, and commits them."""
        name, warehouse = self.table.name, self.tables.warehouse
        kept = self.scan().filter(~gone.fill_null(False)).collect()
        return FileNewRows(warehouse, name, warehouse.writer(name).write_rows(kept))

    def commit(self, replaced: RowFilter | None) -> None:
        """As NewRows.commit."""
        files = max(2, -(-self.count // FILE_ROWS))
        self.tables.commit(self.table.name, self.blobs.select("data").coalesce(files), self.writer, replaced)


def _of_table(cached: DataFrame, *names: str) -> DataFrame:
    """Return the packed rows of tables."""
    listed = ", ".join(f"'{name}'" for name in names)
    return cached.where(f"NOT done AND table IN ({listed})").select("table", "data")


def _task(data: bytes, shown: str) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function of mapInArrow: it decodes items, and packs their rows and results."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        decode, schemas, context, how = unpacked(data)
        use_storage(how)
        for batch in batches:
            for row in batch.to_pylist():
                name, item = unpacked(row["item"])
                rows = WithResult(decode(item, schemas[name], context))
                total = 0
                for blob in blob_tables(rows):
                    total += blob.num_rows
                    yield _packed_row(row["number"], name, blob.num_rows, blob_of(blob), done=False)
                yield _packed_row(row["number"], name, total, packed(rows.result), done=True)

    run.__name__ = shown  # in plans and Spark's UI
    return run


def _packed_row(number: int, table: str, rows: int, data: bytes, *, done: bool) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(
        [{"number": number, "table": table, "rows": rows, "data": data, "done": done}], schema=PACKED
    )
