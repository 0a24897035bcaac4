"""What moved offsets on purpose: resets that a broker pushed or answered with."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

GROUP_QUEUE = ["consumer_group", "broker_name", "topic", "queue_id"]
OFFSET_MOVED = 21  # ResponseCode.PULL_OFFSET_MOVED


def offset_resets(server_request: DataFrame, pull: DataFrame) -> DataFrame:
    """Resets as clients saw them: cluster, GROUP_QUEUE, offset (messages), since, ts, table_name, record_id.

    4.9 pushes RESET_CONSUMER_CLIENT_OFFSET; 5.x sets the offset itself (ConsumerOffsetManager#assignResetOffset), and
    answers the next pull inside the queue's range with PULL_OFFSET_MOVED. A pull that waited is answered later than the
    offset was set: ``since`` is when it was asked.
    """
    pushed = (
        server_request.where(F.col("reset_offsets").isNotNull())
        .select("cluster", "consumer_group", "ts", "record_id", F.explode("reset_offsets").alias("o"))
        .select(
            *("cluster", "consumer_group", "o.broker_name", "o.topic", "o.queue_id", "o.offset"),
            *(F.col("ts").alias("since"), "ts"),
            F.lit("silver.server_request").alias("table_name"),
            "record_id",
        )
    )
    in_range = (F.col("queue_offset") >= F.col("min_offset")) & (F.col("queue_offset") <= F.col("max_offset"))
    moved = pull.where((F.col("response_code") == OFFSET_MOVED) & in_range).select(
        "cluster",
        *GROUP_QUEUE,
        F.col("next_begin_offset").alias("offset"),
        F.col("request_ts").alias("since"),
        F.coalesce("response_ts", "request_ts").alias("ts"),
        F.lit("silver.pull").alias("table_name"),
        "record_id",
    )
    return pushed.unionByName(moved)
