"""Snapshot files that were not whole when they were copied."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from mqreplay.replay.findings.shape import evidence, finding

PLACE = r"^snapshots/(.*)/(\d+)/([^/]+)$"
BROKER = r"^(.*)-(\d+)$"


def refused_snapshots(quarantine: DataFrame) -> DataFrame:
    """Of bronze.quarantine the snapshots that were not whole; source, ts and file_name as the path has them."""
    whole = (F.col("line_number") == 0) & (F.col("detail_key") == "") & (F.col("code") != "late")
    return quarantine.where(whole & F.col("path").rlike(PLACE)).withColumns(
        {
            "source": F.regexp_extract("path", PLACE, 1),
            "ts": F.timestamp_millis(F.regexp_extract("path", PLACE, 2).cast("bigint")),
            "file_name": F.regexp_extract("path", PLACE, 3),
        }
    )


def snapshot_findings(refused: DataFrame) -> DataFrame:
    """One finding for each broker or client with such snapshots (rows of refused_snapshots)."""
    found = refused.groupBy("cluster", "source").agg(
        F.min("ts").alias("from_ts"),
        F.max("ts").alias("to_ts"),
        F.count(F.lit(1)).alias("files"),
        F.array_join(F.array_sort(F.collect_set("code")), ", ").alias("codes"),
        F.array_join(F.array_sort(F.collect_set("file_name")), ", ").alias("names"),
        evidence("bronze.quarantine", "path"),
    )
    is_client = F.col("source").startswith("client-") & F.col("source").contains("@")
    placed = found.withColumns(
        {
            "broker_name": F.when(~is_client, F.regexp_extract("source", BROKER, 1)),
            "broker_id": F.when(~is_client, F.regexp_extract("source", BROKER, 2).try_cast("bigint")),
            "client_id": F.when(is_client, F.regexp_replace("source", "^client-", "")),
        }
    )
    summary = F.concat(
        "files",
        F.when(F.col("files") == 1, " snapshot file of ").otherwise(" snapshot files of "),
        "source",
        F.lit(" could not be believed ("),
        "names",
        F.lit(": "),
        "codes",
        F.lit("); the snapshots around stand."),
    )
    advice = "Copy the .bak along, or copy again when a file is not whole: brokers rewrite it in place."
    return finding(placed, kind="torn_snapshot", severity=F.lit("info"), summary=summary, advice=advice, confidence=1.0)
