"""Members with many more queues than the others."""

from __future__ import annotations

import polars as pl

from mqreplay.core.retry_topic import RETRY_GROUP_TOPIC_PREFIX as RETRY
from mqreplay.evidence.intervals import with_session
from mqreplay.findings.finding_evidence import FindingEvidence
from mqreplay.findings.kind import Cause, FindingKind
from mqreplay.findings.limits import Limits
from mqreplay.findings.shape import evidence, finding, seconds
from mqreplay.words.keys import MEMBER_TOPIC


def find(evidence: FindingEvidence, limits: Limits) -> pl.DataFrame:
    """Return the members with many more queues than the others."""
    return uneven_findings(evidence.uneven_shares, evidence.cluster, limits.rebalance_interval_s, limits.dispute_s)


UNEVEN_ALLOCATION = FindingKind(
    name="uneven_allocation",
    find=find,
    confidence=0.9,
    thresholds=("findings.uneven_queues", "findings.dispute_s", "findings.rebalance_interval_s"),
    causes=(
        Cause("strategy_conflict", same=("consumer_group",)),
        Cause("subscription_conflict", same=("consumer_group",)),
    ),
)


def uneven_shares_of_shard(allocation: pl.DataFrame, uneven_queues: int) -> pl.DataFrame:
    """Return the rebalances in which a member took ``uneven_queues`` more than a fair share: ``held`` and ``fair``.

    ``allocation`` are any rows of gold.allocation.
    """
    queues, members = (pl.col(name).list.len().cast(pl.Int64) for name in ("mq_all", "cid_all"))
    shared = (queues > 0) & (members > 1) & ~pl.col("topic").str.starts_with(RETRY)
    return (
        allocation.filter(shared & pl.col("actual").is_not_null())
        .select(
            *MEMBER_TOPIC,
            "rebalance_ts",
            "strategy",
            "record_id",
            ((queues + members - 1) // members).alias("fair"),
            pl.col("actual").list.len().cast(pl.Int64).alias("held"),
        )
        .filter(pl.col("held") >= pl.col("fair") + uneven_queues)
    )


def uneven_findings(over: pl.DataFrame, cluster: str, interval_s: int, dispute_s: int) -> pl.DataFrame:
    """Return uneven_allocation: a member took more than a fair share for longer than ``dispute_s`` seconds.

    ``over`` are the rows of `uneven_shares_of_shard` of all shards, ``interval_s`` the rebalance interval. A strategy
    may intend an uneven share (CONFIG, rooms, a ring of few places), so the severity is info.
    """
    together = with_session(over, MEMBER_TOPIC, "rebalance_ts", "rebalance_ts", 2 * interval_s)
    found = together.group_by(*MEMBER_TOPIC, "session").agg(
        pl.col("rebalance_ts").min().alias("from_ts"),
        pl.col("rebalance_ts").max().alias("to_ts") + pl.duration(seconds=interval_s),
        pl.col("held").max(),
        pl.col("fair").sort_by("held", "rebalance_ts", "record_id").last(),
        pl.col("strategy").max(),
        evidence("gold.allocation", "record_id"),
    )
    long = found.filter(seconds("from_ts", "to_ts") > dispute_s)
    return finding(long, UNEVEN_ALLOCATION, cluster, severity="info")
