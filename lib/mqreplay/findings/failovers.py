"""Failovers that took longer than RocketMQ's intervals allow."""

from __future__ import annotations

import polars as pl

from mqreplay.decisions.failover_row import IN_ROUTE, LEFT_ROUTE, REMOVED
from mqreplay.decode.recording.advice import Need
from mqreplay.findings.finding_evidence import FindingEvidence
from mqreplay.findings.kind import Cause, FindingKind
from mqreplay.findings.limits import Limits
from mqreplay.findings.shape import evidence_row, finding, one_or_none, record_key

MOST_CLIENTS_NAMED = 5  # name servers or clients in a summary; more are counted
FAILOVER = ("broker_name", "broker_id", "outage_ts", "step")


def find(evidence: FindingEvidence, limits: Limits) -> pl.DataFrame:
    """Return the steps of failovers that were late."""
    return slow_failovers(evidence.failover_steps, evidence.cluster, limits.dispute_s)


SLOW_FAILOVER = FindingKind(
    name="slow_failover",
    find=find,
    confidence=0.9,
    needs=(Need("broker_runtime"), Need("routes")),
    thresholds=("findings.dispute_s",),
    causes=(Cause("broker_down", same=("broker_name", "broker_id"), after_s=180),),
)


def slow_failovers(steps: pl.DataFrame, cluster: str, late_s: int) -> pl.DataFrame:
    """Return SLOW_FAILOVER: one finding for each failover and step. ``steps`` are rows of gold.failover_step."""
    # A broker that is not listed again is broker_unlisted.
    late = steps.filter(
        (pl.col("judgement") == "differ")
        & pl.col("step").is_in([REMOVED, LEFT_ROUTE, IN_ROUTE])
        & (pl.col("before_ts") - pl.col("expected_to") > pl.duration(seconds=late_s))
    )
    who = pl.coalesce("namesrv_addr", "client_id", pl.lit("unknown"))
    found = late.group_by(FAILOVER).agg(
        pl.col("expected_to").min().alias("from_ts"),
        pl.col("before_ts").max().alias("to_ts"),
        who.sort().implode().alias("who"),
        one_or_none("client_id"),
        pl.col("evidence").explode().unique().sort().implode().alias("keys"),
    )
    item = pl.element().struct
    rows = found.with_columns(
        pl.col("keys")
        .list.eval(evidence_row(item.field("table_name"), record_key(item.field("record_id"))))
        .alias("evidence")
    )
    number = pl.col("who").list.len().cast(pl.Int64)
    after_s = (pl.col("to_ts") - pl.col("outage_ts")).dt.total_seconds()
    limit_s = (pl.col("from_ts") - pl.col("outage_ts")).dt.total_seconds()
    rows = rows.with_columns(
        pl.col("who").list.head(MOST_CLIENTS_NAMED),
        number=number,
        has_more=number > MOST_CLIENTS_NAMED,
        after_s=after_s,
        limit_s=limit_s,
        late_s=after_s - limit_s,
    )
    return finding(rows, SLOW_FAILOVER, cluster, severity="warning")
