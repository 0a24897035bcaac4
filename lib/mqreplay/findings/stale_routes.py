"""Name servers that answer with a route that the brokers no longer have."""

from __future__ import annotations

from typing import Any

import polars as pl

from mqreplay.decisions.listed_route import WIPED
from mqreplay.decode.recording.advice import Need
from mqreplay.evidence.intervals import with_session
from mqreplay.findings.finding_evidence import FindingEvidence
from mqreplay.findings.kind import FindingKind
from mqreplay.findings.limits import Limits
from mqreplay.findings.shape import evidence, finding, one_or_none


def find(evidence: FindingEvidence, limits: Limits) -> pl.DataFrame:
    """Return the name servers with an old route."""
    return stale_routes(evidence.stale_routes, evidence.cluster, limits.same_cause_gap_s)


STALE_ROUTE = FindingKind(
    name="stale_route",
    find=find,
    confidence=0.9,
    needs=(Need("routes"), Need("topics")),
    thresholds=("findings.same_cause_gap_s",),
)
BY = ("namesrv_addr", "broker_name", "reason")


def stale_routes(differing: pl.DataFrame, cluster: str, gap_s: int) -> pl.DataFrame:
    """Return STALE_ROUTE, of the rows of gold.listed_route that differ: one a name server, broker name and reason."""
    each = differing.with_columns(_of_broker("listed"), _of_broker("expected"))
    rows = (
        with_session(each, BY, "from_ts", "to_ts", gap_s)
        .group_by(*BY, "session")
        .agg(
            pl.col("from_ts").min(),
            pl.col("to_ts").max(),
            pl.col("topic").n_unique().alias("topics"),
            (pl.col("expected_writable") & ~pl.col("writable")).any().alias("closed"),
            pl.col("topic").min().alias("first_topic"),
            one_or_none("topic"),
            pl.col("listed", "expected").sort_by("topic", "from_ts").last(),
            evidence("silver.route", "record_id"),
        )
    )
    valued = rows.with_columns(pl.when(pl.col("topics") > 1).then("topics").alias("topics"), due="expected")
    is_wiped = pl.col("reason") == WIPED
    return finding(
        valued,
        STALE_ROUTE,
        cluster,
        severity=pl.when("closed")
        .then(pl.lit("critical"))
        .when(is_wiped)
        .then(pl.lit("info"))
        .otherwise(pl.lit("warning")),
        advice_form=pl.when(is_wiped).then(pl.lit("wiped")).otherwise(pl.lit("")),
    )


def _of_broker(name: str) -> pl.Expr:
    """Return the broker's own text of a list of texts by broker name; null if it has none."""
    texts = pl.struct(pl.col(name).alias("texts"), "broker_name")
    return texts.map_elements(_own_text, pl.String).alias(name)


def _own_text(row: dict[str, Any]) -> str | None:
    return next((text for text in row["texts"] or () if text.startswith(f"{row['broker_name']}: ")), None)
