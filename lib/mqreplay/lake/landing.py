"""Write rows into Parquet files of a table, in the task that makes them (docs/adr/0016).

The driver commits the files (lake/warehouse.py). Before that, or if the run dies, no reader sees them.
"""

from __future__ import annotations

import datetime as dt
import io
import json
import re
import tempfile
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import polars.selectors as cs
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from mqreplay.errors import ContractError
from mqreplay.lake.buckets import COLUMN as BUCKET
from mqreplay.lake.buckets import Key, buckets, columns_of
from mqreplay.lake.files import files_of, is_remote, joined

GROUP_ROWS = 100_000  # rows of a row group; about as many are in memory
SORTED_ROWS, SORTED_BYTES = 400_000, 128_000_000  # sorted by bucket together, and written as
SORTED_GROUPS = 16  # row groups, so that a task reads only those of its buckets;
LEAST_ROWS = 10_000  # with at least this many rows each
GROUP_BYTES = 64_000_000  # of a row group in memory: 100,000 usual rows have 25 to 40 MB, and one row may have 16 MiB


class Landed(NamedTuple):
    """A file in a table's folder: its name, its size, its rows, and Delta's statistics of them."""

    name: str
    bytes: int
    rows: int
    stats: str


@dataclass(frozen=True)
class Landing:
    """The target of rows and their form.

    ``schema`` is the table's; ``same`` are columns of one value in all rows; ``day_of`` is the instant whose date (UTC)
    is the column day, if the rows lack it. ``required`` columns must not be null. Delta gets the bounds of ``bounded``
    columns. ``repeating`` are the leaf columns with a dictionary. ``shard_key``: files are sorted by its buckets
    (buckets.py). ``checks`` are SQL conditions that each row fulfils.
    """

    folder: str
    schema: pa.Schema
    same: tuple[tuple[str, str], ...]
    day_of: str | None
    required: tuple[str, ...]
    bounded: tuple[str, ...]
    repeating: tuple[str, ...] = ()
    shard_key: Key = ()
    checks: tuple[str, ...] = ()

    @property
    def asked(self) -> pa.Schema:
        """Return the columns that the rows must have."""
        later = {name for name, _ in self.same} | ({"day"} if self.day_of else set())
        return pa.schema([f for f in self.schema if f.name not in later])

    def completed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows with the table's columns. Raises ContractError for a wrong null or a violated check."""
        rows = batch.num_rows
        beside = {name: pa.repeat(pa.scalar(value, self.schema.field(name).type), rows) for name, value in self.same}
        if self.day_of is not None:
            beside["day"] = batch.column(self.day_of).cast(pa.date32())
        arrays = [beside[f.name] if f.name in beside else batch.column(f.name) for f in self.schema]
        made = pa.RecordBatch.from_arrays(arrays, schema=self.schema)
        lacking = [name for name in self.required if made.column(name).null_count]
        if lacking:
            raise ContractError(f"rows for {self.folder} lack {', '.join(lacking)}; a bug in mqreplay")
        for check in self.checks:
            if not all_fulfil(made, check):
                raise ContractError(f"rows for {self.folder} break CHECK ({check}); a bug in mqreplay")
        return made


def all_fulfil(rows: pa.RecordBatch, condition: str) -> bool:
    """Return whether a SQL condition is true for all rows; as in Delta, null does not fulfil it.

    >>> rows = pa.RecordBatch.from_pydict({"a": [1, 2], "b": [1, None]})
    >>> all_fulfil(rows, "a > 0"), all_fulfil(rows, "b > 0"), all_fulfil(rows, "NOT (a <=> b)")
    (True, False, False)
    """
    words = set(re.findall(r"\w+", condition))
    frame = pl.DataFrame(pl.from_arrow(rows.select([name for name in rows.schema.names if name in words])))
    # An instant has no zone in SQL: CAST(day AS TIMESTAMP) is compared with it.
    plain = frame.with_columns(cs.datetime(time_zone="*").dt.replace_time_zone(None))
    return bool(plain.select(pl.sql_expr(condition).fill_null(False).all()).item())


def repeating(schema: pa.Schema, alone: str | None) -> tuple[str, ...]:
    """Return Parquet paths of texts and small numbers, without the unique column ``alone``.

    Offsets and instants hardly repeat: a dictionary of them would take a third of the writing time, and space.

    >>> repeating(pa.schema([("id", pa.string()), ("ids", pa.list_(pa.int32())), ("offset", pa.int64())]), "id")
    ('ids.list.element',)
    """
    empty = io.BytesIO()
    pq.write_table(schema.empty_table(), empty)
    leaves = pq.read_metadata(empty).schema
    found = [leaves.column(number) for number in range(len(leaves))]
    return tuple(leaf.path for leaf in found if leaf.physical_type in ("BYTE_ARRAY", "INT32") and leaf.path != alone)


def land(batches: Iterable[pa.RecordBatch], landing: Landing) -> list[Landed]:
    """Write a stream of rows into one file; no file for no rows. Return its facts."""
    name = f"part-{uuid.uuid4()}.zstd.parquet"
    target = joined(landing.folder, name)
    with _written_at(target) as path:
        return _land(batches, landing, name, path)


