"""Ends of queues, as masters report them: the minimum and maximum offset at an instant; and the lag behind an end.

`lag_of` is the one meaning of lag, for tables, findings, the state at an instant and pages.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection
from typing import TypeVar

import polars as pl

from mqreplay.evidence.arrays.frame_arrays import less
from mqreplay.evidence.arrays.nearest import as_of
from mqreplay.evidence.frames import ms
from mqreplay.words.keys import GROUP_QUEUE, QUEUE

Frame = TypeVar("Frame", pl.DataFrame, pl.LazyFrame)
NEVER = dt.datetime.fromtimestamp(0, dt.UTC)  # when a message was stored that the broker does not have any more


def lag_of(end: str, committed: str) -> pl.Expr:
    """Return the messages of a queue that a group has not committed; null if the offset or the end is not known.

    A broker treats a negative offset as missing (ConsumerManageProcessor#queryConsumerOffset). An offset beyond the
    end, which may be older, has no lag.
    """
    lag = less(end, committed).clip(lower_bound=0)
    return pl.when(pl.col(committed) >= 0).then(lag).alias("lag")


def queue_ends(pull: pl.DataFrame, topic_stats: pl.DataFrame) -> pl.DataFrame:
    """Return the ends of queues: one row per statement of a master.

    Columns: broker_name, topic, queue_id, at, asked_at, queue_min_offset, queue_max_offset (messages).

    The master read both between the request (``asked_at``) and the answer (``at``), which a long poll gets up to 15 s
    later. They only rise: from ``at`` on they are at least these, and until ``asked_at`` they were at most these.

    With the pulls of one shard the result holds all that is known of the shard's queues, and what topic statistics
    state about other queues too. To cover several shards, concatenate `pulled_ends` of each of them and add
    `polled_ends` once: topic statistics also name queues of no shard, such as dead letter queues.
    """
    return pl.concat([pulled_ends(pull), polled_ends(topic_stats)])


def pulled_ends(pull: Frame) -> Frame:
    """Return the rows of `queue_ends` that come from answers to the pulls of a shard."""
    return pull.filter((pl.col("broker_id") == 0) & pl.col("max_offset").is_not_null()).select(
        *QUEUE,
        pl.coalesce("response_ts", "request_ts").alias("at"),
        pl.col("request_ts").alias("asked_at"),
        pl.col("min_offset").alias("queue_min_offset"),
        pl.col("max_offset").alias("queue_max_offset"),
    )


def polled_ends(topic_stats: Frame) -> Frame:
    """Return the rows of `queue_ends` that come from topic statistics, of all queues."""
    offset = pl.col("offsets").struct.field
    return (
        topic_stats.filter((pl.col("broker_id") == 0) & (pl.col("offsets").list.len() > 0))
        .select("ts", "offsets")
        .explode("offsets")
        .select(
            *(offset(name) for name in QUEUE),
            pl.col("ts").alias("at"),
            pl.col("ts").alias("asked_at"),
            offset("min_offset").alias("queue_min_offset"),
            offset("max_offset").alias("queue_max_offset"),
        )
    )


def stated_offsets(consume_stats: pl.DataFrame) -> pl.DataFrame:
    """Return the entries of masters' answers to GET_CONSUME_STATS.

    Columns: consumer_group, topic, broker_name, queue_id, ts, offset, queue_max_offset, last_timestamp, response_code,
    record_id.
    """
    of_master = pl.col("broker_id").fill_null(0) == 0
    each = consume_stats.filter(of_master & (pl.col("offsets").list.len() > 0)).explode("offsets")
    item = pl.col("offsets").struct
    return each.select(
        "consumer_group",
        *(item.field(name).alias(name) for name in QUEUE),
        "ts",
        item.field("consumer_offset").alias("offset"),
        item.field("broker_offset").alias("queue_max_offset"),
        item.field("last_timestamp"),
        "response_code",
        "record_id",
    )


def with_age(spans: pl.DataFrame, consume_stats: pl.DataFrame | None, groups: Collection[str]) -> pl.DataFrame:
    """Add ``age_s``: how long before ``to_ts`` the last consumed message of the queue was stored; null if not known.

    ``spans`` have GROUP_QUEUE and to_ts. ``groups`` are those whose offsets only answers show: the broker looks up the
    message before the offset for each (AdminBrokerProcessor#getConsumeStats).
    """
    if consume_stats is None or not groups:
        return spans.with_columns(age_s=pl.lit(None, pl.Int64))
    answers = stated_offsets(consume_stats.filter(pl.col("consumer_group").is_in(sorted(groups))))
    stored = answers.with_columns(pl.col("last_timestamp").fill_null(NEVER))
    known = as_of(spans, stored, GROUP_QUEUE, "to_ts", {"_stored": "last_timestamp"}, right_at="ts")
    age_s = (ms("to_ts") - ms("_stored")) // 1000
    is_known = (pl.col("_stored") != NEVER) & (age_s >= 0)
    return known.with_columns(pl.when(is_known).then(age_s).alias("age_s")).drop("_stored")
