"""The Delta tables of a warehouse as DataFrames of Spark, by path or by their names in a catalog."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa

from mqreplay.engines.rows import Days, Wanted
from mqreplay.engines.shards import Shard
from mqreplay.lake.buckets import BUCKETS, Key
from mqreplay.lake.lease import require_lease
from mqreplay.lake.registration import CatalogNames
from mqreplay.lake.storage import spark_location
from mqreplay.lake.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, DataFrameWriter, SparkSession

SEPARATOR = "\x1f"  # between the parts of a key, as in lake/buckets.py


@dataclass(frozen=True)
class SparkTables:
    """The tables of a warehouse. With ``names``, Spark reads and writes them by name."""

    session: SparkSession
    warehouse: Warehouse
    names: CatalogNames | None = None

    def may_write(self, cluster: str) -> bool:
        """Return whether Spark may write rows of the cluster.

        Spark writes the letters of a partition's path into Delta's log as they are, delta-rs escapes those that are not
        ASCII, and a file that one of them added is not the one that the other removes.
        """
        return self.names is not None or cluster.isascii()

    def frame(self, table: str) -> DataFrame:
        """Return the rows of a table that exists."""
        if self.names is not None:
            return self.session.table(self._name(self.names, table))
        return self.session.read.format("delta").load(spark_location(self.warehouse.location(table)))

    def replace(self, table: str, rows: DataFrame, cluster: str, day: dt.date) -> None:
        """Replace the rows of a cluster and day of a table that exists."""
        location = self.warehouse.location(table)
        require_lease(location)
        kept = f"cluster = {_text(cluster)} AND day = DATE '{day}'"
        writer: DataFrameWriter = rows.write.format("delta").mode("overwrite").option("replaceWhere", kept)
        if self.names is not None:
            writer.saveAsTable(self._name(self.names, table))
        else:
            writer.save(spark_location(location))
        self.warehouse.changed(table)

    def append(self, table: str, rows: DataFrame) -> None:
        """Add rows to a table that exists."""
        require_lease(self.warehouse.location(table))
        writer = rows.write.format("delta").mode("append")
        if self.names is not None:
            writer.saveAsTable(self._name(self.names, table))
        else:
            writer.save(spark_location(self.warehouse.location(table)))
        self.warehouse.changed(table)

    def of_cluster(self, table: str, cluster: str, days: Days, columns: Sequence[str] | None = None) -> DataFrame:
        """Return columns of the rows of a cluster and some days: all except the cluster if ``columns`` is None."""
        from pyspark.sql import functions as F

        names = columns if columns is not None else self.columns(table)
        rows = self.frame(table).where(F.col("cluster") == F.lit(cluster))
        if days.first is not None:
            rows = rows.where(F.col("day") >= F.lit(days.first))
        if days.last is not None:
            rows = rows.where(F.col("day") <= F.lit(days.last))
        return rows.select(*names)

    def columns(self, table: str) -> list[str]:
        """Return the columns of a table without the cluster, in order."""
        return [column.name for column in self.warehouse.contracts[table].columns if column.name != "cluster"]

    def _name(self, names: CatalogNames, table: str) -> str:
        layer, _, name = table.partition(".")
        return f"{names.database(layer)}.{name}"


def bucket(key: Key) -> Column:
    """Return the bucket of a row by its key, as lake/buckets.py computes it."""
    from pyspark.sql import functions as F

    parts = [F.coalesce(*[F.col(name).cast("string") for name in names], F.lit("")) for names in key]
    return F.pmod(F.crc32(F.concat_ws(SEPARATOR, *parts).cast("binary")), F.lit(BUCKETS))


@dataclass(frozen=True)
class SparkRows:
    """Rows that the driver reads by Spark, for a catalog whose files only Spark may read."""

    tables: SparkTables
    cluster: str

    def read(
        self, table: str, days: Days, wanted: pl.Expr, of: Wanted = None, columns: Sequence[str] | None = None
    ) -> pl.DataFrame:
        """As RowSource.read; the driver reads no shards."""
        assert not isinstance(of, Shard)
        names = list(columns) if columns is not None else self.tables.columns(table)
        rows = as_frame(collected(self.tables.of_cluster(table, self.cluster, days)))
        return rows.filter(wanted if of is None else wanted & of).select(names)


def collected(rows: DataFrame) -> pa.Table:
    """Return the rows of a DataFrame."""
    classic: Any = rows
    if hasattr(classic, "toArrow"):
        return pa.table(classic.toArrow())
    return pa.Table.from_batches(classic._collect_as_arrow())  # before PySpark 4.0


def as_frame(rows: pa.Table) -> pl.DataFrame:
    """Return rows of Arrow in one piece."""
    return pl.DataFrame(pl.from_arrow(rows)).rechunk()


def _text(value: str) -> str:
    """Return a text as a literal of Spark SQL.

    >>> _text("it's")
    "'it\\\\'s'"
    """
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
