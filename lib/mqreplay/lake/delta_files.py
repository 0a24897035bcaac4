"""The Parquet files of a Delta table's last version, listed without Spark: for kernels, which read files themselves."""

from __future__ import annotations

import datetime as dt
import os
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

from mqreplay.lake.buckets import COLUMN as BUCKET
from mqreplay.lake.buckets import Key, buckets, columns_of

LOG = "_delta_log"
ODD = re.compile(r"[%\\]")  # in a folder's name: delta-rs takes a path for a URL


@dataclass(frozen=True)
class TableFiles:
    """Files of one table that may hold rows of a cluster and some days, and the table's schema.

    ``rows`` is how many all files hold. The table need not exist: then there are none.
    """

    paths: tuple[str, ...]
    rows: int
    schema: pa.Schema

    def pieces(self, rows: int) -> list[TableFiles]:
        """Return the files in pieces of about so many rows each, by the mean of all files."""
        if not self.paths:
            return []
        step = max(1, rows * len(self.paths) // max(1, self.rows))
        starts = range(0, len(self.paths), step)
        return [TableFiles(self.paths[n : n + step], self.rows * step // len(self.paths), self.schema) for n in starts]


def table_files(location: str, schema: pa.Schema, cluster: str, days: tuple[dt.date, dt.date] | None) -> TableFiles:
    """Return the files of the table at ``location`` that may hold rows of the cluster, from the first day to the last.

    ``days`` None: of every day. Files are passed over by the bounds that Delta keeps of them.
    """
    if not os.path.isdir(os.path.join(location, LOG)):
        return TableFiles((), 0, schema)
    listed = _live_files(location)
    wanted = _may_hold(listed, "cluster", cluster, cluster)
    if days is not None:
        wanted &= _may_hold(listed, "day", *days)
    kept = listed.filter(wanted).sort("path")
    paths = tuple(os.path.join(location, path) for path in kept["path"].to_list())
    return TableFiles(paths, int(kept["num_records"].sum()), schema)


def _live_files(location: str) -> pl.DataFrame:
    """Return what Delta's log says of each file of the last version."""
    if ODD.search(location) is None:
        return pl.DataFrame(pa.table(DeltaTable(location).get_add_actions(flatten=True)))
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(os.path.join(location, LOG), os.path.join(folder, LOG))
        return pl.DataFrame(pa.table(DeltaTable(folder).get_add_actions(flatten=True)))


def _may_hold(listed: pl.DataFrame, column: str, low: Any, high: Any) -> pl.Expr:
    """Whether a file may hold a value between the two; true where Delta has no bounds."""
    names = f"min.{column}", f"max.{column}"
    if not set(names) <= set(listed.columns):
        return pl.lit(True)
    least, most = (pl.col(name) for name in names)
    return (least <= pl.lit(high)).fill_null(True) & (most >= pl.lit(low)).fill_null(True)


@dataclass(frozen=True)
class Buckets:
    """Rows whose bucket (buckets.py) is one of ``low`` to ``high``, by the table's ``key``."""

    low: int
    high: int
    key: Key


def read_files(
    files: TableFiles, columns: Sequence[str] | None, wanted: pl.Expr, of: Buckets | None = None
) -> pl.DataFrame:
    """Return the rows of the files that are ``wanted``, and in the buckets if any are given.

    All columns of the schema, or those named, in that order. Columns that a file of an older version lacks are null.
    """
    names = list(columns) if columns is not None else files.schema.names
    parts = [pl.DataFrame(pl.from_arrow(files.schema.empty_table())).select(names)]
    if of is None:
        parts.append(_scanned(files, files.paths).filter(wanted).select(names).collect() if files.paths else parts[0])
        return pl.concat(parts[-1:])
    by_bucket, others = _by_bucket(files.paths)
    if by_bucket:
        mine = pl.col(BUCKET).is_between(of.low, of.high)
        parts.append(_scanned(files, by_bucket, {BUCKET: pl.Int32()}).filter(wanted & mine).select(names).collect())
    if others:
        needed = list(dict.fromkeys([*names, *columns_of(of.key)]))
        rows = _scanned(files, others).filter(wanted).select(needed).collect()
        parts.append(rows.filter(buckets(rows, of.key).is_between(of.low, of.high)).select(names))
    return pl.concat(parts)


def read_buckets(files: TableFiles, key: Key, wanted: pl.Expr) -> pl.Series:
    """Return the bucket of each row that is ``wanted``."""
    by_bucket, others = _by_bucket(files.paths)
    parts = [pl.Series(BUCKET, [], pl.Int32)]
    if by_bucket:
        rows = _scanned(files, by_bucket, {BUCKET: pl.Int32()}).filter(wanted).select(BUCKET).collect()
        parts.append(rows[BUCKET])
    if others:
        parts.append(buckets(_scanned(files, others).filter(wanted).select(columns_of(key)).collect(), key))
    return pl.concat(parts)


def _by_bucket(paths: Sequence[str]) -> tuple[list[str], list[str]]:
    """Files whose rows lie by buckets, and those that another writer made."""
    has = [BUCKET in pq.read_schema(path).names for path in paths]
    return [p for p, is_sorted in zip(paths, has, strict=True) if is_sorted], [
        p for p, is_sorted in zip(paths, has, strict=True) if not is_sorted
    ]


def _scanned(files: TableFiles, paths: Sequence[str], more: Mapping[str, pl.DataType] | None = None) -> pl.LazyFrame:
    schema = pl.Schema({**polars_schema(files.schema), **(more or {})})
    # `glob`: a path may hold [ or *, which are characters like others.
    return pl.scan_parquet(list(paths), schema=schema, missing_columns="insert", extra_columns="ignore", glob=False)


def polars_schema(schema: pa.Schema) -> pl.Schema:
    """Return an Arrow schema as polars has it."""
    return pl.DataFrame(pl.from_arrow(schema.empty_table())).schema
