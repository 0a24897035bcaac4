"""Members of a group with different strategies or subscriptions."""

from __future__ import annotations

import polars as pl

from mqreplay.core.retry_topic import RETRY_GROUP_TOPIC_PREFIX as RETRY
from mqreplay.decode.recording.advice import Need
from mqreplay.evidence.members.conflicts import logged_conflicts, strategy_conflicts, subscription_conflicts
from mqreplay.findings.finding_evidence import FindingEvidence
from mqreplay.findings.kind import FindingKind
from mqreplay.findings.limits import Limits
from mqreplay.findings.shape import finding, rows_of, seconds


def find(evidence: FindingEvidence, limits: Limits) -> pl.DataFrame:
    """Return the groups whose members have different strategies or subscriptions."""
    sessions = evidence.members
    stated = subscription_conflicts(evidence.heartbeat, sessions, limits.heartbeat_interval_s)
    logged = logged_conflicts(evidence.rebalance, evidence.queue_owner, sessions)
    return conflict_findings(
        strategy_conflicts(evidence.rebalance, sessions, limits.rebalance_interval_s, evidence.polled.strategies),
        pl.concat([stated, logged.join(stated, "consumer_group", how="anti")]),
        evidence.cluster,
        limits.dispute_s,
        evidence.polled.alternations,
    )


STRATEGY_CONFLICT = FindingKind(
    name="strategy_conflict",
    find=find,
    confidence=0.9,
    needs=(Need("rebalance_log", or_polled=("assignments",)),),
    thresholds=("findings.dispute_s", "findings.rebalance_interval_s"),
)
SUBSCRIPTION_CONFLICT = FindingKind(
    name="subscription_conflict",
    find=find,
    confidence=0.9,
    needs=(Need("heartbeats", or_polled=("assignments", "consumer_connections")),),
    thresholds=("findings.dispute_s", "findings.heartbeat_interval_s"),
)


def conflict_findings(
    strategies: pl.DataFrame,
    subscriptions: pl.DataFrame,
    cluster: str,
    dispute_s: int,
    alternations: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """Return strategy_conflict and subscription_conflict, one for each conflict longer than ``dispute_s`` seconds.

    The frames are those of conflicts.py. ``alternations`` count for groups whose members state no conflict themselves;
    one return of a subscription may be a release that was taken back: it is info.
    """
    long = seconds("from_ts", "to_ts") > dispute_s
    own_topics = pl.col("topics").list.eval(pl.element().filter(~pl.element().str.starts_with(RETRY)))
    shared = strategies.filter(long).with_columns(rows_of("gold.allocation"), own_topics.alias("topics"))
    subscribed = subscriptions.filter(long).with_columns(rows_of("silver.heartbeat"))
    findings = [
        finding(shared, STRATEGY_CONFLICT, cluster, severity="warning"),
        finding(subscribed, SUBSCRIPTION_CONFLICT, cluster, severity="warning"),
    ]
    if alternations is not None:
        others = alternations.filter(long).join(subscribed, "consumer_group", how="anti")
        rows = others.with_columns(rows_of("silver.consumer_connection"))
        severity = pl.when(pl.col("returns") > 1).then(pl.lit("warning")).otherwise(pl.lit("info"))
        findings.append(finding(rows, SUBSCRIPTION_CONFLICT, cluster, severity=severity, form="broker"))
    return pl.concat(findings)
