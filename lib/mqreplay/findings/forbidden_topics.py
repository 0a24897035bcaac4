"""Topics that a broker's own configuration forbids to read while a group holds their queues, or to write.

Clients drop such queues with their next route (MQClientInstance#topicRouteData2TopicSubscribeInfo takes readable queues
alone, #topicRouteData2TopicPublishInfo writeable ones), so no pull is refused for long, and nobody reports the messages
that wait there. No broker checks the permission of a topic to write: sends without a route fail in the producer.
"""

from __future__ import annotations

import datetime as dt

import polars as pl

from mqreplay.core.retry_topic import DLQ_GROUP_TOPIC_PREFIX, RETRY_GROUP_TOPIC_PREFIX
from mqreplay.core.topic_route import is_readable, is_writeable
from mqreplay.evidence.intervals import INSTANT
from mqreplay.evidence.offsets.queue_ends import polled_ends
from mqreplay.findings.shape import evidence, one_or_none
from mqreplay.words.keys import QUEUE

SOURCE_TOPIC = ("source_name", "topic")
TOPIC_BROKER = ("topic", "broker_name")
READABLE = [perm for perm in range(16) if is_readable(perm)]  # PermName has four bits
WRITEABLE = [perm for perm in range(16) if is_writeable(perm)]
OLD_ROUTE = dt.timedelta(seconds=60)  # producers send by it for 30 s; a poll has an interval, too
HELD_BEFORE = dt.timedelta(seconds=120)  # a route is up to 30 s old, a copy of the broker's topics up to 60 s


def forbidden_reads(
    topic_config: pl.DataFrame,
    queue_owner: pl.DataFrame,
    refused: pl.DataFrame,
    until: dt.datetime | None,
    least_s: int,
) -> pl.DataFrame:
    """Return the times of ``least_s`` seconds or more at which a master's topic could not be read, and a group held it.

    Columns: topic, broker_name, broker_id, consumer_group (null: several), perm, groups, from_ts, to_ts, evidence.
    ``refused`` has the topic, broker_name, from_ts and to_ts of refused pulls: what they show is left out. ``until`` is
    the end of the recording.
    """
    spans = _spans(topic_config, READABLE, until, least_s)
    known = spans.join(_overlapping(spans, refused), [*TOPIC_BROKER, "from_ts"], how="anti")
    held = queue_owner.select(
        *TOPIC_BROKER, "consumer_group", pl.col("from_ts").alias("held_ts"), pl.col("to_ts").alias("left")
    )
    of_groups = known.join(held, TOPIC_BROKER).filter(
        (pl.col("held_ts") < pl.col("to_ts"))
        & (pl.col("left").is_null() | (pl.col("left") > pl.col("from_ts") - HELD_BEFORE))
    )
    by = [*TOPIC_BROKER, "broker_id", "perm", "from_ts", "to_ts"]
    return of_groups.group_by(by).agg(
        one_or_none("consumer_group"),
        pl.col("consumer_group").n_unique().alias("groups"),
        evidence("silver.topic_config", *SOURCE_TOPIC, "ts"),
    )


