"""Brokers that revive messages of POP late."""

from __future__ import annotations

import polars as pl

from mqreplay.core.pop_revive import REVIVE_GROUP
from mqreplay.decode.recording.advice import Need
from mqreplay.evidence.intervals import with_session
from mqreplay.findings.finding_evidence import FindingEvidence
from mqreplay.findings.kind import Cause, FindingKind
from mqreplay.findings.limits import Limits
from mqreplay.findings.shape import evidence, finding, one_or_none
from mqreplay.words.keys import QUEUE


def find(evidence: FindingEvidence, limits: Limits) -> pl.DataFrame:
    """Return the brokers that revive messages of POP late."""
    return revive_findings(evidence.revive_lags, evidence.cluster, limits.same_cause_gap_s)


REVIVE_LAG = FindingKind(
    name="revive_lag",
    find=find,
    confidence=0.9,
    thresholds=("findings.revive_lag_s", "findings.same_cause_gap_s"),
    needs=(Need("topic_stats"), Need("consumer_offset")),
    causes=(
        Cause("broker_down", same=("broker_name",), after_s=120),
        Cause("master_changed", same=("broker_name",), after_s=120),
    ),
)


def revive_findings(lags: pl.DataFrame, cluster: str, gap_s: int) -> pl.DataFrame:
    """Return REVIVE_LAG, of the frame of revive_lags.py.

    Spans of one broker that are ``gap_s`` seconds apart or less are one finding.
    """
    by = ["topic", "broker_name"]
    sessions = with_session(lags, by, "from_ts", "to_ts", gap_s)
    of_queue = sessions.group_by(*by, "session", "queue_id").agg(
        pl.col("from_ts").min(),
        pl.col("to_ts").max(),
        pl.col("behind").max(),
        pl.lit(REVIVE_GROUP).first().alias("consumer_group"),
    )
    found = of_queue.group_by(*by, "session").agg(
        pl.col("from_ts").min(),
        pl.col("to_ts").max(),
        pl.len().alias("queues"),
        # The sum may not fit 64 bits: a file may hold any offset.
        pl.col("behind").cast(pl.Int128).sum().alias("behind"),
        pl.col("consumer_group").first(),
        one_or_none("queue_id"),
        evidence("silver.offset_change", "consumer_group", *QUEUE),
    )
    return finding(found, REVIVE_LAG, cluster, severity="warning")
