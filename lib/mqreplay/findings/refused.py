"""Pulls that brokers refused for longer than a start takes."""

from __future__ import annotations

import polars as pl

from mqreplay.core import pull_refusal
from mqreplay.core.pull_check import (
    SUBSCRIPTION_GROUP_NOT_EXIST,
    SUBSCRIPTION_NOT_EXIST,
    SUBSCRIPTION_NOT_LATEST,
    SYSTEM_BUSY,
    TOPIC_NOT_EXIST,
)
from mqreplay.core.pull_refusal import INFO, REFUSALS, refusal_of
from mqreplay.decode.client_errors import PULL_REQUEST
from mqreplay.decode.recording.advice import Need
from mqreplay.findings.finding_evidence import FindingEvidence
from mqreplay.findings.forbidden_topics import forbidden_reads
from mqreplay.findings.kind import Cause, FindingKind
from mqreplay.findings.limits import Limits
from mqreplay.findings.pull_runs import joined_runs, pull_runs
from mqreplay.findings.shape import finding

PULL_ANSWERS, CLIENT_ERRORS = "gold.pull_answer", "silver.client_error"
OTHER_REASON = "another reason"
BY = ("broker_name", "broker_id", "refusal", "subject", "response_code")
NARROW = ("consumer_group", "topic", "client_id")  # a finding names them if all its pulls share them
DECIDED_BY = {each.words: each.decided_by for each in REFUSALS.values()}
STARTS = (SUBSCRIPTION_NOT_EXIST, SUBSCRIPTION_NOT_LATEST)
# So is a topic or group that a slave has not copied yet (SlaveSynchronize).
NOT_COPIED = pl.col("response_code").is_in([TOPIC_NOT_EXIST, SUBSCRIPTION_GROUP_NOT_EXIST]) & (pl.col("broker_id") > 0)
IS_START = pl.col("response_code").is_in(STARTS) | NOT_COPIED.fill_null(value=False)
# A refused client tries again after 3 s (DefaultMQPushConsumerImpl#pullTimeDelayMillsWhenException). Longer pauses are
# between several starts.
AGAIN_S = 10
# A pull of a member that left waits in the broker for up to 15 s (brokerSuspendMaxTimeMillis), and is then refused.
HELD_S = 20


def refused_runs_of_shard(answers: pl.DataFrame, gap_s: int) -> pl.DataFrame:
    """Return runs of a shard's refused pulls, each at most ``gap_s`` seconds after the one before.

    Columns: BY and those of `pull_runs`, of NARROW. ``answers`` are rows of gold.pull_answer. A slave that may not be
    read is a slave_pull.
    """
    by_slave = (pl.col("response_code") == SYSTEM_BUSY) & (pl.col("broker_id") > 0)
    decided_by = pl.col("refusal").replace_strict(DECIDED_BY, default="", return_dtype=pl.String)
    subject = (
        pl.when(decided_by == pull_refusal.BROKER)
        .then(pl.lit(""))
        .when(decided_by == pull_refusal.TOPIC)
        .then("topic")
        .when(decided_by.is_in([pull_refusal.GROUP, INFO]))
        .then("consumer_group")
        .otherwise(pl.concat_str("consumer_group", pl.lit(" "), "topic"))
    )
    refused = answers.filter(pl.col("refusal").is_not_null() & ~by_slave.fill_null(value=False))
    named = refused.with_columns(subject.alias("subject"))
    columns = {name: name for name in NARROW}
    runs = [
        pull_runs(named.filter(which), BY, columns, gap) for which, gap in ((IS_START, AGAIN_S), (~IS_START, gap_s))
    ]
    return pl.concat(runs)


def find(evidence: FindingEvidence, limits: Limits) -> pl.DataFrame:
    """Return the refusals that are no start of a consumer, and topics that may not be read."""
    pulls = refused_pulls(evidence.refused_runs, evidence.cluster, limits.same_cause_gap_s, limits.refused_s)
    topics = forbidden_reads(
        evidence.topic_config, evidence.queue_owner, pulls, evidence.recorded_until, limits.refused_s
    )
    by_copies = finding(
        topics, PULL_REFUSED, evidence.cluster, severity="warning", form="topic", advice_form=pull_refusal.TOPIC
    )
    owners = evidence.queue_owner.with_columns(pl.lit(value=False).alias("left"))
    alive = pl.concat(frame.select("consumer_group", "to_ts", "left") for frame in (evidence.members, owners))
    logged = logged_refusals(
        evidence.client_error,
        evidence.refused_runs,
        alive,
        evidence.cluster,
        limits.same_cause_gap_s,
        limits.refused_s,
    )
    return pl.concat([pulls, by_copies, logged])


