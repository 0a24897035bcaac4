"""Rows as binary values of a DataFrame: each value holds many rows in Arrow's IPC format; functions for mapInArrow.

Tables have different columns, so rows of several tables fit into one DataFrame. Every version of PySpark carries them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import polars as pl
import pyarrow as pa

BLOB_ROWS = 100_000  # rows of a value
Batches = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def blob_tables(rows: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Join batches to tables of about BLOB_ROWS rows."""
    waiting: list[pa.RecordBatch] = []
    for batch in rows:
        waiting.append(batch)
        if sum(each.num_rows for each in waiting) >= BLOB_ROWS:
            yield pa.Table.from_batches(waiting)
            waiting = []
    if waiting:
        yield pa.Table.from_batches(waiting)


def blob_of(table: pa.Table) -> bytes:
    """Return the rows as one value."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as out:
        out.write_table(table)
    return bytes(sink.getvalue())


def batches_of(blob: bytes) -> list[pa.RecordBatch]:
    """Return the rows of a value."""
    batches: list[pa.RecordBatch] = pa.ipc.open_stream(blob).read_all().to_batches()
    return batches


def unpacked_rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of the values in the first column: a function of mapInArrow."""
    for batch in batches:
        for blob in batch.column(0):
            yield from batches_of(blob.as_py())


def filtered(rows: pa.RecordBatch, wanted: pl.Expr) -> pa.RecordBatch:
    """Return the rows for which the condition is true."""
    return rows.filter(pl.DataFrame(pl.from_arrow(rows)).select(wanted.alias("keep"))["keep"].to_arrow())


def needed_columns(
    schema: pa.Schema, wanted: pl.Expr | None, columns: Sequence[str] | None
) -> tuple[list[str], list[str]]:
    """Return the columns that are read to select rows, and those that are returned, in the order of the table."""
    names = [name for name in schema.names if columns is None or name in columns]
    asked = {*names, *(wanted.meta.root_names() if wanted is not None else ())}
    return [name for name in schema.names if name in asked], names


def selecting(schema: pa.Schema, wanted: pl.Expr | None, columns: Sequence[str]) -> Batches:
    """Return a function of mapInArrow that yields the wanted rows, or all, with some columns in the types of schema."""

    def select(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            arrays = [batch.column(field.name).cast(field.type) for field in schema]
            rows = pa.RecordBatch.from_arrays(arrays, schema=schema)
            yield (rows if wanted is None else filtered(rows, wanted)).select(columns)

    return select


def packing(select: Batches) -> Batches:
    """Return a function of mapInArrow that packs the rows of another one."""

    def pack(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for table in blob_tables(select(batches)):
            for start in range(0, table.num_rows, BLOB_ROWS):
                blob = blob_of(table.slice(start, BLOB_ROWS))
                yield pa.RecordBatch.from_pydict({"data": [blob]}, schema=pa.schema([("data", pa.binary())]))

    return pack
