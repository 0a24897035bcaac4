"""Name servers that do not answer, and what they list: brokers that none of them lists, other masters and addresses."""

from __future__ import annotations

import polars as pl

from mqreplay.decode.recording.advice import Need
from mqreplay.evidence.intervals import with_session
from mqreplay.findings.finding_evidence import FindingEvidence
from mqreplay.findings.kind import Cause, FindingKind
from mqreplay.findings.limits import Limits
from mqreplay.findings.shape import evidence, evidence_rows, finding, record_key, seconds
from mqreplay.words.keys import BROKER


def find_unlisted(evidence: FindingEvidence, _limits: Limits) -> pl.DataFrame:
    """Return the brokers that answer and that no name server lists, and the slaves of a master that none lists."""
    unlisted = [unlisted_findings(evidence.unlisted, evidence.cluster)]
    if evidence.masterless is not None:
        unlisted.append(masterless_findings(evidence.masterless, evidence.cluster))
    if evidence.lost is not None:
        unlisted.append(lost_findings(evidence.lost, evidence.cluster))
    return pl.concat(unlisted)


def find_new_masters(evidence: FindingEvidence, limits: Limits) -> pl.DataFrame:
    """Return the broker names whose master is another one than before, or at another address."""
    listed = master_findings(evidence.master_changes, evidence.cluster)
    if evidence.elections is None:
        return listed
    gap_s = limits.same_cause_gap_s
    unlisted = without_listed(evidence.elections, evidence.master_changes, gap_s)
    return pl.concat([listed, election_findings(unlisted, evidence.cluster, gap_s)])


def find_silent_name_servers(evidence: FindingEvidence, limits: Limits) -> pl.DataFrame:
    """Return the name servers that did not answer."""
    return name_server_findings(evidence.name_server_outages, evidence.cluster, limits.down_s)


BROKER_UNLISTED = FindingKind(
    name="broker_unlisted",
    find=find_unlisted,
    confidence=0.9,
    needs=(Need("broker_runtime"),),
    thresholds=("findings.dispute_s",),
    causes=(Cause("broker_down", same=("broker_name", "broker_id"), after_s=60),),
)
MASTER_CHANGED = FindingKind(
    name="master_changed",
    find=find_new_masters,
    confidence=0.9,
    needs=(Need("broker_runtime"),),
    thresholds=("findings.same_cause_gap_s",),
)

BROKER_MOVED = FindingKind(
    name="broker_moved",
    find=find_new_masters,
    confidence=0.9,
    needs=(Need("broker_runtime"),),
    thresholds=("findings.same_cause_gap_s",),
    causes=(Cause("broker_down", same=("broker_name", "broker_id"), after_s=60),),
)
NAME_SERVER_DOWN = FindingKind(
    name="name_server_down",
    find=find_silent_name_servers,
    confidence=0.9,
    needs=(Need("broker_runtime"),),
    thresholds=("findings.down_s",),
)


def unlisted_findings(unlisted: pl.DataFrame, cluster: str) -> pl.DataFrame:
    """Return BROKER_UNLISTED, of listed_brokers.py's frame of brokers unlisted for long."""
    rows = unlisted.group_by(*BROKER, "broker_addr", "from_ts", "to_ts").agg(evidence("silver.broker_runtime", *BROKER))
    is_master = pl.col("broker_id") == 0
    severity = pl.when(is_master).then(pl.lit("critical")).otherwise(pl.lit("warning"))
    return finding(rows, BROKER_UNLISTED, cluster, severity=severity)


def masterless_findings(masterless: pl.DataFrame, cluster: str) -> pl.DataFrame:
    """Return BROKER_UNLISTED of slaves without a master, of listed_brokers.py's masterless_names."""
    rows = masterless.with_columns(
        evidence_rows("silver.cluster_info", pl.col("record_ids").list.eval(record_key(pl.element())))
    )
    word = "masterless"
    return finding(rows, BROKER_UNLISTED, cluster, severity="warning", form=word, advice_form=word)