def forbidden_writes(
    topic_config: pl.DataFrame, topic_stats: pl.DataFrame, until: dt.datetime | None, least_s: int
) -> pl.DataFrame:
    """Return the times of ``least_s`` seconds or more at which a master's topic lost its writers.

    Columns: topic, broker_name, broker_id, perm, from_ts, to_ts, evidence, everywhere. A topic counts if
    ``topic_stats`` show that it grew shortly before, and not any more when producers had the new route.
    ``everywhere``: no other master is known that let producers write the topic meanwhile.
    """
    own = pl.col("topic").str.starts_with(RETRY_GROUP_TOPIC_PREFIX)
    own |= pl.col("topic").str.starts_with(DLQ_GROUP_TOPIC_PREFIX)  # the broker writes these itself
    lost = _spans(topic_config.filter(~own), WRITEABLE, until, least_s).filter("was_allowed")
    polls = topic_stats.join(lost.select(TOPIC_BROKER).unique(), TOPIC_BROKER, how="semi")
    polled = polled_ends(polls).sort("at", "queue_max_offset")
    seen = polled.with_columns(pl.col("at", "queue_max_offset").shift().over(QUEUE).name.suffix("_before"))
    grown = seen.filter(pl.col("queue_max_offset") > pl.col("queue_max_offset_before"))
    both = lost.select(*TOPIC_BROKER, "from_ts", "to_ts").join(
        grown.select(*TOPIC_BROKER, "at", "at_before"), TOPIC_BROKER
    )
    is_before = pl.col("at_before").is_between(pl.col("from_ts") - HELD_BEFORE, pl.col("from_ts"))
    is_during = (pl.col("at_before") >= pl.col("from_ts") + OLD_ROUTE) & (pl.col("at") <= pl.col("to_ts"))
    span = [*TOPIC_BROKER, "from_ts"]
    found = lost.join(both.filter(is_before), span, how="semi").join(both.filter(is_during), span, how="anti")
    masters = topic_config.filter((pl.col("broker_id") == 0) & pl.col("perm").is_in(WRITEABLE))
    of_topic = masters.group_by("topic").agg(pl.col("broker_name").n_unique().alias("masters"))
    others = lost.select(
        "topic", pl.col("broker_name").alias("other"), pl.col("from_ts", "to_ts").name.suffix("_other")
    )
    together = pl.min_horizontal("to_ts", "to_ts_other") - pl.max_horizontal("from_ts", "from_ts_other")
    met = found.join(others, "topic").filter(together >= pl.duration(seconds=least_s))
    closed = met.group_by(span).agg(pl.col("other").n_unique().alias("closed"))
    return (
        found.join(closed, span)
        .join(of_topic, "topic")
        .group_by(*span, "broker_id", "perm", "to_ts", (pl.col("closed") == pl.col("masters")).alias("everywhere"))
        .agg(evidence("silver.topic_config", *SOURCE_TOPIC, "ts"))
    )


def _spans(topic_config: pl.DataFrame, perms: list[int], until: dt.datetime | None, least_s: int) -> pl.DataFrame:
    """Return the copies of masters that begin ``least_s`` seconds or more without one of ``perms``.

    Adds from_ts, to_ts and was_allowed: the copy before had one.
    """
    is_known = pl.col("perm").is_not_null() & (pl.col("change") != "removed")
    may = pl.when(is_known).then(pl.col("perm").is_in(perms))
    before = may.shift().over(SOURCE_TOPIC)
    configs = topic_config.filter(pl.col("broker_id") == 0).sort("ts")
    changed = configs.with_columns(may.alias("may"), before.alias("was_allowed")).filter(may.ne_missing(before))
    end = pl.col("ts").shift(-1).over(SOURCE_TOPIC)
    spans = changed.with_columns(pl.col("ts").alias("from_ts"), pl.coalesce(end, pl.lit(until, INSTANT)).alias("to_ts"))
    return spans.filter(~pl.col("may") & (pl.col("to_ts") - pl.col("from_ts") >= pl.duration(seconds=least_s)))


def _overlapping(spans: pl.DataFrame, refused: pl.DataFrame) -> pl.DataFrame:
    """Return topic, broker_name and from_ts of the spans in which pulls were refused."""
    pulls = refused.select(*TOPIC_BROKER, pl.col("from_ts").alias("refused_from"), pl.col("to_ts").alias("refused_to"))
    both = spans.join(pulls, TOPIC_BROKER)
    met = (pl.col("refused_from") < pl.col("to_ts")) & (pl.col("refused_to") > pl.col("from_ts") - HELD_BEFORE)
    return both.filter(met).select(*TOPIC_BROKER, "from_ts").unique()
