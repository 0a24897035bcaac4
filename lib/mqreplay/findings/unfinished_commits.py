"""Offsets that clients commit past messages that they have not finished."""

from __future__ import annotations

import polars as pl

from mqreplay.decode.recording.advice import Need
from mqreplay.evidence.intervals import with_session
from mqreplay.findings.finding_evidence import FindingEvidence
from mqreplay.findings.kind import FindingKind
from mqreplay.findings.limits import Limits
from mqreplay.findings.shape import evidence, finding, one_or_none
from mqreplay.words.keys import GROUP_QUEUE

COMMITTED_TABLE = "gold.committed_offset"
COMMIT_KEY = (*GROUP_QUEUE, "client_id", "ts", "record_id")


def find(evidence: FindingEvidence, limits: Limits) -> pl.DataFrame:
    """Return the groups whose clients commit offsets past unfinished messages."""
    return unfinished_commits(evidence.passed_commits, evidence.cluster, limits.same_cause_gap_s)


UNFINISHED_COMMIT = FindingKind(
    name="unfinished_commit",
    find=find,
    confidence=0.9,
    needs=(Need("consume_log"), Need("offset_commits")),
    thresholds=("findings.same_cause_gap_s",),
)


def unfinished_commits(passed: pl.DataFrame, cluster: str, gap_s: int) -> pl.DataFrame:
    """Return UNFINISHED_COMMIT: one for each group, topic and client. ``passed`` are rows of gold.committed_offset."""
    differs = passed.filter(pl.col("judgement") == "differ")
    by = ["consumer_group", "topic", "client_id"]
    early_s = ((pl.col("finished_ts") - pl.col("ts")).dt.total_milliseconds() / 1000).max().round().cast(pl.Int64)
    message = pl.struct("broker_name", "queue_id", "unfinished_offset")
    found = (
        with_session(differs, by, "ts", "ts", gap_s)
        .group_by(*by, "session")
        .agg(
            pl.col("ts").min().alias("from_ts"),
            pl.max_horizontal(pl.col("ts").max(), pl.col("finished_ts").max()).alias("to_ts"),
            message.n_unique().cast(pl.Int64).alias("messages"),
            early_s.alias("early_s"),
            *(one_or_none(name) for name in ("broker_name", "queue_id")),
            evidence(COMMITTED_TABLE, *COMMIT_KEY),
        )
    )
    return finding(found, UNFINISHED_COMMIT, cluster, severity="warning")
