"""Groups that rebalance again and again."""

from __future__ import annotations

import polars as pl

from mqreplay.decode.recording.advice import Need
from mqreplay.evidence.intervals import with_session
from mqreplay.findings.finding_evidence import FindingEvidence
from mqreplay.findings.kind import Cause, FindingKind
from mqreplay.findings.limits import Limits
from mqreplay.findings.shape import evidence, finding
from mqreplay.words.keys import GROUP

HOUR_S = 3_600  # seconds


def find(evidence: FindingEvidence, limits: Limits) -> pl.DataFrame:
    """Return the groups that rebalanced again and again."""
    return storms(evidence.rebalance_rounds, evidence.cluster, limits.storm_rebalances)


REBALANCE_STORM = FindingKind(
    name="rebalance_storm",
    find=find,
    confidence=0.9,
    needs=(Need("heartbeats", or_polled=("consumer_lists",)),),
    thresholds=("findings.storm_rebalances",),
    causes=(Cause("duplicate_client_id", same=(GROUP,), after_s=3600),),
    ends_after=None,
)


def storms(rounds: pl.DataFrame, cluster: str, storm_rebalances: int) -> pl.DataFrame:
    """Return REBALANCE_STORM. ``rounds`` is the frame of `rebalance_round`.

    Rounds of a group that are an hour apart or less are one finding, if one of them is a storm.
    """
    together = with_session(rounds, [GROUP], "from_ts", "to_ts", HOUR_S)
    total = {name: pl.col(name).sum() for name in ("joins", "leaves", "moved", "duplicates")}
    found = (
        together.group_by(GROUP, "session")
        .agg(
            pl.col("from_ts").min().alias("from_ts"),
            pl.col("to_ts").max().alias("to_ts"),
            pl.len().cast(pl.Int64).alias("rounds"),
            pl.col("cycles").max(),
            *(value.alias(name) for name, value in total.items()),
            (pl.col("idle_s").sum().round()).cast(pl.Int64).alias("idle_s"),
            pl.col("idle_s").is_not_null().any().alias("has_idle"),
            pl.col("moved").is_not_null().any().alias("has_moves"),
            evidence("gold.rebalance_round", GROUP, "to_ts"),
        )
        .filter(pl.col("cycles") >= storm_rebalances, pl.max_horizontal("rounds", "joins") >= storm_rebalances)
    )
    return finding(found, REBALANCE_STORM, cluster, severity="warning")
