"""Queues that a message without acknowledgement blocks for a group that consumes by POP in order."""

from __future__ import annotations

import polars as pl

from mqreplay.evidence.intervals import with_session
from mqreplay.findings.finding_evidence import FindingEvidence
from mqreplay.findings.kind import Cause, FindingKind
from mqreplay.findings.limits import Limits
from mqreplay.findings.shape import evidence, finding, one_or_none, places
from mqreplay.words.keys import GROUP_QUEUE, TOPIC_QUEUE


def find(evidence: FindingEvidence, limits: Limits) -> pl.DataFrame:
    """Return the queues that a message without acknowledgement blocks."""
    return pop_order_findings(evidence.blocked_orders, evidence.cluster, limits.same_cause_gap_s)


POP_ORDER_BLOCKED = FindingKind(
    name="pop_order_blocked",
    find=find,
    confidence=0.9,
    thresholds=("findings.stuck_s", "findings.same_cause_gap_s"),
    causes=(Cause("broker_down", same=("broker_name",), after_s=120),),
)


def pop_order_findings(blocked: pl.DataFrame, cluster: str, gap_s: int) -> pl.DataFrame:
    """Return POP_ORDER_BLOCKED, of the frame of pop_orders.py.

    Spans of one group and topic that are ``gap_s`` seconds apart or less are one finding.
    """
    by = ["consumer_group", "topic"]
    sessions = with_session(blocked, by, "from_ts", "to_ts", gap_s).sort("from_ts")
    of_queue = sessions.group_by(*by, "session", "broker_name", "queue_id", maintain_order=True).agg(
        pl.col("from_ts").min(),
        pl.col("to_ts").max(),
        pl.col("offset", "unacknowledged", "source_name", "ts").last(),
    )
    found = of_queue.group_by(*by, "session").agg(
        pl.col("from_ts").min(),
        pl.col("to_ts").max(),
        *places(names=(*TOPIC_QUEUE, "offset"), text="{}/{} at {}"),
        pl.col("unacknowledged").sum(),
        one_or_none("broker_name"),
        one_or_none("queue_id"),
        evidence("silver.pop_order", "source_name", *(name for name in GROUP_QUEUE if name != "broker_name"), "ts"),
    )
    return finding(found, POP_ORDER_BLOCKED, cluster, severity="warning")
