"""Deliveries by the consumers' own logs: messages received more than once, sent back, or held in a suspended queue."""

from __future__ import annotations

from typing import Final

import polars as pl

from mqreplay.core.retry_topic import RETRY_GROUP_TOPIC_PREFIX

# A message is identified by its place in a queue. The topic of a message that was sent back differs from its queue's,
# which is of %RETRY%.
DELIVERED_MESSAGE = ("consumer_group", "topic", "queue_topic", "broker_name", "queue_id", "queue_offset")
DONE = ("CONSUME_SUCCESS", "SUCCESS", "COMMIT")  # ConsumeConcurrentlyStatus, ConsumeOrderlyStatus
DELIVERY = (*DELIVERED_MESSAGE, "client_id", "ts", "status", "reconsume_times")
SUSPENDED: Final = "SUSPEND_CURRENT_QUEUE_A_MOMENT"  # ConsumeOrderlyStatus
DELIVERY_QUEUE: Final = ("consumer_group", "broker_name", "queue_topic", "queue_id")
DELIVERY_PLACE: Final = (*DELIVERY_QUEUE, "queue_offset")


def with_queue_topic(consume: pl.DataFrame) -> pl.DataFrame:
    """Return the deliveries with queue_topic also where the log lacks it, by core.retry_topic.topic_of_queue.

    It stays null where reconsume_times is null, too.
    """
    is_sent_back = (pl.col("reconsume_times") > 0) & ~pl.col("orderly").fill_null(False)
    retry = pl.lit(RETRY_GROUP_TOPIC_PREFIX) + pl.col("consumer_group")
    of_queue = pl.when(is_sent_back).then(retry).when(pl.col("reconsume_times").is_not_null()).then("topic")
    return consume.with_columns(pl.coalesce("queue_topic", of_queue).alias("queue_topic"))


def repeated_deliveries(consume: pl.DataFrame, broadcasting: pl.DataFrame) -> pl.DataFrame:
    """Return the deliveries of a message after its first, each with the delivery before it.

    Columns: consumer_group, topic, queue_topic, broker_name, queue_id, queue_offset, client_id, ts, record_id,
    previous_client_id, previous_ts; stored_ts, when the broker stored the message, or its producer made it, null if
    neither is known. Only successful deliveries count.
    ``broadcasting`` has the consumer_group of groups whose clients each receive every message: they have no repeated
    deliveries. ``consume`` is one shard: all rows of some queues.
    """
    shared = consume.join(broadcasting, on="consumer_group", how="anti")
    stored = pl.coalesce("store_ts", "born_ts").alias("stored_ts")
    done = once(shared.filter(pl.col("status").is_in(DONE))).select(
        *DELIVERED_MESSAGE, "client_id", "ts", "record_id", stored
    )
    several = done.filter(done.select(DELIVERED_MESSAGE).is_duplicated()).sort("ts", "client_id", "record_id")
    return (
        several.with_columns(
            *[pl.col(name).shift(1).over(DELIVERED_MESSAGE).alias(f"previous_{name}") for name in ("client_id", "ts")],
            pl.int_range(pl.len()).over(DELIVERED_MESSAGE).alias("_nth"),
        )
        .filter(pl.col("_nth") > 0)
        .drop("_nth")
    )


def redelivered_messages(consume: pl.DataFrame) -> pl.DataFrame:
    """Return the deliveries whose message was sent back to be delivered again.

    Columns: consumer_group, ts, reconsume_times, record_id. The listener answered RECONSUME_LATER
    (ConsumeMessageConcurrentlyService). ``consume`` is one shard: all rows of some queues.
    """
    later = once(consume.filter(pl.col("status") == "RECONSUME_LATER"))
    return later.select("consumer_group", "ts", "reconsume_times", "record_id")


def max_reconsume_times_of_shard(consume: pl.DataFrame) -> pl.DataFrame:
    """Return the largest reconsume_times of a delivery of each group, as max_reconsume_times.

    ``consume`` are any part of the deliveries.
    """
    return consume.group_by("consumer_group").agg(
        pl.col("reconsume_times").max().cast(pl.Int64).alias("max_reconsume_times")
    )


def once(consume: pl.DataFrame) -> pl.DataFrame:
    """Return each delivery once: of log lines that are equal, the one with the lowest record_id.

    A second delivery of a message has another instant, so equal lines are one delivery that was logged twice.
    """
    equal = consume.select(DELIVERY).is_duplicated()
    if not equal.any():
        return consume
    first = consume.filter(equal).sort("record_id").unique(DELIVERY, keep="first", maintain_order=True)
    return pl.concat([consume.filter(~equal), first])


def suspended_deliveries(consume: pl.DataFrame) -> pl.DataFrame:
    """Return all deliveries of the messages for which a listener suspended their queue: rows of silver.consume.

    ``consume`` is one shard, with queue_topic.
    """
    orderly = consume.filter(pl.col("orderly").fill_null(value=False) & pl.col("queue_offset").is_not_null())
    failed = orderly.filter(pl.col("status") == SUSPENDED).select(DELIVERY_PLACE).unique()
    return once(orderly.join(failed, DELIVERY_PLACE, how="semi")).select(
        *DELIVERY_PLACE, "topic", "client_id", "msg_id", "ts", "reconsume_times", "status", "record_id"
    )
