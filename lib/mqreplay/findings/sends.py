"""Sends that failed, messages that were acknowledged without safety, and producers that avoided a broker.

A producer's log does not name the broker of a failed send: it is the master that was down then.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Final

import polars as pl

from mqreplay.core.send_retry import SEND_STATUS
from mqreplay.decode.recording.advice import Need
from mqreplay.evidence.intervals import INSTANT, with_session
from mqreplay.evidence.messages.failed_sends import (
    MASTERS_DOWN,
    MENDS,
    NO_ANSWER,
    NO_ROUTE,
    NOT_IN_ROUTE,
    failed_requests,
)
from mqreplay.findings.finding_evidence import FindingEvidence
from mqreplay.findings.forbidden_topics import WRITEABLE, forbidden_writes
from mqreplay.findings.kind import Cause, FindingKind
from mqreplay.findings.limits import Limits
from mqreplay.findings.pull_runs import joined_runs, pull_runs
from mqreplay.findings.shape import evidence, finding, one_or_none, whole_seconds
from mqreplay.words.time_span import EPOCH

TRIES, MESSAGES, ERRORS = "silver.send", "silver.produce", "silver.client_error"
BY: Final = ("broker_name", "broker_id", "response_code", "failure", "send_status")
NARROW: Final = (
    "topic",
    "client_id",
    "unreachable_addr",
    "other_remark",
)  # a finding names them if all its sends share them
LOGGED_LATER_S: Final = 5  # an application logs what its client has logged, at most so much later
REPORTED_EACH_S: Final = 10  # the recorder asks masters for their slaves so often


def send_runs(sends: pl.DataFrame, gap_s: int) -> pl.DataFrame:
    """Return runs of sends of one BY, each at most ``gap_s`` seconds after the one before.

    Columns: BY, ROUTELESS, those of `pull_runs`, of NARROW, and the numbers of messages without another try (unsent)
    or perhaps without (open_ends). ``sends`` has failed_sends.SENDS.
    """
    unsent = pl.col("is_last").sum().cast(pl.Int64).alias("unsent")
    open_ends = pl.col("is_last").is_null().sum().cast(pl.Int64).alias("open_ends")
    by = (*BY, ROUTELESS)
    more = (unsent, open_ends, pl.col("disk_percent").max())
    return pull_runs(sends.with_columns(routeless_topic()), by, {name: name for name in NARROW}, gap_s, *more)


def find(evidence: FindingEvidence, limits: Limits) -> pl.DataFrame:
    """Return failed sends, messages that are not safe, and avoided brokers."""
    gap_s, least, cluster = limits.same_cause_gap_s, limits.failed_sends, evidence.cluster
    errors = send_runs(failed_requests(evidence.client_error), gap_s)
    tries, messages, requests = (
        with_silent_master(runs, BY, evidence.outages, evidence.topic_config, gap_s)
        for runs in (evidence.failed_tries, evidence.failed_messages, errors)
    )
    logged = _not_in_tries(_joined(messages, gap_s, MESSAGES), evidence.failed_tries)
    shown = pl.concat([evidence.failed_tries, evidence.failed_messages])
    thrown = _not_in_tries(_joined(requests, gap_s, ERRORS), shown, LOGGED_LATER_S)
    found = pl.concat([_joined(tries, gap_s, TRIES), logged, thrown])
    unwriteable = forbidden_writes(
        evidence.topic_config, evidence.topic_stats, evidence.recorded_until, limits.refused_s
    )
    return pl.concat(
        [
            send_failed(found.filter(pl.col("send_status").is_null()), cluster, least),
            not_stored(found.filter(pl.col("send_status").is_not_null()), evidence.replication.reports, cluster, least),
            avoided(_not_forbidden(evidence.avoided_brokers, unwriteable), cluster, gap_s),
            finding(
                unwriteable,
                SENDS_AVOID_BROKER,
                cluster,
                severity=pl.when("everywhere").then(pl.lit("warning")).otherwise(pl.lit("info")),
                form="topic",
                advice_form="topic",
            ),
        ]
    )


_NEEDS = (Need("sends", or_recorded=("produce_log",)),)
SEND_FAILED = FindingKind(
    name="send_failed",
    find=find,
    confidence=1.0,
    needs=_NEEDS,
    thresholds=("findings.same_cause_gap_s", "findings.failed_sends"),
    causes=(
        Cause("broker_down", same=("broker_name",), after_s=120, of_master=True),
        Cause("disk_full", same=("broker_name",), after_s=60, of_master=True),
        Cause("queue_count_changed", same=("topic",), after_s=300),
        Cause("slave_config_drift", same=("broker_name", "topic"), after_s=120),
    ),
)
NOT_STORED = FindingKind(
    name="not_stored",
    find=find,
    confidence=1.0,
    needs=_NEEDS,
    thresholds=("findings.same_cause_gap_s", "findings.failed_sends"),
    causes=(Cause("broker_down", same=("broker_name",), after_s=120),),
)
SENDS_AVOID_BROKER = FindingKind(
    name="sends_avoid_broker",
    find=find,
    confidence=0.9,
    needs=(Need("sends"), Need("routes")),
    thresholds=("findings.avoided_s", "findings.same_cause_gap_s", "findings.refused_s"),
    causes=(
        Cause("broker_down", same=("broker_name",), after_s=120, of_master=True),
        Cause("send_failed", same=("broker_name",), after_s=120),
    ),
)


def _joined(runs: pl.DataFrame, gap_s: int, table: str) -> pl.DataFrame:
    is_unnamed = pl.col("topic_most").is_null().all().alias("is_unnamed")
    more = (pl.col("unsent", "open_ends").sum(), pl.col("disk_percent").max(), is_unnamed)
    joined = joined_runs(runs, BY, NARROW, gap_s, table, *more)
    return joined.with_columns(pl.lit(table).alias("table_name"))


def _not_in_tries(messages: pl.DataFrame, tries: pl.DataFrame, later_s: int = 0) -> pl.DataFrame:
    """Return the runs of producers' logs without those that recorded tries of the same time and kind show already.

    The logs may have a failure ``later_s`` seconds later.
    """
    same = ("response_code", "send_status")
    shown = messages.with_row_index("_run").join(
        tries.select(*same, pl.col("from_ts").alias("since"), pl.col("to_ts").alias("until")), same, nulls_equal=True
    )
    late = pl.duration(seconds=later_s)
    meets = shown.filter((pl.col("from_ts") <= pl.col("until") + late) & (pl.col("to_ts") >= pl.col("since")))["_run"]
    return messages.with_row_index("_run").filter(~pl.col("_run").is_in(meets.implode())).drop("_run")


def _within() -> pl.Expr:
    """Return the seconds of each row; null for one instant."""
    return pl.when(pl.col("to_ts") > pl.col("from_ts")).then(whole_seconds("from_ts", "to_ts")).alias("within_s")


def send_failed(found: pl.DataFrame, cluster: str, least: int) -> pl.DataFrame:
    """Return SEND_FAILED of joined runs; fewer than ``least`` messages without a later try are info."""
    rows = found.with_columns(_within(), is_on_broker=pl.col("failure") != MASTERS_DOWN.words)
    advice = pl.col("failure").replace_strict(MENDS, default="", return_dtype=pl.String)
    severity = (
        pl.when(pl.col("unsent") + pl.col("open_ends") >= least).then(pl.lit("warning")).otherwise(pl.lit("info"))
    )
    return finding(rows, SEND_FAILED, cluster, severity=severity, advice_form=advice)


def not_stored(found: pl.DataFrame, reports: pl.DataFrame, cluster: str, least: int) -> pl.DataFrame:
    """Return NOT_STORED of joined runs; fewer than ``least`` messages are info.

    ``reports`` has what masters report of their slaves (of slave_reports).
    """
    rows = _with_slaves(found, reports).with_columns(_within())
    severity = pl.when(pl.col("pulls") >= least).then(pl.lit("warning")).otherwise(pl.lit("info"))
    return finding(rows, NOT_STORED, cluster, severity=severity, advice_form=pl.col("send_status"))


def _with_slaves(found: pl.DataFrame, reports: pl.DataFrame) -> pl.DataFrame:
    """Add the fewest connections of slaves, the fewest in sync, and the most that one lacked, while sends waited."""
    numbered = found.with_row_index("run")
    waits = numbered.filter(pl.col("send_status").is_in([SEND_STATUS[11], SEND_STATUS[12]]))
    meanwhile = pl.col("ts").is_between(
        pl.col("from_ts") - pl.duration(seconds=REPORTED_EACH_S), pl.col("to_ts") + pl.duration(seconds=REPORTED_EACH_S)
    )
    of_run = waits.select("run", "broker_name", "from_ts", "to_ts").join(reports, "broker_name").filter(meanwhile)
    states = of_run.group_by("run").agg(
        pl.col("connections").min(), pl.col("in_sync").min(), pl.col("behind_bytes").max()
    )
    return numbered.join(states, "run", how="left", maintain_order="left").drop("run")


def _not_forbidden(spans: pl.DataFrame, unwriteable: pl.DataFrame) -> pl.DataFrame:
    """Return the avoided brokers without those of a topic that could not be written there meanwhile."""
    forbidden = unwriteable.select(
        "topic", "broker_name", pl.col("from_ts").alias("since"), pl.col("to_ts").alias("end")
    )
    both = spans.join(forbidden, ["topic", "broker_name"]).filter(pl.col("cause") == NOT_IN_ROUTE)
    known = both.filter((pl.col("from_ts") <= pl.col("end")) & (pl.col("to_ts") >= pl.col("since")))
    return spans.join(known, ["record_id", "broker_name"], how="anti")


def avoided(spans: pl.DataFrame, cluster: str, gap_s: int) -> pl.DataFrame:
    """Return SENDS_AVOID_BROKER; spans of one broker and cause that are ``gap_s`` seconds apart are one finding."""
    by = ("broker_name", "cause")
    found = (
        with_session(spans, by, "from_ts", "to_ts", gap_s)
        .group_by(*by, "session")
        .agg(
            pl.col("from_ts").min(),
            pl.col("to_ts").max(),
            pl.col("client_id").n_unique().alias("producers"),
            pl.col("passed").sum(),
            *[one_or_none(name) for name in ("topic", "client_id")],
            evidence(TRIES, "record_id"),
        )
    )
    rows = found.with_columns(is_gone=pl.col("cause") == NOT_IN_ROUTE)
    return finding(rows, SENDS_AVOID_BROKER, cluster, severity="info")


SEEN_BEFORE: Final = dt.timedelta(seconds=30)  # a poll notices an outage this much later than the sends, at most
BACK: Final = dt.timedelta(seconds=30)  # a broker answers before it has registered, at the latest with its next round
ROUTELESS: Final = "routeless_topic"  # of sends without a route, whose masters depend on the topic


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
    since = pl.when(is_first).then(pl.lit(EPOCH, INSTANT)).otherwise("ts").alias("config_ts")
    configs = topic_config.filter(pl.col("broker_id") == 0).select(
        pl.col("topic").alias(ROUTELESS),
        pl.col("broker_name").alias("silent_name"),
        (pl.col("perm").is_in(WRITEABLE) & (pl.col("change") != "removed")).alias("takes"),
        since,
    )
    known = spans.join(configs, ROUTELESS).filter(pl.col("config_ts") <= pl.col("from_ts")).sort("config_ts")
    return known.unique(["run", "silent_name"], keep="last", maintain_order=True).filter("takes")
