"""Topics that a group does not consume any more, because no member subscribes to them."""

from __future__ import annotations

import polars as pl

from mqreplay.evidence.members.unsubscribed_topics import unsubscribed_topics
from mqreplay.evidence_advice import Need
from mqreplay.findings.finding_evidence import FindingEvidence
from mqreplay.findings.kind import FindingKind
from mqreplay.findings.lag import LAG_GROWS
from mqreplay.findings.limits import Limits
from mqreplay.findings.ownership import ORPHAN_QUEUE
from mqreplay.findings.shape import finding, rows_of, whole_seconds


def find(evidence: FindingEvidence, limits: Limits, findings: pl.DataFrame) -> pl.DataFrame:
    """Return the topics that no member subscribed to any more, where queues had no owner or the lag grew meanwhile."""
    spans = unsubscribed_topics(evidence.heartbeat, evidence.members)
    return unsubscribed_findings(spans, findings, evidence.cluster, limits.dispute_s)


TOPIC_UNSUBSCRIBED = FindingKind(
    name="topic_unsubscribed",
    find_in_findings=find,
    meaning=(
        "The group has members, and one of them subscribed to the topic before, but none does any more: nobody consumes"
        " it, and its messages wait."
    ),
    rule=(
        "Each connected member of the group stated subscriptions without a topic that one had listed before, for longer"
        " than dispute_s seconds, and meanwhile queues of the topic had no owner or their lag grew."
    ),
    follows="RebalanceImpl#doRebalance goes through the client's own subscriptions only",
    advice=(
        "If the topic is to be consumed, find out what removed the subscription: a release of the application, or a"
        " call of `unsubscribe`. If not, remove its offsets. Who subscribes to what: `mqadmin consumerConnection -g"
        " GROUP`, and `mqreplay explain FINDING`."
    ),
    confidence=0.9,
    needs=(Need("heartbeats", or_polled=("assignments", "consumer_connections")),),
    thresholds=("findings.dispute_s",),
    example="No member of group ge subscribed to t-e2 any more, for 104 s: nobody consumed it.",
)
EFFECTS = (ORPHAN_QUEUE.name, LAG_GROWS.name)


def unsubscribed_findings(spans: pl.DataFrame, findings: pl.DataFrame, cluster: str, dispute_s: int) -> pl.DataFrame:
    """Return TOPIC_UNSUBSCRIBED, of the frame of `unsubscribed_topics` and the findings of all other kinds."""
    place = ["consumer_group", "topic"]
    effects = findings.filter(pl.col("kind").is_in(EFFECTS)).select(*place, began="from_ts", ended="to_ts")
    hurts = (pl.col("began") <= pl.col("to_ts")) & (pl.col("ended") >= pl.col("from_ts"))
    long = spans.filter(pl.col("to_ts") - pl.col("from_ts") > pl.duration(seconds=dispute_s))
    found = long.join(effects, place).filter(hurts).drop("began", "ended").unique(["from_ts", *place])
    summary = pl.format(
        "No member of group {} subscribed to {} any more, for {}: nobody consumed it.",
        *place,
        whole_seconds("from_ts", "to_ts"),
    )
    rows = found.with_columns(rows_of("silver.heartbeat"))
    return finding(rows, TOPIC_UNSUBSCRIBED, cluster, severity="warning", summary=summary)
