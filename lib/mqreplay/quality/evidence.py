"""What expectations of one table must know of others: read once a run, passed to the suites as parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyspark.sql import functions as F

from mqreplay.lake.warehouse import Warehouse


@dataclass(frozen=True)
class Evidence:
    """Of one cluster: the brokers it is known to have, and when its recordings end (epoch ms; null: no file)."""

    known_brokers: list[str]
    recording_end_ms: int | None

    def parameters(self, silver_rows: dict[str, int]) -> dict[str, Any]:
        """Suite parameters by name. ``silver_rows`` counts the rows of each table, as they have been read."""
        return {
            "known_brokers": self.known_brokers,
            "recording_end_ms": self.recording_end_ms,
            "silver_rows": silver_rows,
        }


def gather(warehouse: Warehouse, cluster: str) -> Evidence:
    """Reads the evidence in one Spark job."""
    here = F.col("cluster") == cluster
    brokers = warehouse.read("silver.broker").where(here).select("broker_name")
    routes = warehouse.read("silver.route").where(here)
    routed = routes.select(F.explode("broker_datas.broker_name").alias("broker_name"))
    files = warehouse.read("bronze.source_file").where(here)
    end = files.select(F.max(F.unix_millis("last_ts")).alias("end_ms"))
    names = brokers.union(routed).select(F.array_sort(F.collect_set("broker_name")).alias("names"))
    row = names.crossJoin(end).head()
    return Evidence([], None) if row is None else Evidence(list(row.names), row.end_ms)
