"""Data that exists once: slaves that do not get it, and disks that it is not written to."""

from __future__ import annotations

import polars as pl

from mqreplay.decode.recording.advice import Need
from mqreplay.evidence.intervals import with_session
from mqreplay.findings.finding_evidence import FindingEvidence
from mqreplay.findings.kind import Cause, FindingKind
from mqreplay.findings.limits import Limits
from mqreplay.findings.shape import evidence, evidence_rows, finding, none, record_key
from mqreplay.words.keys import BROKER


def find_lag(evidence: FindingEvidence, limits: Limits) -> pl.DataFrame:
    """Return the slaves that stayed behind, and the synchronous masters without a slave."""
    gap_s, cluster = limits.same_cause_gap_s, evidence.cluster
    found = evidence.replication
    return pl.concat(
        [
            slaves_behind(found.lags, evidence.outages, cluster, gap_s),
            masters_alone(found.alone, cluster, gap_s, limits.replication_lag_s),
            reported_behind(found.fallen_behind, cluster),
        ]
    )


def find_unflushed(evidence: FindingEvidence, limits: Limits) -> pl.DataFrame:
    """Return the brokers that did not flush what they had to."""
    rows = evidence.replication.judged_polls
    return unflushed(rows, evidence.cluster, limits.same_cause_gap_s, limits.unflushed_bytes)


REPLICATION_LAG = FindingKind(
    name="replication_lag",
    find=find_lag,
    confidence=0.9,
    needs=(Need("broker_runtime"),),
    thresholds=("findings.replication_lag_s", "findings.same_cause_gap_s"),
    causes=(Cause("broker_down", same=("broker_name",), after_s=120), Cause("master_changed", same=("broker_name",))),
)
UNFLUSHED_DATA = FindingKind(
    name="unflushed_data",
    find=find_unflushed,
    confidence=0.9,
    needs=(Need("broker_runtime"), Need("brokers")),
    thresholds=("findings.same_cause_gap_s", "findings.unflushed_bytes"),
)
LEAST_POLLS = 2  # one poll may meet a broker that has just started, or a disk that is slow once


def slaves_behind(lags: pl.DataFrame, outages: pl.DataFrame, cluster: str, gap_s: int) -> pl.DataFrame:
    """Return REPLICATION_LAG for each slave and time. ``lags`` is that of Replication, ``outages`` broker_outages'."""
    if lags.is_empty():
        return none()
    since = lags.with_columns(pl.col("behind_since").alias("from_ts"), pl.col("ts").alias("to_ts"))
    merged = (
        with_session(since, BROKER, "from_ts", "to_ts", gap_s)
        .group_by(*BROKER, "session")
        .agg(
            pl.len().alias("polls"),
            pl.col("from_ts").min(),
            pl.col("to_ts").max(),
            pl.col("behind_bytes").max(),
            pl.col("behind_messages").max(),
            pl.col("copies").max(),
            (pl.col("answered_ts") < pl.col("ts")).all().alias("silent"),
            evidence("silver.broker_runtime", "record_id"),
        )
        .filter(pl.col("polls") >= LEAST_POLLS)
    )
    rows = _with_outage(merged, outages)
    is_down = pl.col("down_ts").is_not_null()
    severity = pl.when(is_down).then(pl.lit("critical")).otherwise(pl.lit("warning"))
    return finding(rows, REPLICATION_LAG, cluster, severity=severity)


def reported_behind(fallen_behind: pl.DataFrame, cluster: str) -> pl.DataFrame:
    """Return REPLICATION_LAG for each slave that only its master's reports show. See `slaves_fallen_behind`."""
    keys = pl.col("record_ids").list.eval(record_key(pl.element()))
    rows = fallen_behind.with_columns(evidence_rows("silver.ha_status", keys))
    return finding(rows, REPLICATION_LAG, cluster, severity="warning", form="reported")


def _with_outage(spans: pl.DataFrame, outages: pl.DataFrame) -> pl.DataFrame:
    """Add down_ts: when the master went down while its slave was behind; null if it did not."""
    masters = outages.filter(pl.col("broker_id") == 0).select("broker_name", pl.col("from_ts").alias("down_ts"))
    met = spans.join(masters, "broker_name").filter(pl.col("down_ts").is_between("from_ts", "to_ts"))
    down = met.group_by(*BROKER, "session").agg(pl.col("down_ts").min())
    return spans.join(down, [*BROKER, "session"], how="left")


def masters_alone(alone: pl.DataFrame, cluster: str, gap_s: int, lag_s: int) -> pl.DataFrame:
    """Return REPLICATION_LAG for each synchronous master without a slave.

    ``alone`` is that of Replication: at each of its polls no slave had answered for ``lag_s`` seconds.
    """
    if alone.is_empty():
        return none()
    merged = (
        with_session(alone, BROKER, "ts", "ts", gap_s)
        .group_by(*BROKER, "session")
        .agg(
            pl.len().alias("polls"),
            (pl.col("ts").min() - pl.duration(seconds=lag_s)).alias("from_ts"),
            pl.col("ts").max().alias("to_ts"),
            (pl.col("log_end").max() - pl.col("log_end").min()).alias("stored"),
            pl.col("send_status").drop_nulls().last(),
            evidence("silver.broker_runtime", "record_id"),
        )
        .filter(pl.col("polls") >= LEAST_POLLS)
    )
    return finding(merged, REPLICATION_LAG, cluster, severity="warning", form="alone")


def unflushed(rows: pl.DataFrame, cluster: str, gap_s: int, least_bytes: int = 0) -> pl.DataFrame:
    """Return UNFLUSHED_DATA for each broker and time at which ``least_bytes`` too many waited.

    ``rows`` is gold.replication.
    """
    more = rows.filter(pl.col("judgement") == "differ")
    if more.is_empty():
        return none()
    merged = (
        with_session(more, BROKER, "ts", "ts", gap_s)
        .group_by(*BROKER, "session")
        .agg(
            pl.len().alias("polls"),
            pl.col("ts").min().alias("from_ts"),
            pl.col("ts").max().alias("to_ts"),
            pl.col("unflushed_bytes").max().alias("most"),
            (pl.col("unflushed_bytes") - pl.col("allowed_bytes")).max().alias("more"),
            pl.col("unflushed_messages").max().alias("messages"),
            ((pl.col("unflushed_ms").max() + 999) // 1000).alias("oldest_s"),
            evidence("gold.replication", "record_id"),
        )
        .filter((pl.col("polls") >= LEAST_POLLS) & (pl.col("more") >= least_bytes))
    )
    return finding(merged, UNFLUSHED_DATA, cluster, severity="warning")