@contextmanager
def _written_at(target: str) -> Iterator[str]:
    """Yield where to write a file: a store takes it as a whole, so it is written here first."""
    if not is_remote(target):
        yield target
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "part.parquet")
        yield str(path)
        if path.exists():
            files_of(target).upload(path, target)


def _land(batches: Iterable[pa.RecordBatch], landing: Landing, name: str, path: str) -> list[Landed]:
    file_stats = _FileStats(landing.bounded)
    writer = None
    try:
        for batch in batches:
            if batch.num_rows == 0:
                continue
            if writer is None:
                writer = _Writer(path, landing)
            rows = landing.completed(batch)
            file_stats.saw(rows)
            writer.add(rows)
        if writer is None:
            return []
        writer.flush()
    finally:
        if writer is not None:
            writer.close()
    return [Landed(name, Path(path).stat().st_size, file_stats.rows, file_stats.stats())]


class _Writer:
    """A writer of one file: it buffers batches until they make row groups, sorted by bucket if there is a key."""

    def __init__(self, path: str, landing: Landing) -> None:
        self._key = landing.shard_key
        schema = landing.schema.append(pa.field(BUCKET, pa.int32())) if self._key else landing.schema
        options = {"compression": "zstd", "use_dictionary": list(landing.repeating), "store_schema": False}
        self._file = pq.ParquetWriter(path, schema, **options)
        self._rows, self._bytes = (SORTED_ROWS, SORTED_BYTES) if self._key else (GROUP_ROWS, GROUP_BYTES)
        self._waiting: list[pa.RecordBatch] = []
        self.close = self._file.close

    def add(self, rows: pa.RecordBatch) -> None:
        self._waiting.append(rows)
        if sum(b.num_rows for b in self._waiting) >= self._rows or sum(b.nbytes for b in self._waiting) >= self._bytes:
            self.flush()

    def flush(self) -> None:
        if not self._waiting:
            return
        table = pa.Table.from_batches(self._waiting)
        self._waiting = []
        if not self._key:
            self._file.write_table(table)
            return
        bucket = buckets(pl.DataFrame(pl.from_arrow(table.select(columns_of(self._key)))), self._key).to_numpy()
        order = np.argsort(bucket, kind="stable")
        table = table.take(pa.array(order)).append_column(pa.field(BUCKET, pa.int32()), pa.array(bucket[order]))
        self._file.write_table(table, row_group_size=max(-(-len(table) // SORTED_GROUPS), LEAST_ROWS))


def land_rows(rows: pl.DataFrame, landing: Landing) -> list[Landed]:
    """Write the rows into one file; no file for no rows. Return its facts.

    ``rows`` has the landing's required columns in any order. A map is a list of structs of key and value.
    """
    return land(as_table(rows, landing.asked, landing.folder).to_batches(GROUP_ROWS), landing)


def as_table(rows: pl.DataFrame, schema: pa.Schema, table: str) -> pa.Table:
    """Return the columns of ``schema`` in its types. Raises ContractError if one is missing."""
    if missing := [name for name in schema.names if name not in rows.columns]:
        raise ContractError(f"rows for {table} lack {', '.join(missing)}; a bug in mqreplay")
    return pa.Table.from_arrays([_as_type(rows[f.name].to_arrow(), f.type) for f in schema], schema=schema)


def _as_type(column: pa.Array, kind: pa.DataType) -> pa.Array:
    if not pa.types.is_map(kind):
        return column.cast(kind)
    wide = column.cast(pa.list_(pa.struct([("key", kind.key_type), ("value", kind.item_type)])))
    keys, values = (wide.values.field(name) for name in ("key", "value"))
    offsets = pa.array(wide.offsets.to_numpy(), mask=np.append(wide.is_null().to_numpy(zero_copy_only=False), False))
    return pa.MapArray.from_arrays(offsets, keys, values)


class _FileStats:
    """Rows and bounds of a file, as Delta's protocol has them ("Per-file Statistics")."""

    def __init__(self, bounded: tuple[str, ...]) -> None:
        self.rows = 0
        self._low: dict[str, Any] = dict.fromkeys(bounded)
        self._high: dict[str, Any] = dict.fromkeys(bounded)
        self._nulls = dict.fromkeys(bounded, 0)

    def saw(self, batch: pa.RecordBatch) -> None:
        self.rows += batch.num_rows
        for name in self._nulls:
            column = batch.column(name)
            self._nulls[name] += column.null_count
            ends = pc.min_max(column).as_py()
            if ends["min"] is not None:
                low, high = self._low[name], self._high[name]
                self._low[name] = ends["min"] if low is None else min(low, ends["min"])
                self._high[name] = ends["max"] if high is None else max(high, ends["max"])

    def stats(self) -> str:
        low, high = ({name: _plain(v) for name, v in ends.items() if v is not None} for ends in (self._low, self._high))
        stats = {"numRecords": self.rows, "minValues": low, "maxValues": high, "nullCount": self._nulls}
        return json.dumps(stats)


def _plain(value: Any) -> Any:
    """Return a bound in Delta's form: instants are truncated to milliseconds, which readers expect."""
    if isinstance(value, dt.datetime):
        return value.strftime("%Y-%m-%dT%H:%M:%S.") + f"{value.microsecond // 1000:03d}Z"
    return value.isoformat() if isinstance(value, dt.date) else value
