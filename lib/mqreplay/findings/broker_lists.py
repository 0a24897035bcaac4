"""Name servers that do not answer, and what they list: brokers that none of them lists, other masters and addresses."""

from __future__ import annotations

import polars as pl

from mqreplay.evidence.brokers.broker_outages import BROKER
from mqreplay.evidence_advice import Need
from mqreplay.findings.finding_evidence import FindingEvidence
from mqreplay.findings.kind import Cause, FindingKind
from mqreplay.findings.limits import Limits
from mqreplay.findings.shape import (
    counted,
    evidence,
    evidence_rows,
    finding,
    record_key,
    seconds,
    whole_seconds,
)


def find_unlisted(evidence: FindingEvidence, _limits: Limits) -> pl.DataFrame:
    """Return the brokers that answer and that no name server lists."""
    return unlisted_findings(evidence.unlisted, evidence.cluster)


def find_new_masters(evidence: FindingEvidence, _limits: Limits) -> pl.DataFrame:
    """Return the broker names whose master is another one than before, or at another address."""
    return master_findings(evidence.master_changes, evidence.cluster)


def find_silent_name_servers(evidence: FindingEvidence, limits: Limits) -> pl.DataFrame:
    """Return the name servers that did not answer."""
    return name_server_findings(evidence.name_server_outages, evidence.cluster, limits.down_s)


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
    confidence=0.9,
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
    " new one had not copied are older. A controller elects as soon as the channel of the old master closes, also"
    " before its heartbeats expire; a jRaft controller of 5.2.0 to 5.3.3 elects in no other case"
    " (apache/rocketmq#9717). gold.failover_step says whether a heartbeat had expired.",
    rule="The name servers list broker id 0 of a broker name at another address than before, and it is not the same"
    " broker that moved (broker_moved).",
    follows="ReplicasInfoManager#electMaster, ReplicasManager#changeToMaster",
    advice="Find out why the old master went: its broker.log, and the controller's log for `elect`. Look at the state:"
    " `mqadmin getSyncStateSet -a CONTROLLER_ADDR -b BROKER_NAME`. Make consumers idempotent by message key.",
    confidence=0.9,
    needs=(Need("broker_runtime"),),
    thresholds=("findings.same_cause_gap_s",),
    example="The master of broker-a changed from 10.0.0.1:10911 to 10.0.0.2:10911 within 10 s; by the last polls the"
    " new one had all of its log.",
)

BROKER_MOVED = FindingKind(
    name="broker_moved",
    find=find_new_masters,
    meaning="A master was started again at another address, with its store. Clients go on asking the old address until"
    " they get their routes again, after 30 s at most. Firewalls and commands such as `mqadmin -b` that name the"
    " address still have the old one.",
    rule="The name servers list broker id 0 of a broker name at an address that no broker of this name had before; the"
    " old address answers no more, and the commit log goes on. If its end is not known, the host is the same.",
    follows="BrokerController#registerBrokerAll, MQClientInstance#startScheduledTask",
    advice="If nobody meant it: compare listenPort and brokerIP1 in the broker's configuration with before:"
    " `mqadmin getBrokerConfig -b BROKER_ADDR -n NAMESRV`. Correct what names the old address: slaves, firewalls,"
    " monitoring.",
    confidence=0.9,
    needs=(Need("broker_runtime"),),
    thresholds=("findings.same_cause_gap_s",),
    example="The master of broker-a moved from 10.0.0.1:10911 to 10.0.0.1:10951 within 10 s.",
    causes=(Cause("broker_down", same=("broker_name", "broker_id"), after_s=60),),
)
NAME_SERVER_DOWN = FindingKind(
    name="name_server_down",
    find=find_silent_name_servers,
    meaning="A name server did not answer. Clients and brokers that know others use these; a client that knows it alone"
    " gets no routes and cannot start, and keeps the brokers that it has. Brokers do not deregister there: what it"
    " lists when it comes back can be old for 2 minutes.",
    rule="At two polls or more in a row the recorder got an error instead of the name server's list of brokers, for"
    " down_s seconds or longer. It is critical if no other name server answered meanwhile.",
    follows="NettyRemotingClient#getAndCreateNameserverChannel",
    advice="Look at the process and its host, and read namesrv.log. Start it again, and see that it lists all brokers:"
    " `mqadmin clusterList -n NAMESRV`. Give all clients and brokers all name servers (namesrvAddr).",
    confidence=0.9,
    needs=(Need("broker_runtime"),),
    thresholds=("findings.down_s",),
    example="Name server 10.0.0.1:9876 did not answer for 95 s; 1 other name server answered.",
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
    """Return MASTER_CHANGED and BROKER_MOVED, of listed_brokers.py's master_changes."""
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

    def what(verb: str) -> pl.Expr:
        place = pl.format("The master of {} {} from {} to {}", "broker_name", pl.lit(verb), "old_addr", "new_addr")
        return pl.format("{} within {}", place, whole_seconds("from_ts", "to_ts"))

    other, moved = rows.filter(~pl.col("moved")), rows.filter("moved")
    changed = pl.format("{}; {}.", what("changed"), lost)
    return pl.concat(
        [
            finding(other, MASTER_CHANGED, cluster, severity="warning", summary=changed),
            finding(moved, BROKER_MOVED, cluster, severity="warning", summary=pl.format("{}.", what("moved"))),
        ]
    )


def name_server_findings(outages: pl.DataFrame, cluster: str, down_s: int) -> pl.DataFrame:
    """Return NAME_SERVER_DOWN, of listed_brokers.py's name_server_outages of ``down_s`` seconds or more."""
    failed_twice = pl.col("failed_ts") > pl.col("from_ts")
    rows = outages.filter(failed_twice & (seconds("from_ts", "to_ts") >= down_s)).with_columns(
        evidence_rows("silver.cluster_info", pl.col("record_ids").list.eval(record_key(pl.element())))
    )
    summary = pl.concat_str(
        pl.format("Name server {} did not answer for ", "namesrv_addr"),
        whole_seconds("from_ts", "to_ts"),
        pl.when(pl.col("others") == 0)
        .then(pl.lit("; no other name server answered"))
        .otherwise(pl.format("; {} answered", counted("others", "other name server"))),
        pl.when("ends").then(pl.lit(".")).otherwise(pl.lit(". It did not answer the last poll.")),
    )
    severity = pl.when(pl.col("others") == 0).then(pl.lit("critical")).otherwise(pl.lit("warning"))
    return finding(rows, NAME_SERVER_DOWN, cluster, severity=severity, summary=summary)


def long_unlisted(unlisted: pl.DataFrame, dispute_s: int) -> pl.DataFrame:
    """Return the brokers that answered unlisted for longer than ``dispute_s`` seconds."""
    return unlisted.filter(seconds("answered_ts", "to_ts") > dispute_s)
