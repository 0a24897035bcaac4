"""The Delta tables of a warehouse as DataFrames of Spark, by path or by their names in a catalog."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mqreplay.engines.spark_errors import known_errors
from mqreplay.lake.buckets import BUCKETS, SEPARATOR, Key
from mqreplay.lake.row_filter import Days, RowFilter
from mqreplay.lake.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

# The driver commits what so few rows give: a write by Spark takes 2 CPU seconds, also for a few rows.
FEW_ROWS = 100_000


@dataclass(frozen=True)
class SparkTables:
    """The tables of a warehouse, which Spark reads and writes by path or by name."""

    session: SparkSession
    warehouse: Warehouse

    @property
    def by_name(self) -> bool:
        """Return whether the tables have names in a catalog: then only Spark reads and writes them."""
        return self.warehouse.names is not None

    def may_write(self, cluster: str) -> bool:
        """Return whether Spark may write rows of the cluster.

        Spark writes the letters of a partition's path into Delta's log as they are, delta-rs escapes those that are not
        ASCII, and a file that one of them added is not the one that the other removes.
        """
        return self.by_name or cluster.isascii()

    def replace(self, table: str, rows: DataFrame, cluster: str, day: dt.date) -> None:
        """Replace the rows of a cluster and day."""
        self.commit(table, rows, RowFilter(cluster, days=frozenset({day})))

    def commit(self, table: str, rows: DataFrame, replaced: RowFilter | None) -> None:
        """As Warehouse.commit_frame. Raises InputError if Spark cannot open the table's folder."""
        writer = self.warehouse.writer(table)
        # Delta hands Parquet no options of a write, but all settings of the session: by column, without its table.
        for name in writer.schema.names:
            if name not in writer.repeating:
                self.session.conf.set(f"parquet.enable.dictionary#{name}", "false")
        with known_errors():
            self.warehouse.commit_frame(table, rows, replaced)

    def of_cluster(self, table: str, cluster: str, days: Days, columns: Sequence[str]) -> DataFrame:
        """Return columns of the rows of a cluster and some days.

        Raises InputError if Spark cannot open the table's folder.
        """
        wanted = days.of_cluster(cluster).partitions_sql(self.warehouse.contracts[table].by_day)
        with known_errors():
            return self.warehouse.spark_table(self.session, table).where(wanted).select(*columns)

    def columns(self, table: str) -> list[str]:
        """Return the columns of a table without the cluster, in order."""
        return [column.name for column in self.warehouse.contracts[table].columns if column.name != "cluster"]


def bucket(key: Key) -> Column:
    """Return the bucket of a row by its key, as lake/buckets.py computes it."""
    from pyspark.sql import functions as F

    parts = [F.coalesce(*[F.col(name).cast("string") for name in names], F.lit("")) for names in key]
    return F.pmod(F.crc32(F.concat_ws(SEPARATOR, *parts).cast("binary")), F.lit(BUCKETS))
