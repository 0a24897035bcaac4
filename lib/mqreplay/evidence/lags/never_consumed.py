"""Topics that a group subscribes to and never consumed: members are connected, messages arrive, no offset is stored.

A push client commits an offset for each queue soon after the first messages, also for those that its filter leaves out
(DefaultMQPushConsumerImpl#correctTagsOffset), and a broker commits what it hands out by POP. Clients that store their
offsets elsewhere are left out: broadcasting ones, and pull consumers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import polars as pl

from mqreplay.core.version import at_least
from mqreplay.evidence.arrays.nearest import as_of
from mqreplay.evidence.intervals import INSTANT, merge
from mqreplay.evidence.members.membership import (
    BROADCASTING,
    consumer_groups,
    is_of_application,
    push_consumers,
    subscriptions,
)
from mqreplay.evidence.offsets.queue_ends import polled_ends
from mqreplay.words.keys import GROUP_QUEUE, GROUP_TOPIC, QUEUE

REFUSES_SINCE: Final = "5.1.1"  # PopMessageProcessor#processRequest: timerWheelEnable must be true


def never_consumed(
    with_offsets: pl.DataFrame,
    heartbeat: pl.DataFrame,
    members: pl.DataFrame,
    topic_stats: pl.DataFrame,
    last_copies: Mapping[str, int],
    stuck_s: int,
) -> pl.DataFrame:
    """Return the queues whose messages waited for ``stuck_s`` seconds and longer for a group without any offset.

    Columns: GROUP_QUEUE, from_ts (the first message was there), to_ts, waiting. ``with_offsets``: consumer_group and
    topic of which any offset is known. ``last_copies``: time of the last copy of the master's offsets by broker name
    (microseconds): until then no offset was stored.
    """
    pushes = push_consumers(consumer_groups(heartbeat))
    topics = subscriptions(heartbeat).filter(pl.col("message_model") != BROADCASTING).explode("topics")
    begun = topics.group_by("consumer_group", pl.col("topics").alias("topic")).agg(pl.col("ts").min().alias("since_ts"))
    asked = begun.drop_nulls("topic").join(pushes, "consumer_group", how="semi").filter(is_of_application())
    unread = asked.join(with_offsets, GROUP_TOPIC, how="anti")
    sessions = merge(members, ["consumer_group"], gap_s=stuck_s)
    copies = pl.DataFrame([*last_copies.items()], {"broker_name": pl.String, "copied_us": pl.Int64}, orient="row")
    copied = pl.col("copied_us").cast(INSTANT)
    ends = polled_ends(topic_stats).select(*QUEUE, "at", "queue_max_offset").drop_nulls()
    there = unread.join(sessions, "consumer_group").join(ends.select(QUEUE).unique(), "topic")
    met = there.join(copies, "broker_name").with_columns(
        from_ts=pl.max_horizontal("from_ts", "since_ts"), to_ts=pl.min_horizontal("to_ts", copied)
    )
    met = as_of(met, ends, QUEUE, "from_ts", {"_old": "queue_max_offset"}, right_at="at", after=True)
    met = as_of(met, ends, QUEUE, "to_ts", {"_new": "queue_max_offset"}, right_at="at")
    met = met.with_columns(_next=pl.col("_old") + 1, waiting=pl.col("_new") - pl.col("_old"))
    met = as_of(met, ends, QUEUE, "_next", {"came_ts": "at"}, right_at="queue_max_offset", after=True)
    long = pl.col("to_ts") - pl.col("came_ts") >= pl.duration(seconds=stuck_s)
    return met.filter((pl.col("waiting") > 0) & long).select(
        *GROUP_QUEUE, pl.col("came_ts").alias("from_ts"), "to_ts", "waiting"
    )


def with_refusals(queues: pl.DataFrame, broker: pl.DataFrame, answered: pl.DataFrame) -> pl.DataFrame:
    """Add never (true), and refused_by: the brokers that refuse the POP of the group, if this queue's is one of them.

    ``answered`` is the frame of observed_clients.answers.
    """
    refusing = pop_refusals(broker)
    by_pop = answered.filter("by_pop")["consumer_group"].unique().implode()
    refused = pl.col("consumer_group").is_in(by_pop) & pl.col("broker_name").is_in(refusing)
    names = pl.when(refused).then(pl.lit(" and ".join(refusing)))
    return queues.with_columns(never=pl.lit(True), refused_by=names)


def pop_refusals(broker: pl.DataFrame) -> list[str]:
    """Return the names of brokers whose masters refuse every POP: timerWheelEnable is false."""
    masters = broker.filter(pl.col("broker_id") == 0).sort("ts").unique("broker_name", keep="last")
    off = pl.col("properties").map.get("timerWheelEnable") == "false"
    rows = masters.filter(off).select("broker_name", "rocketmq_version").drop_nulls().rows()
    return sorted(name for name, version in rows if version[:1].isdigit() and at_least(version, REFUSES_SINCE))