PULL_REFUSED = FindingKind(
    name="pull_refused",
    find=find,
    confidence=1.0,
    needs=(Need("pull_log", or_polled=("topics",)),),
    thresholds=("findings.same_cause_gap_s", "findings.refused_s"),
    causes=(
        Cause("subscription_conflict", same=("consumer_group",)),
        Cause("slave_config_drift", same=("broker_name", "topic"), after_s=120),
        Cause("queue_count_changed", same=("topic",), after_s=300),
        Cause("broker_down", same=("broker_name", "broker_id"), after_s=120),
        Cause("rebalance_storm", same=("consumer_group",), after_s=120),
    ),
)


def refused_pulls(runs: pl.DataFrame, cluster: str, gap_s: int, refused_s: int) -> pl.DataFrame:
    """Return PULL_REFUSED. ``runs`` has the rows of `refused_runs_of_shard` of all shards."""
    lasting = (pl.col("to_ts") - pl.col("from_ts")) >= pl.duration(seconds=refused_s)
    starts = joined_runs(runs.filter(IS_START), BY, NARROW, AGAIN_S, PULL_ANSWERS).filter(lasting)
    found = pl.concat([starts, joined_runs(runs.filter(~IS_START), BY, NARROW, gap_s, PULL_ANSWERS)], rechunk=True)
    advice = pl.col("refusal").replace_strict(DECIDED_BY, default="", return_dtype=pl.String)
    return finding(found, PULL_REFUSED, cluster, severity="warning", advice_form=advice)


def logged_refusals(
    client_error: pl.DataFrame, runs: pl.DataFrame, alive: pl.DataFrame, cluster: str, gap_s: int, refused_s: int
) -> pl.DataFrame:
    """Return PULL_REFUSED of logs, without what recorded pulls (``runs``) show already.

    Codes of a start, and pulls without an answer, are info for less than ``refused_s`` seconds, and none for less than
    AGAIN_S: a consumer started, or left while it pulled. A code counts all the same if no member of the group was seen
    afterwards, or left just before (``alive``: consumer_group, to_ts, left of members).
    """
    pulls = client_error.filter(pl.col("request") == PULL_REQUEST)
    reasons = {remark: _words_of(remark) for remark in pulls["remark"].drop_nulls().unique()}
    named = pulls.with_columns(
        pl.when(pl.col("response_code").is_not_null())
        .then(pl.col("remark").replace_strict(reasons, default=OTHER_REASON, return_dtype=pl.String))
        .otherwise("error")
        .alias("refusal"),
        pl.col("consumer_group").fill_null("").alias("subject"),
        pl.col("ts").alias("request_ts"),
        pl.lit(None, pl.Int64).alias("broker_id"),
    )
    names = {name: name for name in NARROW}
    is_unanswered = pl.col("response_code").is_null()
    is_start = pl.col("response_code").is_in(STARTS) | is_unanswered
    last = pl.concat([alive, alive.with_columns(pl.lit("").alias("consumer_group"))])
    last = last.group_by(subject="consumer_group").agg(pl.col("to_ts").max().alias("last_ts"), pl.col("left").any())
    starts = pull_runs(named.filter(is_start), BY, names, AGAIN_S).join(last, "subject", how="left")
    left_late = pl.when("left").then(pl.duration(seconds=HELD_S)).otherwise(pl.duration(seconds=0))
    is_no_start = ~is_unanswered & (pl.col("last_ts") + left_late >= pl.col("from_ts")).fill_null(value=False).not_()
    others = pull_runs(named.filter(~is_start), BY, names, gap_s)
    found = pl.concat(
        joined_runs(part, BY, NARROW, gap, CLIENT_ERRORS).with_columns(pl.lit(counts).alias("counts"))
        for part, gap, counts in (
            (starts.filter(~is_no_start), AGAIN_S, False),
            (starts.filter(is_no_start), gap_s, True),
            (others, gap_s, True),
        )
    )
    shown = runs.select("response_code", pl.col("from_ts").alias("since"), pl.col("to_ts").alias("until"))
    numbered = found.with_row_index("run")
    meets = (pl.col("from_ts") <= pl.col("until")) & (pl.col("to_ts") >= pl.col("since"))
    unseen = numbered.join(numbered.join(shown, "response_code").filter(meets), "run", how="anti").drop("run")
    lasted_s = (pl.col("to_ts") - pl.col("from_ts")).dt.total_seconds()
    lasting = unseen.filter(pl.col("counts") | (lasted_s >= AGAIN_S)).with_columns(
        pl.when(lasted_s > 0).then(lasted_s).alias("within_s"), is_unnamed=pl.col("subject") == ""
    )
    severity = pl.when(~is_start | (lasted_s >= refused_s)).then(pl.lit("warning")).otherwise(pl.lit("info"))
    advice = pl.col("refusal").replace_strict(DECIDED_BY, default="", return_dtype=pl.String)
    return pl.concat(
        finding(lasting.filter(which), PULL_REFUSED, cluster, severity=severity, form=form, advice_form=words)
        for which, form, words in (
            (~is_unanswered, "logged", advice),
            (is_unanswered, "unanswered", pl.lit("unanswered")),
        )
    )


def _words_of(remark: str) -> str:
    refusal = refusal_of(remark)
    return OTHER_REASON if refusal is None else refusal.words
