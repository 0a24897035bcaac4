"""The part of a pass that runs in Spark's Python workers: rows of a partition in, packed results and gold rows out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import polars as pl
import pyarrow as pa

from mqreplay.engines.packing import packed, unpacked
from mqreplay.engines.passes import Pass
from mqreplay.engines.rows import FrameRows
from mqreplay.engines.shards import ALL
from mqreplay.lake.ipc_blobs import blob_of
from mqreplay.lake.storage import Storage, use_storage
from mqreplay.lake.table_writer import as_table

RESULT = "result"  # the tag of a packed result; gold rows have their table's name
PACKED = pa.schema([("_table", pa.string()), ("rows", pa.binary())])
PACKED_SQL = "_table STRING, rows BINARY"


@dataclass(frozen=True)
class SparkTask:
    """What all tasks of a pass share: its input, the schemas of its tables, and the frames that each task gets."""

    step: Pass[Any, Any]
    inputs: Any
    schemas: Mapping[str, pa.Schema]  # without the cluster
    frames: Mapping[str, pl.DataFrame]
    storage: Storage

    def run(self, frames: Mapping[str, pl.DataFrame]) -> Iterator[tuple[str, bytes]]:
        """Call the pass's function with these rows; yield tags and packed rows, the result last."""
        gold = _PackedGold(self.schemas)
        source = FrameRows(self.schemas, {**self.frames, **frames})
        result = self.step.function(source, ALL, self.inputs, gold)
        yield from gold.tables
        yield RESULT, packed((result, gold.rows))


@dataclass
class _PackedGold:
    """Packs gold rows as they come: they take less memory so."""

    schemas: Mapping[str, pa.Schema]
    tables: list[tuple[str, bytes]] = field(default_factory=list)
    rows: dict[str, int] = field(default_factory=dict)

    def add(self, table: str, rows: pl.DataFrame) -> None:
        """As GoldRows.add."""
        self.rows[table] = self.rows.get(table, 0) + len(rows)
        if len(rows):
            self.tables.append((table, blob_of(as_table(rows, self.schemas[table], table))))


def partition_function(data: bytes, name: str) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return a packed SparkTask as a function of mapInArrow. Plans and Spark's UI show its name."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return _run_partition(data, batches)

    run.__name__ = name
    return run


def _run_partition(data: bytes, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Run a packed SparkTask on the rows of a partition: each table is a column of structs, null in others' rows."""
    rows: dict[str, list[pa.RecordBatch]] = {}
    for batch in batches:
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            if column.null_count < len(column):
                rows.setdefault(name, []).append(pa.RecordBatch.from_struct_array(column.drop_null()))
    if not rows:
        return
    task = _task(data)
    use_storage(task.storage)
    frames = {name.replace("__", "."): _frame(rows.pop(name)) for name in list(rows)}
    for tag, made in task.run(frames):
        yield pa.RecordBatch.from_pydict({"_table": [tag], "rows": [made]}, schema=PACKED)


@lru_cache(maxsize=1)
def _task(data: bytes) -> SparkTask:
    task: SparkTask = unpacked(data)
    return task


def _frame(batches: list[pa.RecordBatch]) -> pl.DataFrame:
    return pl.DataFrame(pl.from_arrow(pa.Table.from_batches(batches))).rechunk()
