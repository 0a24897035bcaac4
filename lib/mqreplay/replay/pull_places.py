"""Where messages lie in the commit log, as others than pulls tell it: consumers' and producers' logs."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

QUEUE = ["broker_name", "topic", "queue_id"]


def places_elsewhere(consume: DataFrame, produce: DataFrame) -> DataFrame:
    """QUEUE, ``at`` (queue offset), ``value`` (place in the commit log, bytes).

    An offset message id ends with the place, as 16 hex digits (MessageDecoder#createMessageId).
    """
    eaten = consume.select(
        "broker_name",
        F.coalesce("queue_topic", "topic").alias("topic"),
        "queue_id",
        F.col("queue_offset").alias("at"),
        F.col("commitlog_offset").alias("value"),
    )
    sent = produce.where(F.col("offset_msg_id").rlike("^([0-9A-Fa-f]{32}|[0-9A-Fa-f]{56})$")).select(
        *QUEUE,
        F.col("queue_offset").alias("at"),
        F.conv(F.right("offset_msg_id", F.lit(16)), 16, 10).cast("bigint").alias("value"),
    )
    return eaten.unionByName(sent).dropna()
