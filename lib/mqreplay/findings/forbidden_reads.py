"""Topics that a broker's own configuration forbids to read while a group holds their queues.

Clients drop such queues with their next route (MQClientInstance#topicRouteData2TopicSubscribeInfo takes readable queues
alone), so no pull is refused for long, and nobody reports the messages that wait there.
"""

from __future__ import annotations

import datetime as dt

import polars as pl

from mqreplay.core.topic_route import is_readable
from mqreplay.findings.shape import counted, evidence, one_or_none, whole_seconds

SOURCE_TOPIC = ("source_name", "topic")
PLACE = ("topic", "broker_name")
READABLE = [perm for perm in range(16) if is_readable(perm)]  # PermName has four bits
HELD_BEFORE = dt.timedelta(seconds=120)  # a route is up to 30 s old, a copy of the broker's topics up to 60 s


def forbidden_reads(
    topic_config: pl.DataFrame,
    queue_owner: pl.DataFrame,
    refused: pl.DataFrame,
    until: dt.datetime | None,
    least_s: int,
) -> pl.DataFrame:
    """Return the times of ``least_s`` seconds or more at which a master's topic could not be read, and a group held it.

    Columns: topic, broker_name, broker_id, consumer_group (null: several), from_ts, to_ts, evidence, summary.
    ``refused`` has the topic, broker_name, from_ts and to_ts of refused pulls: what they show is left out. ``until`` is
    the end of the recording.
    """
    may_read = pl.col("perm").is_in(READABLE)
    configs = topic_config.filter((pl.col("broker_id") == 0) & pl.col("perm").is_not_null()).sort("ts")
    changed = configs.filter(may_read.ne_missing(may_read.shift().over(SOURCE_TOPIC)))
    end = pl.col("ts").shift(-1).over(SOURCE_TOPIC)
    spans = changed.with_columns(
        pl.col("ts").alias("from_ts"), pl.coalesce(end, pl.lit(until, pl.Datetime("us", "UTC"))).alias("to_ts")
    ).filter(~may_read & (pl.col("to_ts") - pl.col("from_ts") >= pl.duration(seconds=least_s)))
    known = spans.join(_overlapping(spans, refused), [*PLACE, "from_ts"], how="anti")
    held = queue_owner.select(
        *PLACE, "consumer_group", pl.col("from_ts").alias("held_ts"), pl.col("to_ts").alias("left")
    )
    of_groups = known.join(held, PLACE).filter(
        (pl.col("held_ts") < pl.col("to_ts"))
        & (pl.col("left").is_null() | (pl.col("left") > pl.col("from_ts") - HELD_BEFORE))
    )
    by = [*PLACE, "broker_id", "perm", "from_ts", "to_ts"]
    found = of_groups.group_by(by).agg(
        one_or_none("consumer_group"),
        pl.col("consumer_group").n_unique().alias("groups"),
        evidence("silver.topic_config", *SOURCE_TOPIC, "ts"),
    )
    summary = pl.concat_str(
        pl.format("{} could not be read on the master of {} for ", *PLACE),
        whole_seconds("from_ts", "to_ts"),
        pl.format(" (perm {}), while ", "perm"),
        pl.coalesce(pl.format("group {}", "consumer_group"), counted("groups", "group")),
        pl.lit(" consumed it: messages of these queues waited."),
    )
    return found.with_columns(summary.alias("summary"))


def _overlapping(spans: pl.DataFrame, refused: pl.DataFrame) -> pl.DataFrame:
    """Return topic, broker_name and from_ts of the spans in which pulls were refused."""
    pulls = refused.select(*PLACE, pl.col("from_ts").alias("refused_from"), pl.col("to_ts").alias("refused_to"))
    both = spans.join(pulls, PLACE)
    met = (pl.col("refused_from") < pl.col("to_ts")) & (pl.col("refused_to") > pl.col("from_ts") - HELD_BEFORE)
    return both.filter(met).select(*PLACE, "from_ts").unique()
