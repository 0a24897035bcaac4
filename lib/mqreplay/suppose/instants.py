"""What the loss of a master, a reset of offsets or a backlog would have meant at an instant of the night."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Any, Final

import polars as pl

from mqreplay.core.topic_route import MASTER_ID
from mqreplay.moment.brokers import brokers_at, exposure_at
from mqreplay.moment.instant import Recorded
from mqreplay.moment.offsets import COPIES, committed_at, ends_between, known_sum
from mqreplay.moment.queues import queues_at, unknown_owners, without_retry_topics
from mqreplay.words.keys import GROUP_QUEUE, QUEUE

REACH: Final = dt.timedelta(hours=1)  # between two polls of a topic at most
WINDOW: Final = dt.timedelta(seconds=10)
RECENT: Final = dt.timedelta(minutes=1)
ASSUMPTION: Final = (
    "at least: the group pulls as in its fastest 10 s, and nothing more is sent; at most: it pulls as in the slowest "
    "quarter of the 10 s in which it caught up, and producers send as in the minute before; where no pull shows that "
    "it caught up, it goes on as in the minute before"
)


@dataclass(frozen=True)
class LostMaster:
    """What the loss of a master at ``at`` would have cost; None: not known.

    ``readers``: by consumer group its queues there; ``unknown_readers``: sentences of `unknown_owners`. ``slaves``:
    those that answered. ``redelivered``: messages that would be delivered again, by group, by the offset files of both
    brokers; ``redelivered_max``: at most, if clients also forget what they have not committed yet. ``lost_bytes``: what
    no slave had copied, in bytes of the commit log.
    """

    broker_name: str
    at: dt.datetime
    slaves: list[int]
    readers: dict[str, int]
    unknown_readers: list[str]
    redelivered: dict[str, int] | None
    redelivered_max: dict[str, int] | None
    unknown_queues: int | None
    lost_bytes: int | None


def lost_master(recorded: Recorded, broker_name: str, at: dt.datetime) -> LostMaster:
    """Return what the loss of a master would have cost: offsets and messages that its best slave lacked."""
    brokers = brokers_at(recorded, at, broker_name).to_dicts()
    slaves = [row for row in brokers if row["broker_id"] != MASTER_ID and row["up"]]
    behind = [row["behind_bytes"] for row in slaves if row["behind_bytes"] is not None]
    of_broker = pl.col("broker_name") == broker_name
    exposed = exposure_at(recorded, broker_name, at)
    by_group = exposed.get("redelivered_by_group")
    known = None if by_group is None else dict(sorted(_pairs(by_group)))
    most = _at_most(recorded, broker_name, at)
    if most is not None and known is not None:
        # The minute's copies may be later ones.
        most = {group: max(most.get(group, 0), known.get(group, 0)) for group in sorted(most.keys() | known.keys())}
    queues = without_retry_topics(queues_at(recorded, at)).filter(of_broker)
    counted = (
        queues.filter(pl.col("owners").list.len() > 0)
        .group_by("consumer_group")
        .agg(pl.len())
        .sort("consumer_group")
        .rows()
    )
    return LostMaster(
        broker_name,
        at,
        [row["broker_id"] for row in slaves],
        {str(group): int(number) for group, number in counted},
        unknown_owners(queues),
        known,
        most,
        exposed.get("unknown_queues"),
        min(behind) if behind else None,
    )


def _at_most(recorded: Recorded, broker_name: str, at: dt.datetime) -> dict[str, int] | None:
    """Return by group the messages between the offsets that slaves had copied and the end of what was pulled."""
    of_broker = pl.col("broker_name") == broker_name
    copies = [recorded.before(name, "to_ts", at).filter(of_broker) for name in COPIES]
    of_slaves = (pl.col("broker_id") != MASTER_ID) & pl.col("client_id").is_null()
    kept = pl.concat([each.filter(of_slaves).select(*GROUP_QUEUE, "new_offset", "to_ts") for each in copies])
    copied = kept.sort("to_ts").group_by(GROUP_QUEUE).last().collect()
    if copied.is_empty():
        return None
    pulls = recorded.before("silver.pull", "response_ts", at, REACH)
    pulled = pulls.filter(of_broker & pl.col("next_begin_offset").is_not_null()).group_by(GROUP_QUEUE)
    last = pulled.agg(pl.col("next_begin_offset").sort_by("response_ts").last().alias("pulled")).collect()
    joined = last.join(copied, GROUP_QUEUE, how="inner").select(
        "consumer_group", (pl.col("pulled") - pl.col("new_offset")).clip(0).alias("again")
    )
    by_group = joined.group_by("consumer_group").agg(pl.col("again").sum()).sort("consumer_group")
    return {str(group): int(number) for group, number in by_group.rows() if number}


def _pairs(by_group: Any) -> list[tuple[str, int]]:
    """Return the entries of a map column, however polars gives them."""
    items = by_group.items() if isinstance(by_group, dict) else ((each["key"], each["value"]) for each in by_group)
    return [(str(group), int(number)) for group, number in items]


def reset_to(recorded: Recorded, group: str, to: dt.datetime, at: dt.datetime) -> pl.DataFrame:
    """Return what a reset of a group's offsets to the time ``to`` would deliver again, done at ``at``.

    Columns: topic, broker_name, queue_id, committed (at ``at``), offset_min, offset_max, again_min, again_max.

    A reset sets the offset of the first message stored at ``to`` or later: as many as the queue held then. The end of a
    queue is known at polls and answers, so that the offset lies between the end stated before ``to`` and the one asked
    after it. What the group has not consumed yet is not delivered again. Null: not known. Topics of retries are not
    reset (mqadmin resetOffsetByTime names the topic).
    """
    committed = without_retry_topics(committed_at(recorded, at).filter(pl.col("consumer_group") == group).collect())
    ends = pl.concat([ends_between(recorded, to - REACH, to), ends_between(recorded, to, to + REACH)])
    low = ends.filter(pl.col("ts") <= to).group_by(QUEUE).agg(pl.col("end_offset").max().alias("offset_min"))
    high = ends.filter(pl.col("asked_ts") > to).group_by(QUEUE).agg(pl.col("end_offset").min().alias("offset_max"))
    joined = committed.join(low, QUEUE, how="left").join(high, QUEUE, how="left")
    bounded = joined.with_columns(pl.max_horizontal("offset_min", "offset_max").alias("offset_max"))
    offset = pl.col("committed")
    return bounded.select(
        *GROUP_QUEUE[1:],
        "committed",
        "offset_min",
        "offset_max",
        pl.when(pl.col("offset_max").is_not_null()).then((offset - pl.col("offset_max")).clip(0)).alias("again_min"),
        pl.when(pl.col("offset_min").is_not_null()).then((offset - pl.col("offset_min")).clip(0)).alias("again_max"),
    ).sort("topic", "broker_name", "queue_id")


def drain_time(recorded: Recorded, group: str, at: dt.datetime) -> pl.DataFrame:
    """Return for each topic of a group how long its backlog lasts from ``at``, in seconds.

    Columns: topic, lag, pulled_min, pulled_max and produced (messages per second), seconds_min, seconds_max. Null: not
    known, or the backlog does not end at this rate. A group catches up in a window if it pulls more than is stored.
    """
    queues = without_retry_topics(queues_at(recorded, at, group))
    lag = queues.group_by("topic").agg(known_sum("lag"))
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
    return joined.group_by("topic").agg(known_sum("produced"))


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
