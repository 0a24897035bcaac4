"""Compact the Delta tables and remove files that no recent version needs, by Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqreplay.lake.storage import spark_location
from mqreplay.lake.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def maintain(spark: SparkSession, warehouse: Warehouse, keep_hours: int = 168) -> None:
    """Compact and cluster every table, and remove files that no version of the last ``keep_hours`` hours needs."""
    from mqreplay.lake.java_process import check_java_names  # imports pyspark, which is slow

    check_java_names(warehouse.root)
    for name in warehouse.contracts:
        if warehouse.exists(name):
            table = delta_table(spark_location(warehouse.location(name)))
            spark.sql(f"OPTIMIZE {table}")
            spark.sql(f"VACUUM {table} RETAIN {keep_hours} HOURS")


def delta_table(path: str) -> str:
    """Return the Spark SQL name of the Delta table in the folder ``path``.

    >>> delta_table("/w/silver/a`b")
    'delta.`/w/silver/a``b`'
    """
    return "delta.`" + path.replace("`", "``") + "`"
