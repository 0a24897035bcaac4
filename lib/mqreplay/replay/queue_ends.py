"""Where queues began and ended, as brokers told: from the answers of pulls and from topic statistics.

Only a master's word counts: a slave's queue may end earlier than its master's, and would make a good offset look wrong.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

QUEUE = ["broker_name", "topic", "queue_id"]


def queue_ends(pull: DataFrame, topic_stats: DataFrame) -> DataFrame:
    """QUEUE, ``at`` (instant), queue_min_offset and queue_max_offset (messages), each as a master told it."""
    told = pull.where((F.col("broker_id") == 0) & F.col("max_offset").isNotNull()).select(
        *QUEUE,
        F.coalesce("response_ts", "request_ts").alias("at"),
        F.col("min_offset").alias("queue_min_offset"),
        F.col("max_offset").alias("queue_max_offset"),
    )
    looked = (
        topic_stats.where((F.col("broker_id") == 0) & F.col("offsets").isNotNull())
        .select("ts", F.explode("offsets").alias("o"))
        .select(
            "o.broker_name",
            "o.topic",
            "o.queue_id",
            F.col("ts").alias("at"),
            F.col("o.min_offset").alias("queue_min_offset"),
            F.col("o.max_offset").alias("queue_max_offset"),
        )
    )
    return told.unionByName(looked)
