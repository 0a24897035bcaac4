"""Brokers that take no message because a disk is full."""

from __future__ import annotations

import polars as pl

from mqreplay.decode.recording.advice import Need
from mqreplay.findings.finding_evidence import FindingEvidence
from mqreplay.findings.kind import FindingKind
from mqreplay.findings.limits import Limits
from mqreplay.findings.shape import evidence_rows, finding, record_key


def find(evidence: FindingEvidence, _limits: Limits) -> pl.DataFrame:
    """Return the brokers with a full disk."""
    return full_disk_findings(evidence.full_disks, evidence.cluster)


DISK_FULL = FindingKind(
    name="disk_full",
    find=find,
    confidence=0.9,
    needs=(Need("broker_runtime"),),
)


def full_disk_findings(full_disks: pl.DataFrame, cluster: str) -> pl.DataFrame:
    """Return DISK_FULL, of the frame of full_disks.py."""
    keys = pl.col("record_ids").list.eval(record_key(pl.element()))
    percent = {"used": pl.col("ratio"), "limit": pl.col("warning_ratio")}
    rows = full_disks.with_columns(
        evidence_rows("silver.broker_runtime", keys),
        **{name: (ratio * 100).round().cast(pl.Int64) for name, ratio in percent.items()},
    )
    is_master = pl.col("broker_id") == 0
    severity = pl.when(is_master).then(pl.lit("critical")).otherwise(pl.lit("warning"))
    return finding(rows, DISK_FULL, cluster, severity=severity)
