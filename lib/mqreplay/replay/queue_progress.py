"""gold.queue_progress: each queue and group on each broker in each hour: where it stood, how far it came, its lag."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from mqreplay.replay.as_of import as_of
from mqreplay.replay.queue_ends import QUEUE

KEY = ["cluster", "broker_name", "broker_id", "topic", "consumer_group", "queue_id"]


def queue_progress(offset_change: DataFrame, ends: DataFrame) -> DataFrame:
    """One row a queue, group, broker and hour in which the offset changed. ``ends`` is queue_ends' frame.

    The lag is a lower bound's best: the end of the queue last told within the hour, less the offset then; null where no
    master told of the queue's end.
    """
    changes = offset_change.where(F.col("broker_id").isNotNull()).withColumn("hour", F.date_trunc("hour", "to_ts"))
    low = F.coalesce("previous_offset", "new_offset")
    rows = changes.groupBy(*KEY, "hour").agg(
        F.min_by(low, "to_ts").alias("first_offset"),
        F.max_by("new_offset", "to_ts").alias("last_offset"),
        F.min(F.least(low, F.coalesce("new_offset", "previous_offset"))).alias("min_offset"),
        F.max(F.greatest("previous_offset", "new_offset")).alias("max_offset"),
        F.count(F.lit(1)).alias("changes"),
    )
    end_of_hour = F.col("hour") + F.expr("INTERVAL 1 HOUR")
    ended = as_of(rows.withColumn("at", end_of_hour), ends, QUEUE, "at", F.struct("at", "queue_max_offset"), "told")
    inside = F.when(F.col("told.at") >= F.col("hour"), F.col("told.queue_max_offset"))
    return ended.withColumn("queue_max_offset", inside).select(
        "cluster",
        F.to_date("hour").alias("day"),
        "broker_name",
        "broker_id",
        "topic",
        "consumer_group",
        "queue_id",
        "hour",
        "first_offset",
        "last_offset",
        "min_offset",
        "max_offset",
        (F.col("last_offset") - F.col("first_offset")).alias("advance"),
        "changes",
        "queue_max_offset",
        F.greatest(F.col("queue_max_offset") - F.col("last_offset"), F.lit(0)).alias("lag"),
    )
