"""Messages that a group was given more than once, and how each came to be: from the consumers' own logs."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

MESSAGE = ["cluster", "consumer_group", "queue_topic", "broker_name", "queue_id", "queue_offset"]
DONE = ("CONSUME_SUCCESS", "SUCCESS", "COMMIT")  # ConsumeConcurrentlyStatus, ConsumeOrderlyStatus


def repeated_deliveries(consume: DataFrame, broadcasting: DataFrame) -> DataFrame:
    """Rows of silver.consume that gave a group a message again, with first_client_id and first_ts.

    A message is a place in a queue. Tries that failed are no deliveries; broadcasting clients have each their own.
    """
    done = once(consume.where(F.col("status").isin(*DONE))).join(
        F.broadcast(broadcasting), ["cluster", "consumer_group"], "left_anti"
    )
    order = Window.partitionBy(*MESSAGE).orderBy("ts", "client_id", "record_id")
    told = done.withColumns(
        {
            "first_client_id": F.first("client_id").over(order),
            "first_ts": F.first("ts").over(order),
            "_n": F.row_number().over(order),
        }
    )
    return told.where("_n > 1").drop("_n")


def came_back(consume: DataFrame) -> DataFrame:
    """Rows of silver.consume whose message was sent back to be consumed later (ConsumeMessageConcurrentlyService)."""
    return once(consume.where(F.col("status") == "RECONSUME_LATER"))


def once(consume: DataFrame) -> DataFrame:
    """Each delivery once: a line that was logged twice is no second delivery, which would have another instant."""
    return consume.dropDuplicates([*MESSAGE, "client_id", "ts", "status", "reconsume_times"])
