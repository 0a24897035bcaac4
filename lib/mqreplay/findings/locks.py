"""Queues of orderly groups that a client could not lock for longer than a handover takes."""

from __future__ import annotations

import polars as pl

from mqreplay.core.rebalance_lock_manager import REBALANCE_LOCK_INTERVAL, REBALANCE_LOCK_MAX_LIVE_TIME
from mqreplay.decisions.queue_lock import QUEUE, REFUSED
from mqreplay.evidence.time_spans import with_session
from mqreplay.findings.finding_evidence import FindingEvidence
from mqreplay.findings.kind import Cause, FindingKind
from mqreplay.findings.limits import Limits
from mqreplay.findings.shape import counted, evidence, finding, one_or_none, whole_seconds

KEY = ("record_id", "topic", "broker_name", "queue_id")
# A client asks again at its next rebalance, after 20 s. A longer pause is another attempt.
AGAIN_S = (REBALANCE_LOCK_MAX_LIVE_TIME + REBALANCE_LOCK_INTERVAL) // 1000
QUEUES_NAMED = 8  # queues in a summary; more are counted
CLIENTS_NAMED = 4


def blocked_locks(locks: pl.DataFrame) -> pl.DataFrame:
    """Return the refused locks with ``run``: a client's run of refusals of a queue, without a grant in between.

    Columns: QUEUE, client_id, run, ts, holder, record_id. ``locks`` is the frame of `queue_lock`.
    """
    refused = locks.filter(pl.col("actual") == REFUSED)
    by = (*QUEUE, "client_id", "grants")
    runs = with_session(refused, by, "ts", "ts", AGAIN_S)
    return runs.select(*QUEUE, "client_id", pl.struct("grants", "session").alias("run"), "ts", "holder", "record_id")


def find(evidence: FindingEvidence, limits: Limits) -> pl.DataFrame:
    """Return the queues that a client could not lock for long."""
    return lock_findings(evidence.blocked_locks, evidence.cluster, limits.lock_blocked_s, limits.same_cause_gap_s)


LOCK_BLOCKED = FindingKind(
    name="lock_blocked",
    find=find,
    meaning="An orderly consumer needs a queue, and another client has its lock and renews it. Nobody consumes the"
    " queue as it should be: the client that it belongs to waits, and the one that has the lock may not pull it any"
    " more. A client keeps the lock while a listener is busy with a message of the queue, or while it computes another"
    " allocation.",
    rule="A broker refused the lock of a queue to a client for longer than lock_blocked_s seconds, from the first to"
    " the last refusal, and did not grant it in between. The lock of a client that died is refused for 60 s at most.",
    follows="RebalanceLockManager#tryLockBatch; RebalancePushImpl#removeUnnecessaryMessageQueue",
    advice="Look at the client that has the lock: `mqadmin consumerStatus -g GROUP -i CLIENT_ID -n NAMESRV` shows its"
    " queues with locked and droped, `jstack PID` a listener that hangs. If it hangs, restart it: the lock ends 60 s"
    " later. If it is well, compare the members that both clients see (`mqadmin consumerConnection -g GROUP -n"
    " NAMESRV`) and their allocation strategies.",
    confidence=0.9,
    thresholds=("findings.lock_blocked_s", "findings.same_cause_gap_s"),
    example="Group pay-group: 1 client could not lock 2 queues (pay-topic broker-a/0, pay-topic broker-a/1) for 140 s:"
    " client 10.0.0.7@4711 had the locks.",
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
    by = [*QUEUE, "client_id", "run"]
    span = pl.col("ts").max().over(by) - pl.col("ts").min().over(by)
    long = blocked.filter(span > pl.duration(seconds=blocked_s)).with_columns(
        pl.col("holder").drop_nulls().last().over(by).alias("holder")
    )
    place = pl.format("{} {}/{}", "topic", "broker_name", "queue_id")
    found = (
        with_session(long, ["consumer_group", "holder"], "ts", "ts", gap_s)
        .group_by("consumer_group", "holder", "session")
        .agg(
            pl.col("ts").min().alias("from_ts"),
            pl.col("ts").max().alias("to_ts"),
            place.unique().sort().implode().list.head(QUEUES_NAMED).list.join(", ").alias("places"),
            place.n_unique().cast(pl.Int64).alias("queues"),
            pl.col("client_id").n_unique().cast(pl.Int64).alias("clients"),
            pl.col("client_id").unique().sort().head(CLIENTS_NAMED).implode().list.join(", ").alias("named"),
            *(one_or_none(name) for name in ("topic", "broker_name", "queue_id", "client_id")),
            evidence("gold.queue_lock", *KEY),
        )
    )
    more = pl.when(pl.col("queues") > QUEUES_NAMED).then(pl.lit(", ..."))
    has = pl.format(": client {} had ", "holder") + pl.when(pl.col("queues") == 1).then(pl.lit("the lock.")).otherwise(
        pl.lit("the locks.")
    )
    summary = pl.concat_str(
        pl.format("Group {}: ", "consumer_group"),
        counted("clients", "client"),
        pl.format(" ({}) could not lock ", "named"),
        counted("queues", "queue"),
        pl.format(" ({}", "places"),
        more.fill_null(""),
        pl.lit(") for "),
        whole_seconds("from_ts", "to_ts"),
        has.fill_null("; the client that had them was not recorded."),
    )
    return finding(found, LOCK_BLOCKED, cluster, severity="warning", summary=summary)
