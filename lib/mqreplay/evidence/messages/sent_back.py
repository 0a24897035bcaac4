"""Messages that concurrent consumers sent back, and their retries, by requests and by the consumers' own logs."""

from __future__ import annotations

from typing import Final

import polars as pl

from mqreplay.core.retry_topic import RETRY_GROUP_TOPIC_PREFIX
from mqreplay.evidence.messages.deliveries import DONE, once

RETRY_OF: Final = ("consumer_group", "msg_id", "retry")  # the n-th retry of a message
STORED: Final = ("consumer_group", "broker_name", "commitlog_offset")  # a stored message, received by a group
PLACE: Final = ("broker_name", "queue_topic", "queue_id", "queue_offset")
SENT_BACK: Final = "RECONSUME_LATER"  # ConsumeConcurrentlyStatus


def retry_deliveries(consume: pl.DataFrame) -> pl.DataFrame:
    """Return the deliveries that failed, and those of retry topics: rows of silver.consume.

    Orderly listeners send nothing back: they try again in their queue. ``consume`` is one shard, with queue_topic.
    """
    is_retry = pl.col("queue_topic").str.starts_with(RETRY_GROUP_TOPIC_PREFIX)
    failed = ~pl.col("status").is_in(DONE)
    wanted = ~pl.col("orderly").fill_null(value=False) & (is_retry | failed).fill_null(value=False)
    return once(consume.filter(wanted)).select(
        *("consumer_group", "topic", "client_id", *PLACE, "commitlog_offset", "msg_id", "ts", "store_ts"),
        *("reconsume_times", "status", "record_id"),
    )


def sent_back_messages(send_back: pl.DataFrame, deliveries: pl.DataFrame, silent: pl.DataFrame) -> pl.DataFrame:
    """Return the messages sent back: by the requests, and by listeners whose request was not recorded.

    Columns: day, consumer_group, topic, broker_name, client_id, msg_id, sent_ts, response_code, delay_level and
    max_reconsume_times (both null without a request), reconsume_times (null without a delivery), commitlog_offset,
    consume_record_id, second_times, stored_by (the broker that stored it again), and record_id of the request, else of
    the delivery. ``send_back`` has the columns
    of `with_second_tries`. ``deliveries`` are rows of `retry_deliveries`. ``silent`` has the consumer_group of groups
    whose listeners cause no request: those of broadcasting and of POP.
    """
    # A client whose request failed sends the message itself, or tries again later (sendMessageBackAsNormalMessage).
    answered = send_back.filter(pl.col("error").is_null())
    read = deliveries.drop_nulls("commitlog_offset").sort("ts", "record_id").unique(STORED, keep="first")
    requested = answered.join(
        read.select(*STORED, "reconsume_times", pl.col("record_id").alias("consume_record_id")), STORED, how="left"
    )
    own_topic = pl.col("queue_topic") == pl.lit(RETRY_GROUP_TOPIC_PREFIX) + pl.col("consumer_group")
    is_pop = pl.col("queue_topic").str.starts_with(RETRY_GROUP_TOPIC_PREFIX) & ~own_topic
    without = pl.concat([silent.select("consumer_group"), deliveries.filter(is_pop).select("consumer_group")])
    later = deliveries.filter(pl.col("status") == SENT_BACK).join(without, "consumer_group", how="anti")
    unrequested = later.join(answered, [*STORED, "client_id"], how="anti", nulls_equal=False)
    no_offset = pl.col("commitlog_offset").is_null()
    named = unrequested.filter(no_offset).join(answered, ["consumer_group", "client_id", "msg_id"], how="anti")
    listened = pl.concat([unrequested.filter(~no_offset), named]).with_columns(
        pl.col("record_id").alias("consume_record_id")
    )
    both = pl.concat([requested, listened], how="diagonal").rename({"ts": "sent_ts"})
    return both.select(
        pl.col("sent_ts").dt.date().alias("day"),
        *("consumer_group", "topic", "broker_name", "client_id", "msg_id", "sent_ts", "response_code", "delay_level"),
        *("max_reconsume_times", "reconsume_times", "commitlog_offset", "consume_record_id", "second_times"),
        pl.coalesce("second_broker", "broker_name").alias("stored_by"),
        "record_id",
    )


def complete_retries(deliveries: pl.DataFrame) -> pl.DataFrame:
    """Return the spans of time in which the log has every message that a broker put into a group's retry queue.

    Columns: consumer_group, broker_name, queue_id, read_from_ts (null: from its first message on), read_until_ts; true
    by the clocks of both the broker and the consumer. ``deliveries`` are rows of `retry_deliveries`.
    """
    own_topic = pl.col("queue_topic") == pl.lit(RETRY_GROUP_TOPIC_PREFIX) + pl.col("consumer_group")
    named = deliveries.filter(own_topic).drop_nulls(["queue_offset", "store_ts", "msg_id", "reconsume_times"])
    queue = ["consumer_group", "broker_name", "queue_id"]
    stored = (
        named.sort(*queue, "queue_offset", "ts")
        .unique([*queue, "queue_offset"], keep="first")
        .sort(*queue, "queue_offset")
    )
    follows = (pl.col("queue_offset") == pl.col("queue_offset").shift() + 1) & (
        pl.col("store_ts") >= pl.col("store_ts").shift()
    )
    runs = stored.with_columns((~follows.over(queue).fill_null(value=False)).cum_sum().over(queue).alias("run"))
    spans = runs.group_by(*queue, "run", maintain_order=True).agg(
        pl.when(pl.col("queue_offset").first() > 0)
        .then(pl.max_horizontal("store_ts", "ts").first())
        .alias("read_from_ts"),
        pl.min_horizontal("store_ts", "ts").last().alias("read_until_ts"),
    )
    return spans.drop("run")


def first_deliveries(deliveries: pl.DataFrame) -> pl.DataFrame:
    """Return the first delivery of each retry: consumer_group, msg_id, retry, stored_ts, delivered_ts."""
    of_retries = deliveries.filter(pl.col("queue_topic").str.starts_with(RETRY_GROUP_TOPIC_PREFIX))
    named = of_retries.rename({"reconsume_times": "retry"}).drop_nulls(["msg_id", "retry"])
    return (
        named.group_by(*RETRY_OF, *PLACE)
        .agg(pl.col("store_ts").min().alias("stored_ts"), pl.col("ts").min().alias("delivered_ts"))
        .drop(PLACE)
    )
