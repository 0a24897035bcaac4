"""Functions for mapInArrow that bring rows of tables with names to the driver."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import polars as pl
import pyarrow as pa

from mqreplay.lake.ipc_blobs import BLOB_ROWS, blob_of, blob_tables
from mqreplay.lake.warehouse import filtered

Batches = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


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
