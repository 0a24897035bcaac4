"""Topics that a group does not consume any more, because no member subscribes to them."""

from __future__ import annotations

import polars as pl

from mqreplay.decode.recording.advice import Need
from mqreplay.evidence.members.conflicts import unsubscribed_topics
from mqreplay.findings.finding_evidence import FindingEvidence
from mqreplay.findings.kind import FindingKind
from mqreplay.findings.lag import LAG_GROWS
from mqreplay.findings.limits import Limits
from mqreplay.findings.ownership import ORPHAN_QUEUE
from mqreplay.findings.shape import finding, rows_of


def find(evidence: FindingEvidence, limits: Limits, findings: pl.DataFrame) -> pl.DataFrame:
    """Return the topics that no member subscribed to any more, where queues had no owner or the lag grew meanwhile."""
    spans = unsubscribed_topics(evidence.heartbeat, evidence.members)
    return unsubscribed_findings(spans, findings, evidence.cluster, limits.dispute_s)


TOPIC_UNSUBSCRIBED = FindingKind(
    name="topic_unsubscribed",
    find_in_findings=find,
    confidence=0.9,
    needs=(Need("heartbeats", or_polled=("assignments", "consumer_connections")),),
    thresholds=("findings.dispute_s",),
)
EFFECTS = (ORPHAN_QUEUE.name, LAG_GROWS.name)


def unsubscribed_findings(spans: pl.DataFrame, findings: pl.DataFrame, cluster: str, dispute_s: int) -> pl.DataFrame:
    """Return TOPIC_UNSUBSCRIBED, of the frame of `unsubscribed_topics` and the findings of all other kinds."""
    place = ["consumer_group", "topic"]
    effects = findings.filter(pl.col("kind").is_in(EFFECTS)).select(*place, began="from_ts", ended="to_ts")
    hurts = (pl.col("began") <= pl.col("to_ts")) & (pl.col("ended") >= pl.col("from_ts"))
    long = spans.filter(pl.col("to_ts") - pl.col("from_ts") > pl.duration(seconds=dispute_s))
    found = long.join(effects, place).filter(hurts).drop("began", "ended").unique(["from_ts", *place])
    rows = found.with_columns(rows_of("silver.heartbeat"))
    return finding(rows, TOPIC_UNSUBSCRIBED, cluster, severity="warning")
