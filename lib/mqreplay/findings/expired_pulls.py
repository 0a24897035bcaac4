"""Queues that a client holds and has not pulled for so long that its rebalance should have dropped them."""

from __future__ import annotations

import polars as pl

from mqreplay.decode.recording.advice import Need
from mqreplay.evidence.intervals import with_session
from mqreplay.findings.finding_evidence import FindingEvidence
from mqreplay.findings.kind import FindingKind
from mqreplay.findings.limits import Limits
from mqreplay.findings.shape import evidence, finding, one_or_none, places

POLLED_S = 90  # running info that does not change is written once a minute


def find(evidence: FindingEvidence, _limits: Limits) -> pl.DataFrame:
    """Return the clients that hold queues without pulling them."""
    return expired_pulls(evidence.expired_pulls, evidence.cluster)


PULL_EXPIRED = FindingKind(
    name="pull_expired",
    find=find,
    confidence=0.9,
    needs=(Need("assignments"),),
    thresholds=("findings.rebalance_interval_s",),
    ends_after="findings.lost_s",
)


def expired_pulls(expired: pl.DataFrame, cluster: str) -> pl.DataFrame:
    """Return PULL_EXPIRED, of the rows of gold.rebalance_step with expired queues: one a client, topic and time."""
    by = ("consumer_group", "client_id", "topic")
    each = with_session(expired.explode("expired").unnest("expired"), by, "ts", "ts", POLLED_S)
    rows = each.group_by(*by, "session").agg(
        pl.col("ts").min().alias("from_ts"),
        pl.col("ts").max().alias("to_ts"),
        pl.struct("broker_name", "queue_id").n_unique().alias("queues"),
        *places(),
        one_or_none("broker_name"),
        one_or_none("queue_id"),
        evidence("silver.assignment", "record_id"),
    )
    return finding(rows, PULL_EXPIRED, cluster, severity="warning")
