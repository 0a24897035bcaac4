"""Queues that a message without acknowledgement blocks for a group that consumes by POP in order."""

from __future__ import annotations

import polars as pl

from mqreplay.evidence.arrays.keys import KEY
from mqreplay.evidence.time_spans import with_session
from mqreplay.findings.finding_evidence import FindingEvidence
from mqreplay.findings.kind import Cause, FindingKind
from mqreplay.findings.limits import Limits
from mqreplay.findings.shape import counted, evidence, finding, one_or_none, whole_seconds


def find(evidence: FindingEvidence, limits: Limits) -> pl.DataFrame:
    """Return the queues that a message without acknowledgement blocks."""
    return pop_order_findings(evidence.blocked_orders, evidence.cluster, limits.same_cause_gap_s)


POP_ORDER_BLOCKED = FindingKind(
    name="pop_order_blocked",
    find=find,
    meaning="A group that consumes by POP in order does not acknowledge a message, so the broker gives it no later"
    " message of this queue: it gives out the same one again and again, or waits for its consumer.",
    rule="Successive copies of a master's consumerOrderInfo.json show the same first message without acknowledgement"
    " for longer than stuck_s seconds. Once all messages are visible again and nobody asks for them, the queue is not"
    " blocked any more. Where the file does not change, a span ends with its last copy.",
    follows="ConsumerOrderInfoManager#checkBlock",
    advice="Look at the message: `mqadmin queryMsgByOffset -t TOPIC -b BROKER -i QUEUE_ID -o OFFSET -n NAMESRV`. Look"
    " for a listener that fails or hangs on it: the consumer's log, `jstack PID`. Correct the consumer, or let it"
    " acknowledge and skip this message.",
    confidence=0.9,
    thresholds=("findings.stuck_s", "findings.same_cause_gap_s"),
    example="Group pay-fifo did not acknowledge the first message of orders in broker-a/0 at 17 for 262 s; 3 messages"
    " were handed out and not acknowledged, and block what follows.",
    causes=(Cause("broker_down", same=("broker_name",), after_s=120),),
)
QUEUES_NAMED = 16  # queues in a summary; more are counted


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
    place = pl.format("{}/{} at {}", "broker_name", "queue_id", "offset")
    found = of_queue.group_by(*by, "session").agg(
        pl.col("from_ts").min(),
        pl.col("to_ts").max(),
        place.sort().implode().list.head(QUEUES_NAMED).list.join(", ").alias("places"),
        (pl.len().cast(pl.Int64) - QUEUES_NAMED).alias("unnamed"),
        pl.col("unacknowledged").sum(),
        one_or_none("broker_name"),
        one_or_none("queue_id"),
        evidence("silver.pop_order", "source_name", *(name for name in KEY if name != "broker_name"), "ts"),
    )
    more = pl.when(pl.col("unnamed") > 0).then(pl.lit(" and ") + counted("unnamed", "more queue"))
    waited = (
        pl.when(pl.col("unacknowledged") == 1)
        .then(pl.lit("1 message was"))
        .otherwise(pl.format("{} messages were", "unacknowledged"))
    )
    summary = pl.concat_str(
        pl.format("Group {} did not acknowledge the first message of {} in {}", "consumer_group", "topic", "places"),
        more.fill_null(""),
        pl.lit(" for "),
        whole_seconds("from_ts", "to_ts"),
        pl.lit("; "),
        waited,
        pl.lit(" handed out and not acknowledged, and block what follows."),
    )
    return finding(found, POP_ORDER_BLOCKED, cluster, severity="warning", summary=summary)
