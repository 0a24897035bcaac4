"""What moved offsets on purpose: resets that a broker pushed or answered with, and pulls that skip messages."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

GROUP_QUEUE = ["consumer_group", "broker_name", "topic", "queue_id"]
OFFSET_MOVED = 21  # ResponseCode.PULL_OFFSET_MOVED


def offset_resets(server_request: DataFrame, pull: DataFrame) -> DataFrame:
    """cluster, GROUP_QUEUE, ``offset`` (messages), ``ts``, ``table_name``, ``record_id``: resets as clients saw them.

    4.9 pushes RESET_CONSUMER_CLIENT_OFFSET; 5.x answers a pull inside the queue's range with PULL_OFFSET_MOVED.
    """
    pushed = (
        server_request.where(F.col("reset_offsets").isNotNull())
        .select("cluster", "consumer_group", "ts", "record_id", F.explode("reset_offsets").alias("o"))
        .select(
            *("cluster", "consumer_group", "o.broker_name", "o.topic", "o.queue_id", "o.offset", "ts"),
            F.lit("silver.server_request").alias("table_name"),
            "record_id",
        )
    )
    in_range = (F.col("queue_offset") >= F.col("min_offset")) & (F.col("queue_offset") <= F.col("max_offset"))
    moved = pull.where((F.col("response_code") == OFFSET_MOVED) & in_range).select(
        "cluster",
        *GROUP_QUEUE,
        F.col("next_begin_offset").alias("offset"),
        F.coalesce("response_ts", "request_ts").alias("ts"),
        F.lit("silver.pull").alias("table_name"),
        "record_id",
    )
    return pushed.unionByName(moved)


def skipping_pulls(pull: DataFrame) -> DataFrame:
    """GROUP_QUEUE, ``skipped_from``, ``skipped_to`` (messages), ``ts``: pulls that begin past all the group was given.

    The first pull of a queue skips nothing: what the group was given before the recording is not known. Nor does a pull
    past the queue's end: it is corrected.
    """
    before = (
        Window.partitionBy(*GROUP_QUEUE)
        .orderBy("request_ts", "opaque", "record_id")
        .rowsBetween(Window.unboundedPreceding, -1)
    )
    given = F.when(F.col("response_code").isNotNull(), F.col("next_begin_offset"))
    reached = F.max(F.greatest(given, F.col("queue_offset"))).over(before)
    return (
        pull.withColumn("skipped_from", reached)
        .where((F.col("queue_offset") > F.col("skipped_from")) & (F.col("queue_offset") <= F.col("max_offset")))
        .select(
            *GROUP_QUEUE,
            "skipped_from",
            F.col("queue_offset").alias("skipped_to"),
            F.col("request_ts").alias("ts"),
        )
    )
