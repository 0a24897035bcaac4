"""Write rows into Parquet files of a table, in the task that makes them (docs/adr/0016).

The driver commits the files (lake/delta_table.py). Before that, or if the run dies, no reader sees them.
"""

from __future__ import annotations

import datetime as dt
import io
import json
import re
import tempfile
import uuid
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import numpy as np
import polars as pl
import polars.selectors as cs
import pyarrow as pa
import pyarrow.parquet as pq

from mqreplay.lake.buckets import COLUMN as BUCKET
from mqreplay.lake.buckets import Key, buckets, columns_of
from mqreplay.lake.data_checksums import checksum_of
from mqreplay.lake.files import files_of, is_remote, joined
from mqreplay.words.errors import ContractError, InputError

GROUP_ROWS = 100_000  # rows of a row group; about as many are in memory
SORTED_ROWS, SORTED_BYTES = 400_000, 128_000_000  # sorted by bucket together, and written as
SORTED_GROUPS = 16  # row groups, so that a task reads only those of its buckets;
LEAST_ROWS = 10_000  # with at least this many rows each
OPEN_FILES = 16  # of one writer, each of another partition; clients' clocks may be off by any number of days
GROUP_BYTES = 64_000_000  # of a row group in memory: 100,000 usual rows have 25 to 40 MB, and one row may have 16 MiB
NAME_BYTES = 255  # of a folder in most file systems
# Instants that readers of Delta's log can parse: of the years 1 to 9999, in microseconds since 1970.
LEAST_US, MOST_US = -62_135_596_800_000_000, 253_402_300_799_999_000
EPOCH = dt.date(1970, 1, 1)
HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"  # null for readers of a partition's folder

Partition = tuple[tuple[str, str], ...]  # names and values of the partition's columns


class WrittenFile(NamedTuple):
    """A file in a table's folder: its path below the folder, its size, its rows, and the values of its partition.

    ``stats`` are those of Delta's log, in JSON.
    """

    path: str
    bytes: int
    rows: int
    partition: Partition
    stats: str


@dataclass(frozen=True)
class TableWriter:
    """A writer of rows into Parquet files of a table: one file for each partition. It can be pickled.

    ``schema`` is the table's; ``same`` are columns of one value in all rows; ``day_of`` is the instant whose date (UTC)
    is the column day, if the rows lack it. ``required`` columns must not be null. ``repeating`` are the leaf columns
    with a dictionary. ``shard_key``: files are sorted by its buckets (buckets.py). ``checks`` are SQL conditions that
    each row fulfils. ``bounded`` are columns whose bounds are in the files' stats.
    """

    folder: str
    schema: pa.Schema
    partitioned_by: tuple[str, ...]
    same: tuple[tuple[str, str], ...] = ()
    day_of: str | None = None
    required: tuple[str, ...] = ()
    repeating: tuple[str, ...] = ()
    shard_key: Key = ()
    checks: tuple[str, ...] = ()
    bounded: tuple[str, ...] = ()

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

    def write(self, batches: Iterable[pa.RecordBatch]) -> list[WrittenFile]:
        """Write a stream of rows with the columns ``asked``; return the files, none for no rows."""
        written: list[WrittenFile] = []
        files: dict[Partition, _File] = {}
        try:
            for batch in batches:
                for partition, rows in self._by_partition(self.completed(batch)):
                    file = files.pop(partition, None) or _File(self, partition)
                    files[partition] = file  # the last one used is last
                    file.add(rows)
                    if len(files) > OPEN_FILES:
                        written.append(files.pop(next(iter(files))).closed())
            while files:
                written.append(files.pop(next(iter(files))).closed())
        finally:
            for file in files.values():
                file.discard()
        return written

    def write_rows(self, rows: pl.DataFrame) -> list[WrittenFile]:
        """Write a frame that has the columns ``asked`` in any order. A map is a list of structs of key and value."""
        return self.write(as_table(rows, self.asked, self.folder).to_batches(GROUP_ROWS))

    def _by_partition(self, batch: pa.RecordBatch) -> Iterator[tuple[Partition, pa.RecordBatch]]:
        """Yield the rows of each partition, without its columns."""
        if batch.num_rows == 0:
            return
        keys = pl.DataFrame(pl.from_arrow(batch.select(self.partitioned_by)))
        rows = batch.drop_columns(list(self.partitioned_by))
        if keys.height == 1 or keys.select(pl.all().n_unique() == 1).row(0) == (True,) * keys.width:
            yield self._partition(keys.row(0)), rows
            return
        numbered = keys.with_row_index("row").group_by(self.partitioned_by, maintain_order=True)
        for *values, mine in numbered.agg("row").rows():
            yield self._partition(values), rows.take(pa.array(mine))

    def _partition(self, values: Iterable[Any]) -> Partition:
        made = tuple(zip(self.partitioned_by, map(str, values), strict=True))
        for name, value in made:
            if value in ("", HIVE_NULL) or len(partition_folder(((name, value),))) > NAME_BYTES:
                raise InputError(f"{name} {value!r} cannot be the name of a folder; give another --{name}")
        return made


def partition_folder(partition: Partition) -> str:
    """Return the folder of a partition as Hive and Spark name it.

    >>> partition_folder((("cluster", "a/b"), ("day", "2026-11-21")))
    'cluster=a%2Fb/day=2026-11-21'
    """
    return "/".join(f"{name}={quote(value, safe='')}" for name, value in partition)


