"""The Parquet files of a Delta table, listed by delta-rs and read by polars."""

from __future__ import annotations

import datetime as dt
import json
import os
import re
import shutil
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, BinaryIO
from urllib.parse import unquote

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

from mqreplay.errors import ContractError
from mqreplay.lake.buckets import COLUMN as BUCKET
from mqreplay.lake.buckets import Key, buckets, columns_of
from mqreplay.lake.copies import copied
from mqreplay.lake.files import OBJECT_SCHEMES, FileInfo, files_of, is_remote, joined, scheme_of
from mqreplay.lake.orphans import LOG, last_commit, last_version, log_changed
from mqreplay.lake.storage import storage_options

STRUCTS_MAY_DIFFER = pl.ScanCastOptions(missing_struct_fields="insert", extra_struct_fields="ignore")
ODD = re.compile(r"[%\\]")  # in a folder's name: delta-rs parses a path as a URL


@dataclass(frozen=True)
class TableFiles:
    """Files of a table that may hold rows of a cluster and some days, and the table's schema.

    ``rows`` is the number of rows in all files. The table need not exist: then there are none.
    """

    paths: tuple[str, ...]
    rows: int
    schema: pa.Schema

    def pieces(self, rows: int) -> list[TableFiles]:
        """Return the files in pieces of about the given number of rows, by the mean of all files."""
        if not self.paths:
            return []
        step = max(1, rows * len(self.paths) // max(1, self.rows))
        starts = range(0, len(self.paths), step)
        return [TableFiles(self.paths[n : n + step], self.rows * step // len(self.paths), self.schema) for n in starts]


@dataclass(frozen=True)
class Snapshot:
    """One version of a table: its files as delta-rs lists them, its columns as Delta's schema, its properties.

    ``files`` has path, size_bytes, num_records, and of columns with bounds min.NAME and max.NAME.
    """

    version: int
    table_id: str
    files: pl.DataFrame
    fields: tuple[dict[str, Any], ...]
    configuration: dict[str, str]


def snapshot(location: str, version: int | None = None) -> Snapshot:
    """Return the version of the table; the last one if none is given."""
    # The last commit also differs for another table in the same place.
    return _snapshot(location, version, last_commit(location))


@lru_cache(maxsize=128)  # a night asks for the same tables many times; the last commit shows whether one changed
def _snapshot(location: str, version: int | None, commit: FileInfo | None) -> Snapshot:
    with _readable(location) as place:
        table = _delta_table(place, version)
        _check_whole_files(table, location)
        files = pl.DataFrame(table.get_add_actions(flatten=True)).with_columns(_decoded("path")).sort("path")
        said, fields = table.metadata(), json.loads(table.schema().to_json())["fields"]
        return Snapshot(table.version(), str(said.id), files, tuple(fields), dict(said.configuration))


def _check_whole_files(table: DeltaTable, location: str) -> None:
    """Raise ContractError if a file has deleted rows: polars would read them."""
    if "deletionVectors" in (table.protocol().reader_features or ()) and any(
        b.num_rows for b in table.deletion_vectors()
    ):
        raise ContractError(
            f"another program removed rows of {location} by deletion vectors, which mqreplay does not read; run "
            f"REORG TABLE delta.`{location}` APPLY (PURGE) in Spark SQL"
        )


def write_checkpoint(location: str) -> None:
    """Write a checkpoint, so that readers need not read the whole log. Only speed depends on it."""
    with _readable(location) as place:
        if place == location:
            _delta_table(place).create_checkpoint()
            log_changed(location)


def _delta_table(place: str, version: int | None = None) -> DeltaTable:
    options = {k: str(v) for k, v in storage_options().items()} if is_remote(place) else None
    return DeltaTable(place.replace("s3a://", "s3://"), version=version, storage_options=options)


def unused_files(location: str, days: int) -> list[str]:
    """Return the files in a table's folder that are older than ``days`` days and used by no version of that time."""
    with _readable(location) as place:
        return _delta_table(place).vacuum(24 * days, dry_run=True, full=True) if place == location else []


def remove_old_log_entries(location: str) -> int:
    """Remove log entries older than 30 days (Delta's default) that precede a checkpoint. Return their number."""
    log = joined(location, LOG)
    before = len(files_of(log).names(log))
    with _readable(location) as place:
        if place == location:
            _delta_table(place).cleanup_metadata()
    return before - len(files_of(log).names(log))


def table_files(location: str, schema: pa.Schema, cluster: str, days: tuple[dt.date, dt.date] | None) -> TableFiles:
    """Return the files of the table at ``location`` that may hold rows of the cluster and days (both ends included).

    ``days`` None: every day. Files are skipped by Delta's bounds.
    """
    if last_version(location) is None:
        return TableFiles((), 0, schema)
    listed = snapshot(location).files
    wanted = may_hold(listed, "cluster", cluster, cluster)
    if days is not None:
        wanted &= may_hold(listed, "day", *days)
    kept = listed.filter(wanted)
    paths = tuple(joined(location, path) for path in kept["path"])
    return TableFiles(paths, int(kept["num_records"].sum()), schema)


def rows_on_other_days(
    location: str, schema: pa.Schema, cluster: str, days: Collection[dt.date]
) -> tuple[int, TableFiles]:
    """Return the number of the cluster's rows in files that have only other days than these, and the other files.

    The number is from Delta's log, so that files of old days need not be opened.
    """
    if last_version(location) is None:
        return 0, TableFiles((), 0, schema)
    listed = snapshot(location).files
    mine = listed.filter(may_hold(listed, "cluster", cluster, cluster))
    bounds = [f"{end}.{name}" for name in ("cluster", "day") for end in ("min", "max", "null_count")]
    if set(bounds) <= set(mine.columns):
        alone = pl.all_horizontal(
            pl.col("min.cluster") == pl.col("max.cluster"),
            pl.col("null_count.cluster") == 0,
            pl.col("null_count.day") == 0,
            pl.col("num_records").is_not_null(),
            ~may_hold(mine, "day", min(days), max(days)) if days else pl.lit(True),
        ).fill_null(False)
    else:
        alone = pl.lit(False)
    others = mine.filter(~alone)
    paths = tuple(joined(location, path) for path in others["path"])
    counted = int(mine.filter(alone)["num_records"].sum())
    return counted, TableFiles(paths, int(others["num_records"].sum()), schema)


@contextmanager
def _readable(location: str) -> Iterator[str]:
    """Return a folder whose name delta-rs can open: the table's own, or one with a copy of its log."""
    if is_remote(location) or ODD.search(location) is None:
        yield location
        return
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(os.path.join(location, LOG), os.path.join(folder, LOG))
        yield folder


def _decoded(column: str) -> pl.Expr:
    """Return a path of the log without URL escapes."""
    return pl.col(column).map_elements(unquote, pl.String)


def may_hold(listed: pl.DataFrame, column: str, low: Any, high: Any) -> pl.Expr:
    """Return whether a file may hold a value between the two; true if Delta has no bounds."""
    names = f"min.{column}", f"max.{column}"
    if not set(names) <= set(listed.columns):
        return pl.lit(True)
    least, most = (pl.col(name) for name in names)
    return (least <= pl.lit(high)).fill_null(True) & (most >= pl.lit(low)).fill_null(True)


def may_lack(listed: pl.DataFrame, column: str) -> pl.Expr:
    """Return whether a file may hold nulls of the column; true if Delta has not counted them."""
    name = f"null_count.{column}"
    return (pl.col(name) > 0).fill_null(True) if name in listed.columns else pl.lit(True)


@dataclass(frozen=True)
class Buckets:
    """Rows whose bucket (buckets.py) by the table's ``key`` is in ``low`` to ``high``."""

    low: int
    high: int
    key: Key


def read_files(
    files: TableFiles, columns: Sequence[str] | None, wanted: pl.Expr, of: Buckets | None = None
) -> pl.DataFrame:
    """Return the ``wanted`` rows of the files, only those in the buckets if any are given.

    They have all columns of the schema, or those named, in that order. Columns that an older file lacks are null.
    """
    names = list(columns) if columns is not None else files.schema.names
    if of is None:
        return scan_files(files.schema, files.paths).filter(wanted).select(names).collect()
    parts = [scan_files(files.schema, []).select(names).collect()]
    by_bucket, others = _by_bucket(files.paths)
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
    by_bucket, others = _by_bucket(files.paths)
    parts = [pl.Series(BUCKET, [], pl.Int32)]
    if by_bucket:
        rows = scan_files(files.schema, by_bucket, {BUCKET: pl.Int32()}).filter(wanted).select(BUCKET).collect()
        parts.append(rows[BUCKET])
    if others:
        parts.append(buckets(scan_files(files.schema, others).filter(wanted).select(columns_of(key)).collect(), key))
    return pl.concat(parts)


def _by_bucket(paths: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the files with buckets, and those of other writers."""
    has = [_has_buckets(path) for path in paths]
    return [p for p, is_sorted in zip(paths, has, strict=True) if is_sorted], [
        p for p, is_sorted in zip(paths, has, strict=True) if not is_sorted
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


def scan_files(schema: pa.Schema, paths: Sequence[str], more: Mapping[str, pl.DataType] | None = None) -> pl.LazyFrame:
    """Return the rows of Parquet files with the columns of ``schema``.

    Columns, and fields of structs, that a file lacks are null.
    """
    wanted = pl.Schema({**polars_schema(schema), **(more or {})})
    if not paths:
        return pl.LazyFrame(schema=wanted)
    # `glob`: [ and * in a path are plain characters.
    options = storage_options() if scheme_of(paths[0]) in OBJECT_SCHEMES else None
    return pl.scan_parquet(
        list(paths) if options is not None else [readable(path) for path in paths],
        storage_options=options,
        schema=wanted,
        missing_columns="insert",
        extra_columns="ignore",
        cast_options=STRUCTS_MAY_DIFFER,
        glob=False,
    )


def readable(path: str) -> str:
    """Return a path that polars can open: its own, or a copy of a file in HDFS, which polars cannot read."""
    return copied(path) if scheme_of(path) == "hdfs" else path


def polars_schema(schema: pa.Schema) -> pl.Schema:
    """Return the polars schema of an Arrow schema."""
    return pl.Schema(schema)
