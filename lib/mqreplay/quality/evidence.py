"""What expectations of one table must know of others, or of other days: passed to the suites as parameters."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection
from dataclasses import dataclass
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from mqreplay.lake.contract import Contract
from mqreplay.lake.warehouse import Warehouse
from mqreplay.quality.expectations.rows_conserved import COUNTED_BY_RECORD, KINDS_OF_TABLE
from mqreplay.standing import CHAIN, Standing

CHAINED, FRESH = "expect_offset_continuity", "expect_table_to_be_fresh"
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


@dataclass(frozen=True)
class Evidence:
    """Of one cluster: the brokers it is known to have, and when its recordings end (epoch ms; null: no file)."""

    known_brokers: list[str]
    recording_end_ms: int | None

    @property
    def end(self) -> dt.datetime:
        """When its recordings end, as an instant; 1970 where there are none."""
        return EPOCH + dt.timedelta(milliseconds=self.recording_end_ms or 0)

    def parameters(self, silver_rows: dict[str, int], newest_before_ms: int | None) -> dict[str, Any]:
        """Suite parameters by name. ``silver_rows`` counts the rows of each table, ``newest_before_ms`` is of one."""
        return {
            "known_brokers": self.known_brokers,
            "recording_end_ms": self.recording_end_ms,
            "silver_rows": silver_rows,
            "newest_before_ms": newest_before_ms,
        }


def gather(warehouse: Warehouse, cluster: str, day: dt.date | None) -> Evidence:
    """Reads the evidence in one Spark job; recordings of a ``day`` end with it at the latest."""
    here = F.col("cluster") == cluster
    brokers = warehouse.read("silver.broker").where(here).select("broker_name")
    routes = warehouse.read("silver.route").where(here)
    routed = routes.select(F.explode("broker_datas.broker_name").alias("broker_name"))
    names = brokers.union(routed).select(F.array_sort(F.collect_set("broker_name")).alias("names"))
    files = warehouse.read("bronze.source_file").where(here)
    row = names.crossJoin(_ends(files, day)).head()
    if row is None:
        return Evidence([], None)
    end_ms = row.end_ms
    if row.goes_on:
        # A file that goes on after the day does not say when it paused: the day's own rows do.
        end_ms = _newest(warehouse, here & (F.col("day") == F.lit(day)))
    return Evidence(list(row.names), end_ms)


def _ends(files: DataFrame, day: dt.date | None) -> DataFrame:
    """end_ms, goes_on: when files that speak of the day end, and whether one goes on after it."""
    if day is None:
        return files.select(F.max(F.unix_millis("last_ts")).alias("end_ms"), F.lit(False).alias("goes_on"))
    begin = dt.datetime.combine(day, dt.time(), dt.UTC)
    next_day = F.lit(begin + dt.timedelta(days=1))
    of_day = files.where((F.col("first_ts") < next_day) & (F.col("last_ts") >= F.lit(begin)))
    return of_day.select(
        F.max(F.unix_millis("last_ts")).alias("end_ms"),
        F.coalesce(F.max(F.col("last_ts") >= next_day), F.lit(False)).alias("goes_on"),
    )


def _newest(warehouse: Warehouse, where: Column) -> int | None:
    """The newest instant (epoch ms) that any table asked to be fresh has."""
    asked = {name: fresh_by(contract) for name, contract in warehouse.contracts.items() if warehouse.exists(name)}
    found = [_newest_of(warehouse.read(name).where(where), column) for name, column in asked.items() if column]
    row = reduce(DataFrame.unionByName, found).agg(F.max("newest_ms").alias("newest_ms")).head() if found else None
    return None if row is None else row.newest_ms


def _newest_of(rows: DataFrame, column: str) -> DataFrame:
    return rows.select(F.max(F.unix_millis(column)).alias("newest_ms"))


def newest_before(table: DataFrame, column: str, day: dt.date) -> int | None:
    """The newest instant of ``column`` in the table's rows before the day (epoch ms), null if there are none."""
    row = _newest_of(table.where(F.col("day") < F.lit(day)), column).head()
    return None if row is None else row.newest_ms


def fresh_by(contract: Contract) -> str | None:
    """The column by which the table must be fresh, if it must."""
    return next((rule["kwargs"]["column"] for rule in contract.quality if rule["type"] == FRESH), None)


def before_in_chain(
    warehouse: Warehouse, cluster: str, contract: Contract, of_day: DataFrame, day: dt.date
) -> DataFrame | None:
    """The rows from which the day's chains go on: of each the last one before it; null where nothing is chained."""
    if not any(rule["type"] == CHAINED for rule in contract.quality):
        return None
    last = Standing(warehouse, cluster).last_before(day).join(of_day.select(*CHAIN).distinct(), CHAIN, "left_semi")
    return last.withColumns({"day": F.to_date("to_ts"), "source_digest": F.lit("")})  # which file it was is not asked


def silver_rows(warehouse: Warehouse, cluster: str, but: Collection[dt.date]) -> dict[str, int]:
    """Rows (or records) that each silver table with days has on other days than those."""
    names = [name for name in KINDS_OF_TABLE if warehouse.exists(name) and warehouse.contracts[name].by_day]
    counts = [_counted(warehouse, name, cluster, but) for name in names]
    return {row.name: row.rows for row in reduce(DataFrame.unionByName, counts).collect()} if counts else {}


def _counted(warehouse: Warehouse, name: str, cluster: str, but: Collection[dt.date]) -> DataFrame:
    rows = warehouse.read(name).where((F.col("cluster") == cluster) & ~F.col("day").isin(list(but)))
    count = F.count_distinct("record_id") if name in COUNTED_BY_RECORD else F.count(F.lit(1))
    return rows.select(F.lit(name).alias("name"), count.alias("rows"))