def file_stats(file: pq.FileMetaData, bounded: Iterable[str]) -> str:
    """Return the statistics of a Parquet file for Delta's log: its rows; bounds and nulls of the columns ``bounded``.

    Instants are rounded outwards to milliseconds, as Delta has them; days are exact. A column with values that have no
    bounds in the file (long texts) has none in the log.
    """
    leaves = {file.schema.column(number).path: number for number in range(len(file.schema))}
    groups = [file.row_group(number) for number in range(file.num_row_groups)]
    least, most, nulls = {}, {}, {}
    for name in bounded:
        of_groups = [group.column(leaves[name]).statistics for group in groups]
        if any(each is None for each in of_groups):
            continue
        nulls[name] = sum(each.null_count for each in of_groups)
        filled = [each for each in of_groups if each.num_values]
        if not filled or not all(each.has_min_max for each in filled):
            continue
        first, last = min(each.min_raw for each in filled), max(each.max_raw for each in filled)
        if filled[0].logical_type.type == "DATE":
            least[name], most[name] = (str(EPOCH + dt.timedelta(days=day)) for day in (first, last))
        elif isinstance(first, int):
            if first >= LEAST_US and last <= MOST_US:
                least[name], most[name] = _instant(first // 1000), _instant(-(-last // 1000))
        else:
            least[name], most[name] = first.decode(), last.decode()
    return json.dumps({"numRecords": file.num_rows, "minValues": least, "maxValues": most, "nullCount": nulls})


def days_of(file: WrittenFile) -> tuple[dt.date | None, dt.date | None]:
    """Return the first and last day of a file's rows; None if a row may lack one."""
    if (day := dict(file.partition).get("day")) is not None:
        return (dt.date.fromisoformat(day),) * 2
    stats = json.loads(file.stats)
    if stats["nullCount"].get("day") != 0:
        return None, None
    first, last = (dt.date.fromisoformat(stats[of]["day"]) for of in ("minValues", "maxValues"))
    return first, last


def _instant(ms: int) -> str:
    at = dt.datetime.fromtimestamp(0, dt.UTC) + dt.timedelta(milliseconds=ms)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


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


def repeating(schema: pa.Schema, but: Collection[str | None]) -> tuple[str, ...]:
    """Return Parquet paths of texts and small numbers, without the columns ``but``: unique or constant ones.

    Offsets and instants hardly repeat: a dictionary of them would take a third of the writing time, and space.

    >>> repeating(pa.schema([("id", pa.string()), ("ids", pa.list_(pa.int32())), ("offset", pa.int64())]), {"id"})
    ('ids.list.element',)
    """
    empty = io.BytesIO()
    pq.write_table(schema.empty_table(), empty)
    leaves = pq.read_metadata(empty).schema
    found = [leaves.column(number) for number in range(len(leaves))]
    return tuple(leaf.path for leaf in found if leaf.physical_type in ("BYTE_ARRAY", "INT32") and leaf.path not in but)


class _File:
    """A Parquet file of a partition while it is written. A store takes a file as a whole: it is written here first."""

    def __init__(self, writer: TableWriter, partition: Partition) -> None:
        self._partition, self._bounded = partition, writer.bounded
        self._path, self._rows = f"{partition_folder(partition)}/part-{uuid.uuid4()}", 0
        self._place = writer.folder
        self._folder = tempfile.TemporaryDirectory() if is_remote(self._place) else None
        local = joined(self._place, f"{self._path}.parquet")
        self._local = Path(local if self._folder is None else f"{self._folder.name}/part.parquet")
        self._local.parent.mkdir(parents=True, exist_ok=True)
        self._writer = _Writer(str(self._local), writer)

    def add(self, rows: pa.RecordBatch) -> None:
        self._rows += rows.num_rows
        self._writer.add(rows)

    def closed(self) -> WrittenFile:
        """End the file and return its facts. Its name ends with its checksum (data_checksums.py)."""
        self._writer.flush()
        self._writer.close()
        size, stats = self._local.stat().st_size, file_stats(pq.read_metadata(self._local), self._bounded)
        path = f"{self._path}-{checksum_of(self._local)}.zstd.parquet"
        target = joined(self._place, path)
        if self._folder is None:
            self._local.rename(target)
        else:
            files_of(target).upload(self._local, target)
            self._folder.cleanup()
        return WrittenFile(path, size, self._rows, self._partition, stats)

    def discard(self) -> None:
        """Close a file whose writing failed. No version uses it; mqreplay maintain removes it."""
        with suppress(Exception):
            self._writer.close()
        if self._folder is not None:
            self._folder.cleanup()


class _Writer:
    """A writer of one file: it buffers batches until they make row groups, sorted by bucket if there is a key."""

    def __init__(self, path: str, table: TableWriter) -> None:
        self._key = table.shard_key
        # The values of partition columns are in Delta's log, not in the file.
        schema = pa.schema([field for field in table.schema if field.name not in table.partitioned_by])
        schema = schema.append(pa.field(BUCKET, pa.int32())) if self._key else schema
        options = {"compression": "zstd", "use_dictionary": list(table.repeating), "store_schema": False}
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
