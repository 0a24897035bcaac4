"""What stood already when the rows of a replay begin: tables that hold changes alone do not say it again."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

FILE = ["cluster", "source_name"]
CHAIN = [*FILE, "broker_name", "broker_id", "topic", "consumer_group", "queue_id"]


def carried_offsets(earlier: DataFrame, changes: DataFrame, snapshot: DataFrame) -> DataFrame:
    """Rows for ``changes`` (silver.offset_change): brokers' offsets that stood before it, as first copies show them.

    ``earlier`` are all rows before ``changes``, ``snapshot`` is silver.snapshot of the same time as ``changes``. A
    replay with these rows is that of a recording that began then: its first copy of a file holds every offset.
    """
    read = snapshot.where("file_name LIKE 'consumerOffset.json%' AND broker_id IS NOT NULL")
    first = F.min(F.struct("ts", "source_digest")).alias("first")
    copied = F.broadcast(read.groupBy(*FILE).agg(first))
    stood = (
        earlier.where("broker_id IS NOT NULL")
        .groupBy(*CHAIN)
        .agg(F.max_by("new_offset", "to_ts").alias("stood"))
        .where("stood IS NOT NULL")
        .join(copied, FILE)
    )
    # Where the first copy shows another offset, its row tells of both.
    at_once = changes.join(copied, FILE).where(F.col("to_ts") == F.col("first.ts")).select(*CHAIN)
    known = stood.join(at_once, CHAIN, "left_anti")
    told: dict[str, Column] = {
        "day": F.to_date("first.ts"),
        "new_offset": F.col("stood"),
        "to_ts": F.col("first.ts"),
        "source_digest": F.col("first.source_digest"),
    }
    columns = {name: told.get(name, F.lit(None) if name not in CHAIN else F.col(name)) for name in changes.columns}
    return known.select(*[columns[f.name].cast(f.dataType).alias(f.name) for f in changes.schema])


def carried_configs(earlier: DataFrame, key: str) -> DataFrame:
    """Of ``earlier`` (rows of silver.topic_config) the last of each file and ``key``, but those of what was removed."""
    row = F.struct(*earlier.columns)
    last = earlier.groupBy(*FILE, key).agg(F.max_by(row, "ts").alias("row")).select("row.*")
    return last.where("change <> 'removed'")
