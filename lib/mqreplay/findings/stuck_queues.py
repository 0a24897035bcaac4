"""Queues whose offset did not move while messages waited and members held them."""

from __future__ import annotations

import polars as pl

from mqreplay.evidence.arrays.keys import KEY
from mqreplay.evidence.time_spans import with_session
from mqreplay.evidence_advice import Need
from mqreplay.findings.finding_evidence import FindingEvidence
from mqreplay.findings.kind import Cause, FindingKind
from mqreplay.findings.limits import Limits
from mqreplay.findings.shape import counted, evidence, finding, one_or_none, whole_seconds


def find(evidence: FindingEvidence, limits: Limits) -> pl.DataFrame:
    """Return the queues whose offset did not move while a member held them."""
    return stuck_findings(evidence.held_standstills, evidence.cluster, limits.same_cause_gap_s)


STUCK_QUEUE = FindingKind(
    name="stuck_queue",
    find=find,
    meaning=(
        "Messages wait in a queue that a member holds, and its offset does not move. One message whose processing never"
        " finishes holds a whole queue back; so does a broker that refuses its pulls."
    ),
    rule="No commit and no copy of the master's file moved the offset, while messages waited and a member held it.",
    follows="ProcessQueue#removeMessage: the smallest offset not yet processed",
    advice=(
        "Look for a message whose processing never finishes: `jstack PID` on the machine of the member, or `mqadmin"
        " consumerStatus -g GROUP -i CLIENT_ID -s`. The message itself: `mqadmin queryMsgByOffset -t TOPIC -b BROKER -i"
        " QUEUE -o OFFSET`. Who held it: `mqreplay explain FINDING`."
    ),
    confidence=0.95,
    thresholds=("findings.stuck_s", "findings.same_cause_gap_s"),
    example=(
        "Group stuck-group stood still on stuck-topic in broker-a/0 at 30 for 95 s, with up to 102 messages waiting."
    ),
    needs=(Need("pull_log", or_polled=("topic_stats", "consume_stats"), easier="topic_stats"),),
    causes=(
        # Polls of clients are up to a minute apart.
        Cause("slow_listener", same=("consumer_group", "topic"), after_s=120, before_s=90),
        Cause("pull_refused", same=("consumer_group", "topic"), before_s=90),
        # It is seen when the pulls are more than two minutes old.
        Cause("pull_expired", same=("consumer_group", "topic"), before_s=240),
        Cause("strategy_conflict", same=("consumer_group",)),
        Cause("subscription_conflict", same=("consumer_group",)),
        Cause("consumer_lost", same=("consumer_group",), after_s=150),
        # A slave that lacks the topic or the group serves nobody while the master is down.
        Cause("slave_config_drift", same=("broker_name", "topic"), after_s=120, critical=True),
        Cause("slave_config_drift", same=("broker_name", "consumer_group"), after_s=120, critical=True),
        Cause("broker_down", same=("broker_name",), after_s=120),
        Cause("slow_broker", same=("consumer_group", "topic"), before_s=90),
        # A slave that refuses pulls: messages wait for it.
        Cause("slave_pull", same=("broker_name",), after_s=120, critical=True),
        Cause("double_owned_queue", same=("consumer_group", "topic")),
    ),
)


def stuck_findings(standstills: pl.DataFrame, cluster: str, gap_s: int) -> pl.DataFrame:
    """Return STUCK_QUEUE, of the frame of standstills.held_standstills.

    Standstills of one group and topic that are ``gap_s`` seconds apart or less are one finding.
    """
    by = ["consumer_group", "topic"]
    place = pl.concat_str("broker_name", pl.col("queue_id").cast(pl.String), separator="/")
    sessions = with_session(standstills, by, "from_ts", "to_ts", gap_s)
    merged = sessions.group_by(*by, "session").agg(
        pl.col("from_ts").min(),
        pl.col("to_ts").max(),
        place.unique().sort().implode().list.join(", ").alias("places"),
        pl.col("waiting").max(),
        pl.col("refused").sum(),
        one_or_none("offset"),
        one_or_none("broker_name"),
        one_or_none("queue_id"),
        evidence("silver.offset_change", *KEY),
    )
    at_offset = pl.lit(" at ") + pl.col("offset").cast(pl.String)
    refused = pl.when(pl.col("refused") > 0).then(pl.lit("; ") + counted("refused", "pull") + " refused meanwhile")
    summary = pl.concat_str(
        pl.format("Group {} stood still on {} in {}", "consumer_group", "topic", "places"),
        at_offset.fill_null(""),
        pl.lit(" for "),
        whole_seconds("from_ts", "to_ts"),
        pl.lit(", with up to "),
        counted("waiting", "message"),
        pl.lit(" waiting"),
        refused.fill_null(""),
        pl.lit("."),
    )
    return finding(merged, STUCK_QUEUE, cluster, severity="warning", summary=summary)
