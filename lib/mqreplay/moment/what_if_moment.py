"""What a loss of a master, or a reset of offsets, would have done at an instant of the night."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Any, Final

import polars as pl

from mqreplay.core.topic_route import MASTER_ID
from mqreplay.evidence.arrays.keys import QUEUE
from mqreplay.moment.brokers import brokers_at
from mqreplay.moment.exposure import exposure_at
from mqreplay.moment.instant import Recorded
from mqreplay.moment.queues import (
    GROUP_QUEUE,
    committed_at,
    queues_at,
    stated_ends,
    unknown_owners,
    without_retry_topics,
)

COPIES: Final = ("silver.offset_checkpoint", "silver.offset_change")
REACH: Final = dt.timedelta(hours=1)  # between two polls of a topic at most


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


def ends_between(recorded: Recorded, since: dt.datetime, until: dt.datetime, topic: str | None = None) -> pl.DataFrame:
    """Return the ends of queues that masters stated after ``since``, up to ``until``: `stated_ends`; of one topic, or
    of all."""
    of_topic = pl.lit(value=True) if topic is None else pl.col("topic") == topic
    stats = recorded.between("silver.topic_stats", "ts", since, until).filter(of_topic)
    pulls = recorded.between("silver.pull", "response_ts", since, until).filter(of_topic)
    return stated_ends(recorded, stats, pulls).collect()
