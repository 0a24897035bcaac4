"""What name servers list: a broker that answers and that none of them lists, a broker name with another master."""

from __future__ import annotations

import polars as pl

from mqreplay.evidence.brokers.broker_outages import BROKER
from mqreplay.evidence_advice import Need
from mqreplay.findings.finding_evidence import FindingEvidence
from mqreplay.findings.kind import Cause, FindingKind
from mqreplay.findings.limits import Limits
from mqreplay.findings.shape import counted, evidence, finding, seconds, whole_seconds


def find_unlisted(evidence: FindingEvidence, _limits: Limits) -> pl.DataFrame:
    """Return the brokers that answer and that no name server lists."""
    return unlisted_findings(evidence.unlisted, evidence.cluster)


def find_new_masters(evidence: FindingEvidence, _limits: Limits) -> pl.DataFrame:
    """Return the broker names with another master than before."""
    return master_findings(evidence.master_changes, evidence.cluster)


BROKER_UNLISTED = FindingKind(
    name="broker_unlisted",
    find=find_unlisted,
    meaning="A broker answers every request, and no name server lists it. Clients learn of brokers from name servers"
    " alone, so they have lost its queues: nobody reads what is left in them, and nobody writes to them.",
    rule="The recorder got answers from a broker at an address that the name servers had listed, and for longer than"
    " dispute_s seconds none of them listed it.",
    follows="RouteInfoManager#scanNotActiveBroker, BrokerController#registerBrokerAll",
    advice="Compare namesrvAddr in the broker's configuration with the name servers:"
    " `mqadmin getBrokerConfig -b BROKER_ADDR -n NAMESRV`. Read broker.log for `registerBroker` and namesrv.log for the"
    " address. A broker of a new version may wait for its partner before it registers (skipPreOnline).",
    confidence=1.0,
    needs=(Need("broker_runtime"),),
    thresholds=("findings.dispute_s",),
    example="The master of broker-b answered at 10.0.0.2:10911, and no name server listed it for 116 s.",
    causes=(Cause("broker_down", same=("broker_name", "broker_id"), after_s=60),),
)
MASTER_CHANGED = FindingKind(
    name="master_changed",
    find=find_new_masters,
    meaning="Another broker became the master of a broker name: a controller elected a replica, or an operator changed"
    " the roles. What the old master had and the new one did not is lost or comes back with it, and offsets that the"
    " new one had not copied are older.",
    rule="The name servers list broker id 0 of a broker name at another address than before.",
    follows="ReplicasInfoManager#electMaster, ReplicasManager#changeToMaster",
    advice="Find out why the old master went: its broker.log, and the controller's log for `elect`. Look at the state:"
    " `mqadmin getSyncStateSet -a CONTROLLER_ADDR -b BROKER_NAME`. Make consumers idempotent by message key.",
    confidence=1.0,
    needs=(Need("broker_runtime"),),
    thresholds=("findings.same_cause_gap_s",),
    example="The master of broker-a changed from 10.0.0.1:10911 to 10.0.0.2:10911 within 10 s; by the last polls the"
    " new one had all of its log.",
)


def unlisted_findings(unlisted: pl.DataFrame, cluster: str) -> pl.DataFrame:
    """Return BROKER_UNLISTED, of listed_brokers.py's frame of brokers unlisted for long."""
    rows = unlisted.group_by(*BROKER, "broker_addr", "from_ts", "to_ts").agg(evidence("silver.broker_runtime", *BROKER))
    is_master = pl.col("broker_id") == 0
    role = pl.when(is_master).then(pl.lit("The master of ")).otherwise(pl.format("Slave {} of ", "broker_id"))
    summary = pl.concat_str(
        role,
        pl.format("{} answered at {}, and no name server listed it for ", "broker_name", "broker_addr"),
        whole_seconds("from_ts", "to_ts"),
        pl.lit("."),
    )
    severity = pl.when(is_master).then(pl.lit("critical")).otherwise(pl.lit("warning"))
    return finding(rows, BROKER_UNLISTED, cluster, severity=severity, summary=summary)


def master_findings(changes: pl.DataFrame, cluster: str) -> pl.DataFrame:
    """Return MASTER_CHANGED, of listed_brokers.py's master_changes."""
    by = [name for name in changes.columns if name != "record_id"]
    rows = changes.group_by(by).agg(evidence("silver.cluster_info", "record_id"))
    rows = rows.with_columns(pl.lit(0, pl.Int64).alias("broker_id"))
    lost = (
        pl.when(pl.col("lacked").is_null())
        .then(pl.lit("how far the new one was behind is not known"))
        .when(pl.col("lacked") == 0)
        .then(pl.lit("by the last polls the new one had all of its log"))
        .otherwise(pl.format("by the last polls the new one lacked {} of its log", counted("lacked", "byte")))
    )
    summary = pl.concat_str(
        pl.format("The master of {} changed from {} to {} within ", "broker_name", "old_addr", "new_addr"),
        whole_seconds("from_ts", "to_ts"),
        pl.lit("; "),
        lost,
        pl.lit("."),
    )
    return finding(rows, MASTER_CHANGED, cluster, severity="warning", summary=summary)


def long_unlisted(unlisted: pl.DataFrame, dispute_s: int) -> pl.DataFrame:
    """Return the brokers that answered unlisted for longer than ``dispute_s`` seconds."""
    return unlisted.filter(seconds("answered_ts", "to_ts") > dispute_s)
