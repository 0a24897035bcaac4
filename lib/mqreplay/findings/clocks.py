"""Clients whose clock is off."""

from __future__ import annotations

import polars as pl

from mqreplay.decode.recording.advice import Need
from mqreplay.evidence.intervals import INSTANT
from mqreplay.findings.finding_evidence import FindingEvidence
from mqreplay.findings.kind import FindingKind
from mqreplay.findings.limits import Limits
from mqreplay.findings.shape import evidence, finding


def find(evidence: FindingEvidence, _limits: Limits) -> pl.DataFrame:
    """Return the clients whose clock is wrong."""
    return clock_findings(evidence.clocks, evidence.activity, evidence.cluster)


CLOCK_SKEW = FindingKind(
    name="clock_skew",
    find=find,
    confidence=0.9,
    needs=(Need("consumer_offset"),),
    thresholds=("findings.clock_skew_s",),
)


def activity_of_shard(clocks: pl.DataFrame, pull: pl.DataFrame, offset_commit: pl.DataFrame) -> pl.DataFrame:
    """Return client_id, day, first_ts, last_ts: when clients of ``clocks`` pulled or committed, by day.

    ``pull`` and ``offset_commit`` are by the recorder's clock.
    """
    instants = [pull.select("client_id", ts="request_ts"), offset_commit.select("client_id", "ts")]
    acted = pl.concat([rows.join(clocks, "client_id", how="semi") for rows in instants])
    return acted.group_by("client_id", pl.col("ts").dt.date().alias("day")).agg(
        pl.col("ts").min().alias("first_ts"), pl.col("ts").max().alias("last_ts")
    )


def clock_findings(clocks: pl.DataFrame, activity: pl.DataFrame, cluster: str) -> pl.DataFrame:
    """Return CLOCK_SKEW, one for each day and time span in which a client's clock was off.

    ``clocks`` is evidence/client_clocks.py's frame, ``activity`` the rows of `activity_of_shard` of all shards.
    """
    days = activity.group_by("client_id", "day").agg(pl.col("first_ts").min(), pl.col("last_ts").max())
    shown_from, shown_until = (
        pl.from_epoch(pl.col(name), "ms").cast(INSTANT) for name in ("shown_from_ms", "shown_until_ms")
    )
    rows = (
        clocks.filter(pl.col("skew_ms") != 0)
        .join(days, "client_id")
        .with_columns(
            from_ts=pl.max_horizontal("first_ts", shown_from), to_ts=pl.min_horizontal("last_ts", shown_until)
        )
        .filter(pl.col("from_ts") <= pl.col("to_ts"))
        .group_by("client_id", "skew_ms", "shown_from_ms", "shown_until_ms", "from_ts", "to_ts")
        .agg(evidence("silver.offset_commit", "client_id"))
    )
    has_jumped = pl.col("shown_from_ms").is_not_null() | pl.col("shown_until_ms").is_not_null()
    valued = rows.with_columns(
        has_jumped.alias("has_jumped"),
        ((pl.col("skew_ms").abs() + 500) // 1000).alias("skew_s"),
        (pl.col("skew_ms") > 0).alias("is_ahead"),
    )
    return finding(valued, CLOCK_SKEW, cluster, severity="warning")
