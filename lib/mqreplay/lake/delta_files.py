"""The Parquet files of a Delta table's last version, listed without Spark: for kernels, which read files themselves."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
import pyarrow as pa
from deltalake import DeltaTable


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
    if not os.path.isdir(os.path.join(location, "_delta_log")):
        return TableFiles((), 0, schema)
    listed = pl.DataFrame(pa.table(DeltaTable(location).get_add_actions(flatten=True)))
    wanted = _may_hold(listed, "cluster", cluster, cluster)
    if days is not None:
        wanted &= _may_hold(listed, "day", *days)
    kept = listed.filter(wanted).sort("path")
    paths = tuple(os.path.join(location, path) for path in kept["path"].to_list())
    return TableFiles(paths, int(kept["num_records"].sum()), schema)


def _may_hold(listed: pl.DataFrame, column: str, low: Any, high: Any) -> pl.Expr:
    """Whether a file may hold a value between the two; true where Delta has no bounds."""
    names = f"min.{column}", f"max.{column}"
    if not set(names) <= set(listed.columns):
        return pl.lit(True)
    least, most = (pl.col(name) for name in names)
    return (least <= pl.lit(high)).fill_null(True) & (most >= pl.lit(low)).fill_null(True)


def read_files(files: TableFiles, columns: Sequence[str] | None, wanted: pl.Expr) -> pl.DataFrame:
    """Return the rows of the files that are ``wanted``: all columns of the schema, or those named, in that order.

    Columns that a file of an older version lacks are null.
    """
    names = list(columns) if columns is not None else files.schema.names
    if not files.paths:
        empty = pl.DataFrame(pl.from_arrow(files.schema.empty_table()))
        return empty.select(names)
    # `glob`: a path may hold [ or *, which are characters like others.
    rows = pl.scan_parquet(
        list(files.paths),
        schema=polars_schema(files.schema),
        missing_columns="insert",
        extra_columns="ignore",
        glob=False,
    )
    return rows.filter(wanted).select(names).collect()


def polars_schema(schema: pa.Schema) -> pl.Schema:
    """Return an Arrow schema as polars has it."""
    return pl.DataFrame(pl.from_arrow(schema.empty_table())).schema
