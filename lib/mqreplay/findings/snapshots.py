"""Snapshot files that were not whole when they were copied."""

from __future__ import annotations

import polars as pl

from mqreplay.findings.finding_evidence import FindingEvidence
from mqreplay.findings.kind import FindingKind
from mqreplay.findings.limits import Limits
from mqreplay.findings.shape import INSTANT, counted, evidence, finding


def find(evidence: FindingEvidence, _limits: Limits) -> pl.DataFrame:
    """Return the brokers and clients with snapshot files that are not whole."""
    return snapshot_findings(evidence.refused_snapshots, evidence.cluster)


TORN_SNAPSHOT = FindingKind(
    name="torn_snapshot",
    find=find,
    meaning="A file of a broker was copied while the broker wrote it, so the copy is empty or cut short, or it"
    " was saved in another encoding (utf_16), which brokers cannot read. mqreplay ignores the copy and uses the ones"
    " before and after it.",
    rule="A copied file could not be parsed as a whole. It is in bronze.quarantine.",
    follows="ConfigManager#persist",
    advice="Copy the .bak file along with each file, or record with `mqreplay record`, which copies again until a file"
    ' is whole. `mqreplay sql "SELECT path, code, detail_key FROM bronze.quarantine"` lists the files.',
    confidence=0.9,
    example="1 snapshot file of broker-a-0 was not whole and was ignored (consumerOffset.json: torn).",
)
PATH = r"^snapshots/(.*)/([0-9]{12,14})/([^/]+)$"  # source, epoch milliseconds from 1970 on, file name
BROKER = r"^(.*)-([0-9]+)$"  # name, id


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
        _listed("code").alias("codes"),
        _listed("file_name").alias("names"),
        evidence("bronze.quarantine", "path"),
    )
    source = pl.col("source")
    of_client = source.str.starts_with("client-") & source.str.contains("@", literal=True)
    placed = merged.with_columns(
        broker_name=pl.when(~of_client).then(source.str.extract(BROKER, 1).fill_null("")),
        broker_id=pl.when(~of_client).then(source.str.extract(BROKER, 2).cast(pl.Int64, strict=False)),
        client_id=pl.when(of_client).then(source.str.strip_prefix("client-")),
    )
    was = pl.when(pl.col("files") == 1).then(pl.lit("was")).otherwise(pl.lit("were"))
    summary = pl.format(
        "{} of {} {} not whole and {} ignored ({}: {}).",
        counted("files", "snapshot file"),
        "source",
        was,
        was,
        "names",
        "codes",
    )
    return finding(placed, TORN_SNAPSHOT, cluster, severity="info", summary=summary)


def _listed(name: str) -> pl.Expr:
    """Return a group's values, each once, in order, as one text."""
    return pl.col(name).unique().sort().implode().list.join(", ")
