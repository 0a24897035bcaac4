"""Rows as binary values of a DataFrame: each value holds many rows in Arrow's IPC format.

Tables have different columns, so rows of several tables fit into one DataFrame. Every version of PySpark carries them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

BLOB_ROWS = 100_000  # rows of a value


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
