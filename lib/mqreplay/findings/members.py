"""Members of a group with different strategies or subscriptions."""

from __future__ import annotations

import polars as pl

from mqreplay.core.retry_topic import RETRY_GROUP_TOPIC_PREFIX as RETRY
from mqreplay.evidence.members.conflicts import strategy_conflicts, subscription_conflicts
from mqreplay.evidence_advice import Need
from mqreplay.findings.finding_evidence import FindingEvidence
from mqreplay.findings.kind import FindingKind
from mqreplay.findings.limits import Limits
from mqreplay.findings.shape import finding, rows_of, seconds


def find(evidence: FindingEvidence, limits: Limits) -> pl.DataFrame:
    """Return the groups whose members have different strategies or subscriptions."""
    sessions = evidence.members
    return conflict_findings(
        strategy_conflicts(evidence.rebalance, sessions, limits.rebalance_interval_s, evidence.polled.strategies),
        subscription_conflicts(evidence.heartbeat, sessions, limits.heartbeat_interval_s),
        evidence.cluster,
        limits.dispute_s,
    )


STRATEGY_CONFLICT = FindingKind(
    name="strategy_conflict",
    find=find,
    meaning=(
        "Members of a group share out the same queues in different ways: some queues have two owners, others have none."
    ),
    rule="Members of one group allocated by different strategies at the same time, longer than lists take to spread.",
    follows="RebalanceImpl#rebalanceByTopic: each member computes for itself",
    advice=(
        "Give all members of the group the same AllocateMessageQueueStrategy, and change it on all of them at once. Who"
        " uses which: `mqreplay explain FINDING`, or `mqadmin consumerStatus -g GROUP -i CLIENT_ID`."
    ),
    confidence=0.9,
    needs=(Need("rebalance_log", or_polled=("assignments",)),),
    thresholds=("findings.dispute_s", "findings.rebalance_interval_s"),
    example=("Members of group mixalg-group shared out pay-topic by different strategies: AVG against AVG_BY_CIRCLE."),
)
SUBSCRIPTION_CONFLICT = FindingKind(
    name="subscription_conflict",
    find=find,
    meaning=(
        "A broker keeps one subscription for a group: that of the last heartbeat. Members with another one get queues"
        " that they do not consume, and miss messages."
    ),
    rule="Members of one group sent heartbeats with different subscriptions at the same time.",
    follows="ConsumerGroupInfo#updateSubscription keeps the last one's",
    advice=(
        "Give all members of the group the same subscriptions, or each a group of its own. Who subscribes to what:"
        " `mqadmin consumerConnection -g GROUP`, and `mqreplay explain FINDING`."
    ),
    confidence=0.9,
    needs=(Need("heartbeats", or_polled=("assignments", "consumer_connections")),),
    thresholds=("findings.dispute_s", "findings.heartbeat_interval_s"),
    example=(
        "Members of group mixsub-group subscribed to different things: order-topic TAG * against pay-topic TAG *."
    ),
)


def conflict_findings(
    strategies: pl.DataFrame, subscriptions: pl.DataFrame, cluster: str, dispute_s: int
) -> pl.DataFrame:
    """Return strategy_conflict and subscription_conflict, one for each conflict longer than ``dispute_s`` seconds.

    The frames are those of conflicts.py.
    """
    long = seconds("from_ts", "to_ts") > dispute_s
    sides = pl.col("sides").list.join(" against ")
    own_topics = pl.col("topics").list.eval(pl.element().filter(~pl.element().str.starts_with(RETRY)))
    by_strategy = finding(
        strategies.filter(long).with_columns(rows_of("gold.allocation")),
        STRATEGY_CONFLICT,
        cluster,
        severity="warning",
        summary=pl.format(
            "Members of group {} shared out {} by different strategies: {}.",
            "consumer_group",
            own_topics.list.join(", "),
            sides,
        ),
    )
    by_subscription = finding(
        subscriptions.filter(long).with_columns(rows_of("silver.heartbeat")),
        SUBSCRIPTION_CONFLICT,
        cluster,
        severity="warning",
        summary=pl.format("Members of group {} subscribed to different things: {}.", "consumer_group", sides),
    )
    return pl.concat([by_strategy, by_subscription])
