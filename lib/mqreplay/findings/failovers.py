"""Failovers that took longer than RocketMQ's intervals allow."""

from __future__ import annotations

import polars as pl

from mqreplay.decisions.failover_row import IN_ROUTE, LEFT_ROUTE, REMOVED
from mqreplay.evidence_advice import Need
from mqreplay.findings.finding_evidence import FindingEvidence
from mqreplay.findings.kind import Cause, FindingKind
from mqreplay.findings.limits import Limits
from mqreplay.findings.shape import counted, evidence_row, finding, one_or_none, record_key

NAMED = 5  # name servers or clients in a summary; more are counted
FAILOVER = ("broker_name", "broker_id", "outage_ts", "step")


def find(evidence: FindingEvidence, limits: Limits) -> pl.DataFrame:
    """Return the steps of failovers that were late."""
    return slow_failovers(evidence.failover_steps, evidence.cluster, limits.dispute_s)


SLOW_FAILOVER = FindingKind(
    name="slow_failover",
    find=find,
    meaning="After a broker stopped, or came back, a name server or a client kept the old state for longer than the"
    " intervals of RocketMQ allow. Meanwhile clients ask a broker that does not answer, or do not find one that does.",
    rule="A name server still listed the broker, or a client still had it in its routes, more than dispute_s seconds"
    " after the last instant that the rules allow: a name server removes a broker 120 s after its last registration, at"
    " its next scan; a client asks for its routes every 30 s. The same holds for a client that gets a broker back."
    " Other intervals count where the recording has them. If a step is late by the defaults, and the setting that could"
    " explain it is not recorded, there is no finding.",
    follows="RouteInfoManager#scanNotActiveBroker, MQClientInstance#startScheduledTask",
    advice="If a name server kept the broker: read namesrv.log for its address. A broker that hangs may still register:"
    " stop its process, so that clients go to its slave. If clients were late: compare pollNameServerInterval and the"
    " name servers (namesrvAddr) of these clients with the others', and look for a long pause of their JVM.",
    confidence=0.9,
    needs=(Need("broker_runtime"), Need("routes")),
    thresholds=("findings.dispute_s",),
    example="Name server 10.0.0.1:9876 still listed the master of broker-a 190 s after it had stopped answering; the"
    " limit is 130 s.",
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
    names = pl.col("who").list.head(NAMED).list.join(", ") + pl.when(number > NAMED).then(pl.lit(", ...")).otherwise(
        pl.lit("")
    )
    role = pl.when(pl.col("broker_id") == 0).then(pl.lit("the master")).otherwise(pl.format("slave {}", "broker_id"))
    broker = pl.format("{} of {}", role, "broker_name")
    after = (pl.col("to_ts") - pl.col("outage_ts")).dt.total_seconds()
    limit = (pl.col("from_ts") - pl.col("outage_ts")).dt.total_seconds()
    is_removal, is_loss = pl.col("step") == REMOVED, pl.col("step") == LEFT_ROUTE
    summary = (
        pl.when(is_removal)
        .then(pl.format("{} ({}) still listed {}", counted(number, "name server"), names, broker))
        .when(is_loss)
        .then(pl.format("{} ({}) still had {} in the route", counted(number, "client"), names, broker))
        .otherwise(pl.format("{} ({}) did not have {} in the route", counted(number, "client"), names, broker))
    )
    stopped = pl.format("{} {} s after it had stopped answering; the limit is {} s.", summary, after, limit)
    back = pl.format("{} {} s after it was due, when it was listed again.", summary, after - limit)
    summary = pl.when(pl.col("step") == IN_ROUTE).then(back).otherwise(stopped)
    return finding(rows, SLOW_FAILOVER, cluster, severity="warning", summary=summary)
