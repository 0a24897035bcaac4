"""Snapshot files that were not whole when they were copied."""

from __future__ import annotations

import polars as pl

from mqreplay.evidence.intervals import INSTANT
from mqreplay.findings.finding_evidence import FindingEvidence
from mqreplay.findings.kind import FindingKind
from mqreplay.findings.limits import Limits
from mqreplay.findings.shape import evidence, finding


def find(evidence: FindingEvidence, _limits: Limits) -> pl.DataFrame:
    """Return the brokers and clients with snapshot files that are not whole."""
    return snapshot_findings(evidence.refused_snapshots, evidence.cluster)


TORN_SNAPSHOT = FindingKind(
    name="torn_snapshot",
    find=find,
    confidence=0.9,
)
PATH = r"^snapshots/(.*)/([0-9]{12,14})/([^/]+)$"  # source, epoch milliseconds from 1970 on, file name
BROKER_FOLDER = r"^(.*)-([0-9]+)$"  # name, id


def refused_snapshots(quarantine: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of bronze.quarantine that are whole snapshot files which could not be read.

    With ``source`` (folder of a broker or client), ``ts`` (when it was copied) and ``file_name``, as in the path. A
    file that came late is whole.
    """
    whole_file = (pl.col("line_number") == 0) & (pl.col("detail_key") == "") & (pl.col("code") != "late")
    copied = pl.from_epoch(pl.col("path").str.extract(PATH, 2).cast(pl.Int64), "ms").cast(INSTANT)
    return quarantine.filter(whole_file & pl.col("path").str.contains(PATH)).with_columns(
        source=pl.col("path").str.extract(PATH, 1), ts=copied, file_name=pl.col("path").str.extract(PATH, 3)
    )


def snapshot_findings(refused: pl.DataFrame, cluster: str) -> pl.DataFrame:
    """Return TORN_SNAPSHOT, one for each broker or client, of rows of `refused_snapshots`."""
    merged = refused.group_by("source").agg(
        pl.col("ts").min().alias("from_ts"),
        pl.col("ts").max().alias("to_ts"),
        pl.len().alias("files"),
        pl.col("code").unique().sort().implode().alias("codes"),
        pl.col("file_name").unique().sort().implode(),
        evidence("bronze.quarantine", "path"),
    )
    source = pl.col("source")
    of_client = source.str.starts_with("client-") & source.str.contains("@", literal=True)
    placed = merged.with_columns(
        source_name=source,
        broker_name=pl.when(~of_client).then(source.str.extract(BROKER_FOLDER, 1).fill_null("")),
        broker_id=pl.when(~of_client).then(source.str.extract(BROKER_FOLDER, 2).cast(pl.Int64, strict=False)),
        client_id=pl.when(of_client).then(source.str.strip_prefix("client-")),
    )
    return finding(placed, TORN_SNAPSHOT, cluster, severity="info")
