"""The cache of each queue in a client: messages that the listener has not finished, as polls, hooks and pulls show it.

A ProcessQueue has the messages from pull to the end of their processing. Its smallest offset, the head, is what the
client commits (ProcessQueue#removeMessage). An orderly listener takes its messages out of the cache before. Pulls past
the group's offset, which does not advance, show that the message there was delivered and is not finished. While the
master is down, offsets cannot be committed.
"""

from __future__ import annotations

from typing import Final

import polars as pl

from mqreplay.evidence.frames import columns, typed
from mqreplay.evidence.intervals import INSTANT, with_state
from mqreplay.evidence.members.membership import push_consumers
from mqreplay.evidence.members.observed_clients import CLIENT_LOG, setting
from mqreplay.evidence.offsets.queue_ends import polled_ends
from mqreplay.words.keys import CLIENT_QUEUE, GROUP_QUEUE, MEMBER, QUEUE

HOOK: Final = "assignment"
BY_LOG: Final = [CLIENT_LOG, "broker_log"]  # these name queues only
MEMBER_SOURCE: Final = [*MEMBER, "source"]
HELD_QUEUE: Final = [*MEMBER_SOURCE, *QUEUE]
OF_CLIENT: Final = ("day", "ts", *MEMBER_SOURCE, "consume_type", "record_id")
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
UNFINISHED: Final[dict[str, pl.DataType]] = {
    "day": pl.Date(),
    **dict.fromkeys(("consumer_group", "topic", "broker_name", "client_id"), pl.String()),
    **columns("queue_id", "head_offset", "last_offset", "ts", "last_pull_ts", "until_ts", "record_id"),
}


def queue_caches(assignment: pl.DataFrame, topic_stats: pl.DataFrame) -> pl.DataFrame:
    """Return the observations of each queue that a client held, sorted by HELD_QUEUE and time.

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
    observed = _with_waiting(held, topic_stats).unique([*HELD_QUEUE, "ts"], keep="first").sort(*HELD_QUEUE, "ts")
    follows = (pl.col("held").shift(-1) == pl.col("held")) & (pl.col("round").shift(-1) == pl.col("round") + 1)
    following = {"next_ts": "ts", "next_head": "head", "next_last": "cached_last", "next_pull_ts": "last_pull_ts"}
    return observed.with_columns(pl.struct(HELD_QUEUE).rle_id().alias("held")).with_columns(
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
    joined = with_state(held, ends, QUEUE, "ts", "end_ts")
    stored = pl.when(pl.col("memory_offset") >= 0).then("memory_offset")
    return joined.with_columns((pl.col("queue_max_offset") - stored).alias("waiting")).drop("end_ts")


def unfinished_pulls_of_shard(pull: pl.DataFrame, standstills: pl.DataFrame, consumers: pl.DataFrame) -> pl.DataFrame:
    """Return the clients that pulled past a standstill, of schema UNFINISHED: one row for each standstill and client.

    ``pull`` are rows of silver.pull, ``standstills`` the frame of standstill_spans, ``consumers`` that of
    queue_start.consumers: only push consumers commit as their listener finishes. ``ts`` and ``record_id`` are those of
    the first pull past the offset ``head_offset``, ``last_pull_ts`` that of the last one, ``until_ts`` the end of the
    standstill, ``last_offset`` the last one before the offset of a pull.
    """
    if standstills.is_empty():
        return pl.DataFrame(schema=UNFINISHED)
    spans = standstills.explode("spans").unnest("spans").select(*GROUP_QUEUE, "offset", "since_ts", "to_ts")
    columns = ("day", *CLIENT_QUEUE, "request_ts", "queue_offset", "record_id")
    # A pull from a slave has no commit; a master that does not answer takes none.
    of_master = pull.filter((pl.col("broker_id") == 0) & pl.col("response_code").is_not_null())
    of_spans = of_master.select(columns).join(spans.select(GROUP_QUEUE).unique(), GROUP_QUEUE, how="semi")
    met = of_spans.join(push_consumers(consumers), MEMBER, how="semi").join(spans, GROUP_QUEUE)
    meanwhile = pl.col("request_ts").is_between("since_ts", "to_ts")
    past = met.filter(meanwhile & (pl.col("queue_offset") > pl.col("offset").clip(lower_bound=0))).sort("request_ts")
    found = past.group_by(*CLIENT_QUEUE, "since_ts", maintain_order=True).agg(
        pl.col("day").first(),
        pl.col("offset").first().alias("head_offset"),
        (pl.col("queue_offset").max() - 1).alias("last_offset"),
        pl.col("request_ts").first().alias("ts"),
        pl.col("request_ts").last().alias("last_pull_ts"),
        pl.col("to_ts").first().alias("until_ts"),
        pl.col("record_id").first(),
    )
    return typed(found, UNFINISHED)


def long_unfinished(unfinished: pl.DataFrame, outages: pl.DataFrame, slow_s: int) -> pl.DataFrame:
    """Return the rows of all shards that last ``slow_s`` seconds while the master of the queue was not down."""
    lasted = unfinished.filter(pl.col("until_ts") - pl.col("ts") >= pl.duration(seconds=slow_s))
    down = outages.filter(pl.col("broker_id") == 0).select("broker_name", "from_ts", "to_ts")
    met = lasted.join(down, "broker_name").filter(
        (pl.col("from_ts") <= pl.col("until_ts")) & (pl.col("to_ts") >= pl.col("ts"))
    )
    return lasted.join(met, [*CLIENT_QUEUE, "ts"], how="anti")
