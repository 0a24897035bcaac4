"""How long a group needs for its backlog, by the rates of its own night."""

from __future__ import annotations

import datetime as dt
from typing import Final

import polars as pl

from mqreplay.core.topic_route import MASTER_ID
from mqreplay.evidence.arrays.keys import QUEUE
from mqreplay.moment.instant import Recorded
from mqreplay.moment.queues import queues_at, without_retry_topics
from mqreplay.moment.what_if_moment import ends_between

WINDOW: Final = dt.timedelta(seconds=10)
RECENT: Final = dt.timedelta(minutes=1)
ASSUMPTION: Final = (
    "at least: the group pulls as in its fastest 10 s, and nothing more is sent; at most: it pulls as in the slowest "
    "quarter of the 10 s in which it caught up, and producers send as in the minute before; where no pull shows that "
    "it caught up, it goes on as in the minute before"
)


def drain_time(recorded: Recorded, group: str, at: dt.datetime) -> pl.DataFrame:
    """Return for each topic of a group how long its backlog lasts from ``at``, in seconds.

    Columns: topic, lag, pulled_min, pulled_max and produced (messages per second), seconds_min, seconds_max. Null: not
    known, or the backlog does not end at this rate. A group catches up in a window if it pulls more than is stored.
    """
    queues = without_retry_topics(queues_at(recorded, at, group))
    lag = queues.group_by("topic").agg(
        pl.when(pl.col("lag").is_not_null().all()).then(pl.col("lag").sum()).alias("lag"),
    )
    windows = _windows(recorded, group)
    caught_up = windows.filter(pl.col("pulled") > pl.col("stored").fill_null(0))
    rate = pl.col("pulled") / WINDOW.total_seconds()
    pulled = caught_up.group_by("topic").agg(
        rate.quantile(0.25, "lower").alias("pulled_min"), rate.max().alias("pulled_max")
    )
    produced = _produced(recorded, at, queues)
    joined = lag.join(pulled, "topic", how="left").join(produced, "topic", how="left")
    joined = joined.join(_finished(recorded, group, at, queues), "topic", how="left")
    by_pulls = (pl.coalesce(name, "finished").alias(name) for name in ("pulled_min", "pulled_max"))
    return (
        joined.with_columns(by_pulls)
        .drop("finished")
        .with_columns(
            _seconds(pl.col("pulled_max"), "seconds_min"),
            _seconds(pl.col("pulled_min") - pl.col("produced"), "seconds_max"),
        )
        .sort("topic")
    )


def _produced(recorded: Recorded, at: dt.datetime, queues: pl.DataFrame) -> pl.DataFrame:
    """Return the messages per second stored in each topic within RECENT: topic, produced; null if an end is unknown."""
    by_queue = stored_rates(ends_between(recorded, at - RECENT, at)).rename({"stored": "produced"})
    joined = queues.select(QUEUE).unique().join(by_queue, QUEUE, how="left")
    known = pl.col("produced").is_not_null().all()
    return joined.group_by("topic").agg(pl.when(known).then(pl.col("produced").sum()).alias("produced"))


def _finished(recorded: Recorded, group: str, at: dt.datetime, queues: pl.DataFrame) -> pl.DataFrame:
    """Return the messages per second that the group finished in each topic within RECENT: topic, finished."""
    before = queues_at(recorded, at - RECENT, group).select(*QUEUE, before="committed")
    advance = (pl.col("committed") - pl.col("before")).clip(0).sum() / RECENT.total_seconds()
    return queues.join(before, QUEUE).drop_nulls(["committed", "before"]).group_by("topic").agg(finished=advance)


def stored_rates(ends: pl.DataFrame) -> pl.DataFrame:
    """Return the messages per second that each queue stored, by the frame of `ends_between`: QUEUE, stored.

    Null for a queue whose end was stated once.
    """
    first, last = pl.col("end_offset").first(), pl.col("end_offset").last()
    seconds = (pl.col("ts").last() - pl.col("ts").first()).dt.total_milliseconds() / 1000
    rate = pl.when(seconds > 0).then((last - first) / seconds)
    return ends.sort("ts", "end_offset").group_by(QUEUE).agg(rate.alias("stored"))


def _seconds(gain: pl.Expr, name: str) -> pl.Expr:
    return pl.when(pl.col("lag") == 0).then(0.0).when(gain > 0).then((pl.col("lag") / gain).round(0)).alias(name)


def _windows(recorded: Recorded, group: str) -> pl.DataFrame:
    """Return what a group pulled and what was stored meanwhile: topic, ts, pulled, stored."""
    pulls = recorded.before("silver.pull", "response_ts", recorded.last, recorded.last - recorded.first)
    answered = (
        pulls.filter((pl.col("consumer_group") == group) & pl.col("next_begin_offset").is_not_null())
        .filter(pl.col("last_queue_offset").is_not_null() | (pl.col("response_code") == 0))
        .select(
            *QUEUE,
            pl.col("response_ts").dt.truncate(WINDOW).alias("ts"),
            (pl.col("next_begin_offset") - pl.col("queue_offset")).clip(0).alias("pulled"),
            pl.when(pl.col("broker_id") == MASTER_ID).then("max_offset").alias("end"),
        )
    )
    by_queue = answered.group_by(*QUEUE, "ts").agg(pl.col("pulled").sum(), pl.col("end").max()).sort("ts").collect()
    stored = (pl.col("end") - pl.col("end").shift(1)).over(QUEUE).alias("stored")
    return (
        by_queue.with_columns(stored)
        .group_by("topic", "ts")
        .agg(pl.col("pulled").sum(), pl.when(pl.col("stored").is_not_null().any()).then(pl.col("stored").sum()))
    )