def lost_findings(lost: pl.DataFrame, cluster: str) -> pl.DataFrame:
    """Return BROKER_UNLISTED of brokers that a name server's log lost, of listed_brokers.py's lost_brokers."""
    by = [name for name in lost.columns if name != "record_id"]
    rows = lost.group_by(by).agg(evidence("silver.broker_runtime", "record_id"))
    return finding(rows, BROKER_UNLISTED, cluster, severity="warning", form="lost", advice_form="lost")


def master_findings(changes: pl.DataFrame, cluster: str) -> pl.DataFrame:
    """Return MASTER_CHANGED and BROKER_MOVED, of listed_brokers.py's master_changes."""
    by = [name for name in changes.columns if name != "record_id"]
    rows = changes.group_by(by).agg(evidence("silver.cluster_info", "record_id"))
    rows = rows.with_columns(pl.lit(0, pl.Int64).alias("broker_id"))
    other, moved = rows.filter(~pl.col("moved")), rows.filter("moved")
    return pl.concat(
        [
            finding(other, MASTER_CHANGED, cluster, severity="warning"),
            finding(moved, BROKER_MOVED, cluster, severity="warning"),
        ]
    )


def without_listed(elections: pl.DataFrame, changes: pl.DataFrame, gap_s: int) -> pl.DataFrame:
    """Return the elections that no list of a name server shows too, within ``gap_s`` seconds."""
    gap = pl.duration(seconds=gap_s)
    listed = changes.select("broker_name", pl.col("from_ts").alias("since"), pl.col("to_ts").alias("until"))
    near = elections.join(listed, "broker_name").filter(
        (pl.col("to_ts") >= pl.col("since") - gap) & (pl.col("from_ts") <= pl.col("until") + gap)
    )
    return elections.join(near, ["broker_name", "from_ts"], how="anti")


def election_findings(elections: pl.DataFrame, cluster: str, gap_s: int) -> pl.DataFrame:
    """Return MASTER_CHANGED of elections.py's frame; those at most ``gap_s`` seconds apart are one finding."""
    by = ["broker_name", "session"]
    ends = (pl.col(f"old_{name}").first() for name in ("id", "addr"))
    starts = (pl.col(f"new_{name}").last() for name in ("id", "addr"))
    rows = (
        with_session(elections, ["broker_name"], "from_ts", "to_ts", gap_s)
        .sort("from_ts")
        .group_by(by, maintain_order=True)
        .agg(
            *(pl.col("from_ts").min(), pl.col("to_ts").max(), *ends, *starts),
            *(pl.col("why").drop_nulls().first(), pl.col("is_elected").last(), pl.col("gained", "left").sum()),
            pl.col("master_epoch").last(),
            pl.len().alias("times"),
            pl.col("record_ids").explode().sort().implode(),
        )
        .with_columns(
            pl.lit(0, pl.Int64).alias("broker_id"),
            (pl.col("times") > 1).alias("often"),
            evidence_rows("silver.broker_event", pl.col("record_ids").list.eval(record_key(pl.element()))),
        )
    )
    elected, leaderless = rows.filter("is_elected"), rows.filter(~pl.col("is_elected"))
    return pl.concat(
        [
            finding(elected, MASTER_CHANGED, cluster, severity="warning", form="elected"),
            finding(leaderless, MASTER_CHANGED, cluster, severity="critical", form="not_elected"),
        ]
    )


def name_server_findings(outages: pl.DataFrame, cluster: str, down_s: int) -> pl.DataFrame:
    """Return NAME_SERVER_DOWN, of listed_brokers.py's name_server_outages of ``down_s`` seconds or more."""
    failed_twice = pl.col("failed_ts") > pl.col("from_ts")
    rows = outages.filter(failed_twice & (seconds("from_ts", "to_ts") >= down_s)).with_columns(
        evidence_rows("silver.cluster_info", pl.col("record_ids").list.eval(record_key(pl.element())))
    )
    severity = pl.when(pl.col("others") == 0).then(pl.lit("critical")).otherwise(pl.lit("warning"))
    return finding(rows, NAME_SERVER_DOWN, cluster, severity=severity)


def long_unlisted(unlisted: pl.DataFrame, dispute_s: int) -> pl.DataFrame:
    """Return the brokers that answered unlisted for longer than ``dispute_s`` seconds."""
    return unlisted.filter(seconds("answered_ts", "to_ts") > dispute_s)
