"""The part of a pass that runs in Spark's Python workers: rows of a partition in, packed results and gold rows out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from mqreplay.engines.packing import packed, unpacked
from mqreplay.engines.passes import PIECE_ROWS, Asked, Pass
from mqreplay.engines.rows import FrameRows
from mqreplay.engines.shards import ALL
from mqreplay.lake.ipc_blobs import Batches, blob_of
from mqreplay.lake.storage import Storage, use_storage
from mqreplay.lake.table_writer import as_table

TASK = "_task"  # a column with the number of the task that a row is for
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
    parts: Mapping[int, str] = field(default_factory=dict)  # of the numbers of tasks that do a part of the work

    @property
    def schema(self) -> pa.Schema:
        """Return the columns of packed rows, and of the cases of each rule as structs."""
        return pa.schema([*PACKED, *(pa.field(rule.name, pa.struct(list(rule.reads))) for rule in self.step.rules)])

    def run(self) -> bytes:
        """Run the pass without rows; return the packed result."""
        gold = _PackedGold(self.schemas)
        result = self.step.run(FrameRows(self.schemas, self.frames), ALL, self.inputs, gold)
        return packed((result, gold.rows))

    def ask(self, frames: Mapping[str, pl.DataFrame], part: str) -> Iterator[pa.RecordBatch]:
        """Call the pass's function with these rows; yield rows of ``schema``: gold rows, the result, and cases."""
        gold, shard = _PackedGold(self.schemas), replace(ALL, part=part)
        made = self.step.function(FrameRows(self.schemas, {**self.frames, **frames}), shard, self.inputs, gold)
        cases, rest = made if isinstance(made, Asked) else ((), made)
        for tag, data in gold.packed(rest):
            yield self._rows({"_table": pa.array([tag]), "rows": pa.array([data], pa.binary())})
        for rule, asked in zip(self.step.rules, cases, strict=True):
            table = asked.to_arrow().select(rule.reads.names).cast(rule.reads)
            for batch in table.to_batches():
                yield self._rows({"_table": pa.array([rule.name] * len(batch)), rule.name: batch.to_struct_array()})

    def _rows(self, columns: Mapping[str, pa.Array]) -> pa.RecordBatch:
        count, schema = len(columns["_table"]), self.schema
        arrays = [columns[field.name] if field.name in columns else pa.nulls(count, field.type) for field in schema]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def finish(self, asked: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Finish the pass with rows of `ask` in which cases have their answers; yield rows of PACKED."""
        assert self.step.finish is not None
        gold, rest = _PackedGold(self.schemas), None
        answers: dict[str, list[pa.RecordBatch]] = {rule.name: [] for rule in self.step.rules}
        for batch in asked:
            tags = batch.column("_table")
            for name, listed in answers.items():
                mine = batch.column(name).filter(pc.equal(tags, name))
                listed.append(pa.RecordBatch.from_struct_array(mine))
            for row in batch.select(PACKED.names).filter(batch.column("rows").is_valid()).to_pylist():
                if row["_table"] == RESULT:
                    rest, gold.rows = unpacked(row["rows"])
                else:
                    yield pa.RecordBatch.from_pylist([row], schema=PACKED)
        if rest is None:  # the partition has no rows
            return
        frames = [pl.DataFrame(pl.from_arrow(pa.Table.from_batches(listed))) for listed in answers.values()]
        for tag, data in gold.packed(self.step.finish(rest, frames, self.inputs, gold)):
            yield pa.RecordBatch.from_pylist([{"_table": tag, "rows": data}], schema=PACKED)


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

    def packed(self, result: Any) -> Iterator[tuple[str, bytes]]:
        """Yield tags and packed rows, those of the result last."""
        yield from self.tables
        yield RESULT, packed((result, self.rows))


def partition_function(data: bytes, name: str) -> Batches:
    """Return a packed SparkTask as a function of mapInArrow. Plans and Spark's UI show its name."""
    return _named(name, lambda batches: _run_partition(data, batches))


def finishing_function(data: bytes, name: str) -> Batches:
    """Return the second half of a packed SparkTask as a function of mapInArrow."""
    return _named(name, lambda batches: _finish_partition(data, batches))


def _named(name: str, run: Batches) -> Batches:
    run.__name__ = name
    return run


def _run_partition(data: bytes, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Run a packed SparkTask on the rows of a partition: each table is a column of structs, null in others' rows."""
    rows: dict[str, list[pa.RecordBatch]] = {}
    count, part = 0, ""
    for batch in batches:
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            if name == TASK:
                part = _task(data).parts.get(column[0].as_py(), "") if len(column) else part
            elif column.null_count < len(column):
                rows.setdefault(name, []).append(pa.RecordBatch.from_struct_array(column.drop_null()))
        count += len(batch)
        # Without a key, any part of the rows will do, and a partition may have most of a table.
        if count >= PIECE_ROWS and not _task(data).step.is_dealt:
            yield from _ask(data, rows, part)
            count = 0
    if rows:
        yield from _ask(data, rows, part)


def _ask(data: bytes, rows: dict[str, list[pa.RecordBatch]], part: str) -> Iterator[pa.RecordBatch]:
    """Run a packed SparkTask on the rows by table, and remove them."""
    task = _task(data)
    use_storage(task.storage)
    frames = {name.replace("__", "."): _frame(rows.pop(name)) for name in list(rows)}
    yield from task.ask(frames, part)


def _finish_partition(data: bytes, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    task = _task(data)
    use_storage(task.storage)
    yield from task.finish(batches)


@lru_cache(maxsize=1)
def _task(data: bytes) -> SparkTask:
    task: SparkTask = unpacked(data)
    return task


def _frame(batches: list[pa.RecordBatch]) -> pl.DataFrame:
    return pl.DataFrame(pl.from_arrow(pa.Table.from_batches(batches))).rechunk()
