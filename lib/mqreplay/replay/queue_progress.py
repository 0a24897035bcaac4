"""gold.queue_progress: each queue and group on each broker in each hour: where it stood, how far it came, its lag."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from mqreplay.replay.far import less


def queue_progress(progress: DataFrame, cluster: str) -> DataFrame:
    """One row a queue, group, broker and hour in which the offset changed. ``progress`` is by_queue/progress.py's.

    The lag is a lower bound's best: the end of the queue last told within the hour, less the offset then; null where no
    master told of the queue's end.
    """
    return progress.select(
        F.lit(cluster).alias("cluster"),
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
        less("last_offset", "first_offset").alias("advance"),
        "changes",
        "queue_max_offset",
        F.greatest(less("queue_max_offset", "last_offset"), F.lit(0)).alias("lag"),
    )
