"""Queues of orderly groups that a client could not lock for longer than a handover takes."""

from __future__ import annotations

import polars as pl

from mqreplay.core.rebalance_lock_manager import REBALANCE_LOCK_INTERVAL, REBALANCE_LOCK_MAX_LIVE_TIME
from mqreplay.decisions.queue_lock import REFUSED
from mqreplay.evidence.intervals import with_session
from mqreplay.findings.finding_evidence import FindingEvidence
from mqreplay.findings.kind import Cause, FindingKind
from mqreplay.findings.limits import Limits
from mqreplay.findings.shape import evidence, finding, one_or_none, places
from mqreplay.words.keys import GROUP_QUEUE

REQUEST_QUEUE = ("record_id", "topic", "broker_name", "queue_id")
# A client asks again at its next rebalance, after 20 s. A longer pause is another attempt.
AGAIN_S = (REBALANCE_LOCK_MAX_LIVE_TIME + REBALANCE_LOCK_INTERVAL) // 1000
QUEUES_NAMED = 8  # queues in a summary; more are counted
CLIENTS_NAMED = 4


def blocked_locks(locks: pl.DataFrame) -> pl.DataFrame:
    """Return the refused locks with ``run``: a client's run of refusals of a queue, without a grant in between.

    Columns: GROUP_QUEUE, client_id, run, ts, holder, record_id. ``locks`` is the frame of `queue_lock`.
    """
    refused = locks.filter(pl.col("actual") == REFUSED)
    by = (*GROUP_QUEUE, "client_id", "grants")
    runs = with_session(refused, by, "ts", "ts", AGAIN_S)
    return runs.select(
        *GROUP_QUEUE, "client_id", pl.struct("grants", "session").alias("run"), "ts", "holder", "record_id"
    )


def find(evidence: FindingEvidence, limits: Limits) -> pl.DataFrame:
    """Return the queues that a client could not lock for long."""
    return lock_findings(evidence.blocked_locks, evidence.cluster, limits.lock_blocked_s, limits.same_cause_gap_s)


LOCK_BLOCKED = FindingKind(
    name="lock_blocked",
    find=find,
    confidence=0.9,
    thresholds=("findings.lock_blocked_s", "findings.same_cause_gap_s"),
    causes=(
        Cause("strategy_conflict", same=("consumer_group",), after_s=120),
        Cause("subscription_conflict", same=("consumer_group",), after_s=120),
        Cause("duplicate_client_id", same=("consumer_group",), after_s=120),
        Cause("stuck_queue", same=("consumer_group", "topic"), after_s=120, before_s=120),
    ),
)


def lock_findings(blocked: pl.DataFrame, cluster: str, blocked_s: int, gap_s: int) -> pl.DataFrame:
    """Return LOCK_BLOCKED, of the frame of `blocked_locks`.

    Queues of a group that the same client has, at most ``gap_s`` seconds apart, are one finding.
    """
    by = [*GROUP_QUEUE, "client_id", "run"]
    span = pl.col("ts").max().over(by) - pl.col("ts").min().over(by)
    long = blocked.filter(span > pl.duration(seconds=blocked_s)).with_columns(
        pl.col("holder").drop_nulls().last().over(by).alias("holder")
    )
    place = pl.struct("topic", "broker_name", "queue_id")
    found = (
        with_session(long, ["consumer_group", "holder"], "ts", "ts", gap_s)
        .group_by("consumer_group", "holder", "session")
        .agg(
            pl.col("ts").min().alias("from_ts"),
            pl.col("ts").max().alias("to_ts"),
            *places(QUEUES_NAMED, ("topic", "broker_name", "queue_id"), "{} {}/{}"),
            place.n_unique().cast(pl.Int64).alias("queues"),
            pl.col("client_id").n_unique().cast(pl.Int64).alias("clients"),
            pl.col("client_id").unique().sort().head(CLIENTS_NAMED).implode().alias("named"),
            *(one_or_none(name) for name in ("topic", "broker_name", "queue_id", "client_id")),
            evidence("gold.queue_lock", *REQUEST_QUEUE),
        )
    )
    return finding(found, LOCK_BLOCKED, cluster, severity="warning")
