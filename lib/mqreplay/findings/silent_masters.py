"""The master that was down when a producer's log has a failed send, which does not name its broker."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Final

import polars as pl

from mqreplay.evidence.messages.failed_sends import MASTERS_DOWN, NO_ANSWER, NO_ROUTE
from mqreplay.evidence.time_spans import INSTANT, with_session
from mqreplay.findings.forbidden_topics import WRITEABLE
from mqreplay.findings.shape import one_or_none

SEEN_BEFORE: Final = dt.timedelta(seconds=30)  # a poll notices an outage this much later than the sends, at most
BACK: Final = dt.timedelta(seconds=30)  # a broker answers before it has registered, at the latest with its next round
ROUTELESS: Final = "routeless_topic"  # of sends without a route, whose masters depend on the topic
ALWAYS: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def routeless_topic() -> pl.Expr:
    """Return the topic of a send that failed without a route, null for other sends."""
    return pl.when(pl.col("failure") == NO_ROUTE.words).then("topic").alias(ROUTELESS)


def with_silent_master(
    runs: pl.DataFrame, by: Sequence[str], outages: pl.DataFrame, topic_config: pl.DataFrame, gap_s: int
) -> pl.DataFrame:
    """Name the broker of runs of sends whose log does not: the master that was down meanwhile.

    Without an answer, it is the only master that was down. Without a route, all masters that could be written for the
    topic were down (MQClientInstance#topicRouteData2TopicPublishInfo skips a broker without one); the last of them is
    named. Runs of one ``by`` and topic, ``gap_s`` seconds apart or less, have one answer.
    """
    masters = outages.filter(pl.col("broker_id") == 0).select(
        pl.col("broker_name").alias("silent_name"), pl.col("from_ts").alias("since"), pl.col("to_ts").alias("until")
    )
    of_run = [*by, ROUTELESS, "session"]
    apart = with_session(runs, of_run[:-1], "from_ts", "to_ts", gap_s)
    unnamed = apart.filter(pl.col("broker_name").is_null()).group_by(of_run)
    spans = unnamed.agg(pl.col("from_ts").min(), pl.col("to_ts").max()).with_row_index("run")
    silent = spans.filter(pl.col("failure") == NO_ANSWER.words).join(masters, how="cross")
    only = silent.filter(_meets(dt.timedelta())).group_by("run").agg(one_or_none("silent_name")).drop_nulls()
    down = _writeable(spans, topic_config).join(masters, "silent_name", how="left")
    since = pl.col("since").filter(_meets(BACK).fill_null(value=False)).max()
    last = (
        down.group_by("run", "silent_name")
        .agg(since)
        .sort("since", "silent_name")
        .group_by("run", maintain_order=True)
        .agg(pl.col("silent_name").last(), pl.col("since").is_not_null().all().alias("all_down"))
        .filter("all_down")
        .drop("all_down")
    )
    known = spans.join(pl.concat([only, last]), "run").drop("run", "from_ts", "to_ts")
    named = apart.join(known, of_run, how="left", nulls_equal=True)
    is_named = pl.col("silent_name").is_not_null()
    return named.with_columns(
        pl.coalesce("broker_name", "silent_name").alias("broker_name"),
        pl.when(is_named).then(pl.lit(0, pl.Int64)).otherwise("broker_id").alias("broker_id"),
        pl.when(is_named & pl.col(ROUTELESS).is_not_null())
        .then(pl.lit(MASTERS_DOWN.words))
        .otherwise("failure")
        .alias("failure"),
    ).drop("session", "silent_name")


def _meets(after: dt.timedelta) -> pl.Expr:
    return (pl.col("from_ts") <= pl.col("until") + after) & (pl.col("to_ts") >= pl.col("since") - SEEN_BEFORE)


def _writeable(spans: pl.DataFrame, topic_config: pl.DataFrame) -> pl.DataFrame:
    """Return the masters that could be written for the topic of each span when it began, ``silent_name``."""
    # The first copy of a master's topics.json has what it had before, too.
    is_first = pl.col("ts") == pl.col("ts").min().over("source_name")
    since = pl.when(is_first).then(pl.lit(ALWAYS, INSTANT)).otherwise("ts").alias("config_ts")
    configs = topic_config.filter(pl.col("broker_id") == 0).select(
        pl.col("topic").alias(ROUTELESS),
        pl.col("broker_name").alias("silent_name"),
        (pl.col("perm").is_in(WRITEABLE) & (pl.col("change") != "removed")).alias("takes"),
        since,
    )
    known = spans.join(configs, ROUTELESS).filter(pl.col("config_ts") <= pl.col("from_ts")).sort("config_ts")
    return known.unique(["run", "silent_name"], keep="last", maintain_order=True).filter("takes")
