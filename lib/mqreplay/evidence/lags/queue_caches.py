"""The cache of each queue in a client, as polls and hooks show it: messages that the listener has not finished.

A ProcessQueue has the messages from pull to the end of their processing. Its smallest offset, the head, is what the
client commits (ProcessQueue#removeMessage). An orderly listener takes its messages out of the cache before.
"""

from __future__ import annotations

from typing import Final

import polars as pl

from mqreplay.evidence.arrays.keys import QUEUE
from mqreplay.evidence.members.membership import MEMBER
from mqreplay.evidence.members.observed_clients import CLIENT_LOG, setting
from mqreplay.evidence.offsets.queue_ends import polled_ends
from mqreplay.evidence.time_spans import INSTANT

HOOK: Final = "assignment"
BY_LOG: Final = [CLIENT_LOG, "broker_log"]  # these name queues only
CLIENT: Final = [*MEMBER, "source"]
HELD: Final = [*CLIENT, *QUEUE]
OF_CLIENT: Final = ("day", "ts", *CLIENT, "consume_type", "record_id")
THRESHOLDS: Final = {  # settings of DefaultMQPushConsumer and DefaultLitePullConsumer, by their columns
    "count_threshold": ("pullThresholdForQueue",),
    "mib_threshold": ("pullThresholdSizeForQueue",),
    "span_threshold": ("consumeConcurrentlyMaxSpan", "consumeMaxSpan"),
    "topic_threshold": ("pullThresholdForTopic",),
    "pull_batch": ("pullBatchSize",),
}
LISTENER: Final[dict[str, pl.DataType]] = {
    "cached_mib": pl.Int64(),
    "taken_msgs": pl.Int64(),
    "taken_first": pl.Int64(),
    "last_consume_ts": INSTANT,
}


def queue_caches(assignment: pl.DataFrame, topic_stats: pl.DataFrame) -> pl.DataFrame:
    """Return the observations of each queue that a client held, sorted by HELD and time.

    Columns: those of OF_CLIENT, QUEUE and of silver.assignment's queues and listeners, THRESHOLDS, and:

    - consume_orderly: null if not known
    - head: the smallest offset that the client has not finished; null: none
    - waiting: messages between the client's offset and the last polled end of the queue; null: not known
    - next_ts, next_head, next_last, next_pull_ts: the next observation, null if it did not hold the queue any more
    - held: a number for each queue of each client; round: the number of the client's observation, from 1
    """
    has_queues = pl.col("queues").list.len() > 0
    answered = assignment.filter(
        pl.col("queues").is_not_null() & ~pl.col("source").is_in(BY_LOG).fill_null(value=False)
    )
    shown = answered.with_columns(
        pl.col("source").fill_null(HOOK),
        pl.col("ts").rank("dense").over(*MEMBER, pl.col("source").fill_null(HOOK)).cast(pl.Int64).alias("round"),
    ).filter(has_queues)
    held = _exploded(shown.with_columns(*_settings()))
    observed = _with_waiting(held, topic_stats).unique([*HELD, "ts"], keep="first").sort(*HELD, "ts")
    follows = (pl.col("held").shift(-1) == pl.col("held")) & (pl.col("round").shift(-1) == pl.col("round") + 1)
    following = {"next_ts": "ts", "next_head": "head", "next_last": "cached_last", "next_pull_ts": "last_pull_ts"}
    return observed.with_columns(pl.struct(HELD).rle_id().alias("held")).with_columns(
        pl.when(follows).then(pl.col(name).shift(-1)).alias(named) for named, name in following.items()
    )


def _settings() -> list[pl.Expr]:
    """Return the settings of the client; null if not known."""
    numbers = {
        column: pl.coalesce(setting(name).cast(pl.Int64, strict=False) for name in names)
        for column, names in THRESHOLDS.items()
    }
    orderly = setting("PROP_CONSUMEORDERLY") == "true"
    return [*(number.alias(column) for column, number in numbers.items()), orderly.alias("consume_orderly")]


def _exploded(shown: pl.DataFrame) -> pl.DataFrame:
    """Return a row for each queue that is not dropped."""
    of_client = shown.select(*OF_CLIENT, *THRESHOLDS, "consume_orderly", "round", "queues", "listeners")
    known = of_client.filter(pl.col("listeners").is_not_null()).explode("queues", "listeners")
    listener = pl.col("listeners").struct.field
    rows = [
        known.with_columns(listener(name).alias(name) for name in LISTENER).drop("listeners"),
        of_client.filter(pl.col("listeners").is_null()).drop("listeners").explode("queues"),
    ]
    held = pl.concat(rows, how="diagonal").unnest("queues").filter(~pl.col("dropped").fill_null(value=False))
    first = pl.min_horizontal("taken_first", "cached_first").alias("head")
    return held.with_columns(*(pl.col(name).cast(kind) for name, kind in LISTENER.items()), first)


def _with_waiting(held: pl.DataFrame, topic_stats: pl.DataFrame) -> pl.DataFrame:
    """Add waiting: of the last end at or before the observation."""
    ends = polled_ends(topic_stats).select(*QUEUE, pl.col("at").alias("end_ts"), "queue_max_offset").sort("end_ts")
    joined = held.sort("ts").join_asof(
        ends, left_on="ts", right_on="end_ts", by=QUEUE, strategy="backward", check_sortedness=False
    )
    stored = pl.when(pl.col("memory_offset") >= 0).then("memory_offset")
    return joined.with_columns((pl.col("queue_max_offset") - stored).alias("waiting")).drop("end_ts")
