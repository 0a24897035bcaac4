"""The table silver.everything of tests/lake: its ids by mqreplay and by Spark, and its log."""

from __future__ import annotations

from pathlib import Path

from mqreplay.lake.warehouse import Warehouse

TABLE = "silver.everything"


def log_of(warehouse: Warehouse) -> Path:
    return Path(warehouse.location(TABLE), "_delta_log")


def ids(warehouse: Warehouse) -> list[int]:
    return sorted(warehouse.read(TABLE).select("id").collect()["id"])


def ids_of_spark(spark, warehouse: Warehouse) -> list[int]:
    return sorted(row.id for row in spark.sql(f"SELECT id FROM {table_of(warehouse)}").collect())


def table_of(warehouse: Warehouse) -> str:
    return "delta.`" + warehouse.location(TABLE).replace("`", "``") + "`"
