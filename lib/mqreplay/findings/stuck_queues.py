"""Queues whose offset did not move while messages waited and members held them."""

from __future__ import annotations

import polars as pl

from mqreplay.decode.recording.advice import Need
from mqreplay.evidence.intervals import with_session
from mqreplay.evidence.offsets.queue_ends import with_age
from mqreplay.findings.finding_evidence import FindingEvidence
from mqreplay.findings.kind import Cause, FindingKind
from mqreplay.findings.limits import Limits
from mqreplay.findings.shape import evidence, finding, one_or_none, places
from mqreplay.words.keys import GROUP_QUEUE


def find(evidence: FindingEvidence, limits: Limits) -> pl.DataFrame:
    """Return the queues whose offset did not move while a member held them."""
    standstills = with_age(evidence.held_standstills, evidence.consume_stats, evidence.stated_groups)
    return stuck_findings(standstills, evidence.cluster, limits.same_cause_gap_s)


STUCK_QUEUE = FindingKind(
    name="stuck_queue",
    find=find,
    confidence=0.95,
    thresholds=("findings.stuck_s", "findings.same_cause_gap_s"),
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
    """Return STUCK_QUEUE, of the frame of standstills.held_standstills with age_s.

    Standstills of one group and topic that are ``gap_s`` seconds apart or less are one finding.
    """
    by = ["consumer_group", "topic"]
    sessions = with_session(standstills, by, "from_ts", "to_ts", gap_s)
    merged = sessions.group_by(*by, "session").agg(
        pl.col("from_ts").min(),
        pl.col("to_ts").max(),
        *places(None, text="{}/{}"),
        pl.col("waiting").max(),
        pl.col("age_s").max(),
        pl.col("refused").sum(),
        one_or_none("offset"),
        one_or_none("broker_name"),
        one_or_none("queue_id"),
        evidence("silver.offset_change", *GROUP_QUEUE),
    )
    return finding(merged, STUCK_QUEUE, cluster, severity="warning")
