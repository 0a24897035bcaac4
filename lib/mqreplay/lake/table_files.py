"""The Parquet files of a Delta table, listed by delta-rs and read by polars."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, BinaryIO, NamedTuple
from urllib.parse import unquote

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

from mqreplay.lake.buckets import COLUMN as BUCKET
from mqreplay.lake.buckets import Key, buckets, columns_of
from mqreplay.lake.data_checksums import check_files
from mqreplay.lake.delta_table import keep_open, open_table
from mqreplay.lake.files import files_of, is_remote, joined
from mqreplay.lake.ipc_blobs import filtered
from mqreplay.lake.row_filter import RowFilter
from mqreplay.lake.scratch import copied
from mqreplay.lake.storage import storage_options
from mqreplay.lake.store_protocol import OBJECT_SCHEMES, FileInfo
from mqreplay.lake.table_log import last_commit
from mqreplay.machine.local_files import scheme_of
from mqreplay.words.errors import ContractError

BATCH_ROWS = 50_000  # rows in memory of a file that is rewritten
STRUCTS_MAY_DIFFER = pl.ScanCastOptions(missing_struct_fields="insert", extra_struct_fields="ignore")


class TableFile(NamedTuple):
    """A file of a table: its path, the values of its partition (``day`` None: not by day), and its number of rows.

    ``rows`` is None if the file's writer did not count them.
    """

    path: str
    cluster: str
    day: dt.date | None
    rows: int | None


@dataclass(frozen=True)
class TableFiles:
    """Files of a table, and the table's schema. The table need not exist: then there are none."""

    files: tuple[TableFile, ...]
    schema: pa.Schema

    @property
    def rows(self) -> int:
        """Return the number of rows in all files that have a count."""
        return sum(file.rows or 0 for file in self.files)

    def pieces(self, rows: int) -> list[TableFiles]:
        """Return the files in pieces of about ``rows`` rows, by the mean of all files."""
        if not self.files:
            return []
        step = max(1, rows * len(self.files) // max(1, self.rows))
        return [replace(self, files=self.files[n : n + step]) for n in range(0, len(self.files), step)]


@dataclass(frozen=True)
class Snapshot:
    """One version of a table: its files, its columns as Delta's schema, and its partition columns.

    ``files`` has the columns FILE_SCHEMA: the path is below the table's folder, ``day`` is null in a table that is not
    partitioned by day, ``first_day`` and ``last_day`` are null if the log has no bounds of all rows' days.
    """

    version: int
    files: pl.DataFrame
    fields: tuple[dict[str, Any], ...]
    partitioned_by: tuple[str, ...] = ()

    @cached_property
    def digest(self) -> str:
        """Return a digest of the files and the columns, without what a library may write in another way."""
        columns = [(field["name"], json.dumps(field["type"], sort_keys=True)) for field in self.fields]
        listed = self.files.drop(DAY_BOUNDS)  # as tables were noted before the log had bounds of days
        return hashlib.sha256(f"{columns}\n{listed.write_csv()}".encode()).hexdigest()[:32]

    @cached_property
    def of_clusters(self) -> dict[str, FilesOfCluster]:
        """Return the files of each cluster."""
        parts = self.files.partition_by("cluster", maintain_order=True, as_dict=True)
        return {str(cluster): FilesOfCluster(files) for (cluster,), files in parts.items()}

    def of(self, rows: RowFilter | None) -> pl.DataFrame:
        """Return the files that may hold these rows; all files for None."""
        if rows is None:
            return self.files
        mine = self.of_clusters.get(rows.cluster)
        return self.files.clear() if mine is None else mine.of(rows)


@dataclass(frozen=True)
class FilesOfCluster:
    """The files of one cluster, as in Snapshot.files."""

    files: pl.DataFrame

    @cached_property
    def by_days(self) -> dict[tuple[dt.date | None, dt.date | None], list[int]]:
        """Return the numbers of the files by their first and last day."""
        numbers = defaultdict(list)
        for number, days in enumerate(self.files.select(DAY_BOUNDS).iter_rows()):
            numbers[days].append(number)
        return dict(numbers)

    def of(self, rows: RowFilter) -> pl.DataFrame:
        """Return the files that may hold these rows of the cluster."""
        held = [n for days, numbers in self.by_days.items() if rows.may_have(rows.cluster, *days) for n in numbers]
        return self.files if len(held) == len(self.files) else self.files[sorted(held)]


DAY_BOUNDS = ("first_day", "last_day")
FILE_SCHEMA = pl.Schema(
    {
        "path": pl.String(),
        "size_bytes": pl.Int64(),
        "num_records": pl.Int64(),
        "cluster": pl.String(),
        "day": pl.Date(),
        **dict.fromkeys(DAY_BOUNDS, pl.Date()),
    }
)


def snapshot(location: str, version: int | None = None) -> Snapshot:
    """Return the version of the table; the last one by default. Raises ContractError for an older layout."""
    # The last commit also differs for another table in the same place.
    return _snapshot(location, version, last_commit(location))


@lru_cache(maxsize=128)  # a night asks for the same tables many times; the last commit shows whether one changed
def _snapshot(location: str, version: int | None, _commit: FileInfo | None) -> Snapshot:
    return read_snapshot(location, version)


def read_snapshot(location: str, version: int | None = None) -> Snapshot:
    """Read a version of the table anew; the last one by default. Raises ContractError for an older layout."""
    table = open_table(location, version)
    _check_whole_files(table, location)
    partitioned_by = tuple(table.metadata().partition_columns)
    if not partitioned_by:
        raise ContractError(
            f"{location} was made by mqreplay 0.1, whose tables have no partitions; make the tables again: "
            "mqreplay nightly RECORDING... --warehouse NEW"
        )
    listed = pl.DataFrame(table.get_add_actions(flatten=True))
    day = pl.col("partition.day") if "partition.day" in listed.columns else pl.lit(None)
    files = listed.select(
        pl.col("path").map_elements(unquote, pl.String),
        "size_bytes",
        "num_records",
        pl.col("partition.cluster").cast(pl.String).alias("cluster"),
        day.cast(pl.Date).alias("day"),
        _bound(listed, day, "min").cast(pl.Date).alias("first_day"),
        _bound(listed, day, "max").cast(pl.Date).alias("last_day"),
    ).sort("path")
    fields = tuple(json.loads(table.schema().to_json())["fields"])
    read = Snapshot(table.version(), files, fields, partitioned_by)
    if version is None:
        keep_open(location, table)
    return read


def _bound(listed: pl.DataFrame, day: pl.Expr, of: str) -> pl.Expr:
    """Return the first or last day of each file, from its partition or the log's bounds; null if a row may lack one."""
    if f"{of}.day" not in listed.columns:
        return day
    return pl.when(pl.col("null_count.day") == 0).then(f"{of}.day")


def _check_whole_files(table: DeltaTable, location: str) -> None:
    """Raise ContractError if a file has deleted rows: polars would read them."""
    if "deletionVectors" in (table.protocol().reader_features or ()) and any(
        b.num_rows for b in table.deletion_vectors()
    ):
        raise ContractError(
            f"another program removed rows of {location} by deletion vectors, which mqreplay does not read; run "
            f"REORG TABLE delta.`{location}` APPLY (PURGE) in Spark SQL"
        )


def files_in(location: str, listed: pl.DataFrame) -> list[TableFile]:
    """Return files of a snapshot with their whole paths. Raises DamagedTable if one is missing or changed."""
    check_files(location, listed)
    rows = listed.select("path", "cluster", "day", "num_records").iter_rows()
    return [TableFile(joined(location, path), *others) for path, *others in rows]


@dataclass(frozen=True)
class Buckets:
    """Rows whose bucket (buckets.py) by the table's ``key`` is in ``low`` to ``high``."""

    low: int
    high: int
    key: Key


def read_files(
    files: TableFiles, columns: Sequence[str] | None, wanted: pl.Expr, of: Buckets | None = None
) -> pl.DataFrame:
    """Return the ``wanted`` rows of the files, only those in the buckets ``of``, if any.

    They have all columns of the schema, or those named, in that order. Columns that an older file lacks are null.
    """
    names = list(columns) if columns is not None else files.schema.names
    if of is None:
        return scan_files(files.schema, files.files).filter(wanted).select(names).collect()
    parts = [scan_files(files.schema, []).select(names).collect()]
    by_bucket, others = _by_bucket(files.files)
    if by_bucket:
        mine = pl.col(BUCKET).is_between(of.low, of.high)
        parts.append(
            scan_files(files.schema, by_bucket, {BUCKET: pl.Int32()}).filter(wanted & mine).select(names).collect()
        )
    if others:
        needed = list(dict.fromkeys([*names, *columns_of(of.key)]))
        rows = scan_files(files.schema, others).filter(wanted).select(needed).collect()
        parts.append(rows.filter(buckets(rows, of.key).is_between(of.low, of.high)).select(names))
    return pl.concat(parts)


def read_buckets(files: TableFiles, key: Key, wanted: pl.Expr) -> pl.Series:
    """Return the bucket of each ``wanted`` row."""
    by_bucket, others = _by_bucket(files.files)
    parts = [pl.Series(BUCKET, [], pl.Int32)]
    if by_bucket:
        rows = scan_files(files.schema, by_bucket, {BUCKET: pl.Int32()}).filter(wanted).select(BUCKET).collect()
        parts.append(rows[BUCKET])
    if others:
        parts.append(buckets(scan_files(files.schema, others).filter(wanted).select(columns_of(key)).collect(), key))
    return pl.concat(parts)


def _by_bucket(files: Sequence[TableFile]) -> tuple[list[TableFile], list[TableFile]]:
    """Return the files with buckets, and those of other writers."""
    has = [_has_buckets(file.path) for file in files]
    return [f for f, is_sorted in zip(files, has, strict=True) if is_sorted], [
        f for f, is_sorted in zip(files, has, strict=True) if not is_sorted
    ]


def _has_buckets(path: str) -> bool:
    with opened(path) as stream:
        return BUCKET in pq.read_schema(stream).names


@contextmanager
def opened(path: str) -> Iterator[str | BinaryIO]:
    """Yield a Parquet file as pyarrow takes it: its path, or the open file of a store."""
    if not is_remote(path):
        yield path
        return
    with files_of(path).open(path) as stream:
        yield stream


def scan_files(
    schema: pa.Schema, files: Sequence[TableFile], more: Mapping[str, pl.DataType] | None = None
) -> pl.LazyFrame:
    """Return the rows of files with the columns of ``schema``, and ``more`` columns that only the files have.

    Columns, and fields of structs, that a file lacks are null.
    """
    wanted = pl.Schema({**polars_schema(schema), **(more or {})})
    if not files:
        return pl.LazyFrame(schema=wanted)
    by_partition: dict[tuple[str, dt.date | None], list[str]] = {}
    for file in files:
        by_partition.setdefault((file.cluster, file.day), []).append(file.path)
    return pl.concat([_scan_partition(wanted, *values, paths) for values, paths in by_partition.items()])


def _scan_partition(wanted: pl.Schema, cluster: str, day: dt.date | None, paths: list[str]) -> pl.LazyFrame:
    """Return the rows of the files of one partition, whose columns are not in the files."""
    values = {"cluster": pl.lit(cluster)} | ({} if day is None else {"day": pl.lit(day, pl.Date)})
    options = storage_options() if scheme_of(paths[0]) in OBJECT_SCHEMES else None
    rows = pl.scan_parquet(
        paths if options is not None else [readable(path) for path in paths],
        storage_options=options,
        schema=pl.Schema({name: kind for name, kind in wanted.items() if name not in values}),
        missing_columns="insert",
        extra_columns="ignore",
        cast_options=STRUCTS_MAY_DIFFER,
        glob=False,  # [ and * in a path are plain characters
        hive_partitioning=False,
    )
    return rows.with_columns(**values).select(wanted.names())


def file_batches(file: TableFile, schema: pa.Schema, wanted: pl.Expr | None = None) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file that are wanted, or all, in batches with the table's columns."""
    values = {"cluster": file.cluster} | ({} if file.day is None else {"day": file.day})
    with opened(file.path) as stream, pq.ParquetFile(stream) as parquet:
        there = [name for name in schema.names if name in parquet.schema_arrow.names and name not in values]
        for batch in parquet.iter_batches(BATCH_ROWS, columns=there):
            beside = {
                f.name: pa.repeat(pa.scalar(values.get(f.name), f.type), batch.num_rows)
                for f in schema
                if f.name not in there
            }
            columns = [beside[f.name] if f.name in beside else batch.column(f.name).cast(f.type) for f in schema]
            whole = pa.RecordBatch.from_arrays(columns, schema=schema)
            yield whole if wanted is None else filtered(whole, wanted)


def readable(path: str) -> str:
    """Return a path that polars can open: its own, or a copy of a file in HDFS, which polars cannot read."""
    return copied(path) if scheme_of(path) == "hdfs" else path


def polars_schema(schema: pa.Schema) -> pl.Schema:
    """Return the polars schema of an Arrow schema."""
    return pl.Schema(schema)
