"""Brokers that take no message because a disk is full."""

from __future__ import annotations

import polars as pl

from mqreplay.evidence_advice import Need
from mqreplay.findings.finding_evidence import FindingEvidence
from mqreplay.findings.kind import FindingKind
from mqreplay.findings.limits import Limits
from mqreplay.findings.shape import evidence_rows, finding, record_key, whole_seconds


def find(evidence: FindingEvidence, _limits: Limits) -> pl.DataFrame:
    """Return the brokers with a full disk."""
    return full_disk_findings(evidence.full_disks, evidence.cluster)


DISK_FULL = FindingKind(
    name="disk_full",
    find=find,
    meaning="A disk of a broker is so full that the broker marks it as full: it refuses all messages of producers"
    " (code 14, service not available), and deletes the oldest files of its commit log at once, consumed or not.",
    rule="At a poll, commitLogDiskRatio or consumeQueueDiskRatio was above 0.90 (diskSpaceWarningLevelRatio). It lasts"
    " until a poll at which none is above 0.85 (diskSpaceCleanForciblyRatio): only then does the broker remove the"
    " mark. A broker of 5.x may have lower limits, which count where its settings are recorded; as system properties,"
    " and in 4.x, the recorder does not see them.",
    follows="DefaultMessageStore.CleanCommitLogService#isSpaceToDelete, RunningFlags#isWriteable",
    advice="Make room on the disk of storePathRootDir: remove files of others, or enlarge it. Then see that"
    " commitLogDiskRatio falls to 0.85 or less: `mqadmin brokerStatus -b BROKER_ADDR -n NAMESRV`. To keep fewer days,"
    " lower fileReservedTime (hours): `mqadmin updateBrokerConfig -b BROKER_ADDR -k fileReservedTime -v HOURS -n"
    " NAMESRV`. Check whether slow groups lost messages that the broker deleted.",
    confidence=0.9,
    needs=(Need("broker_runtime"),),
    example="A disk of the master of broker-a was full for 95 s, up to 95 % used: the broker takes no message above"
    " 90 %.",
)


def full_disk_findings(full_disks: pl.DataFrame, cluster: str) -> pl.DataFrame:
    """Return DISK_FULL, of the frame of full_disks.py."""
    keys = pl.col("record_ids").list.eval(record_key(pl.element()))
    rows = full_disks.with_columns(evidence_rows("silver.broker_runtime", keys))
    used = (pl.col("ratio") * 100).round().cast(pl.Int64)
    limit = (pl.col("warning_ratio") * 100).round().cast(pl.Int64)
    is_master = pl.col("broker_id") == 0
    summary = pl.concat_str(
        pl.lit("A disk of "),
        pl.when(is_master).then(pl.lit("the master")).otherwise(pl.format("slave {}", "broker_id")),
        pl.format(" of {} was full for ", "broker_name"),
        whole_seconds("from_ts", "to_ts"),
        pl.format(", up to {} % used: the broker takes no message above {} %", used, limit),
        pl.when("ends").then(pl.lit(".")).otherwise(pl.lit(". The last poll found it full.")),
    )
    severity = pl.when(is_master).then(pl.lit("critical")).otherwise(pl.lit("warning"))
    return finding(rows, DISK_FULL, cluster, severity=severity, summary=summary)
