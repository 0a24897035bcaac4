"""Delay levels whose messages a broker does not deliver."""

from __future__ import annotations

import polars as pl

from mqreplay.core.delay_level import SCHEDULE_TOPIC
from mqreplay.decisions.delay_progress import PAST_END
from mqreplay.decode.recording.advice import Need
from mqreplay.findings.finding_evidence import FindingEvidence
from mqreplay.findings.kind import Cause, FindingKind
from mqreplay.findings.limits import Limits
from mqreplay.findings.shape import evidence, finding, none

LEVEL = ("broker_name", "broker_id", "delay_level")
LEAST_READINGS = 2


def find(evidence: FindingEvidence, _limits: Limits) -> pl.DataFrame:
    """Return the delay levels whose offset stayed behind what was due."""
    return pl.concat([stuck_levels(evidence.delays, evidence.cluster), lost_levels(evidence.delays, evidence.cluster)])


DELAY_OFFSET_STUCK = FindingKind(
    name="delay_offset_stuck",
    find=find,
    confidence=0.9,
    needs=(Need("topic_stats"),),
    thresholds=("findings.stuck_s",),
    causes=(Cause("disk_full", same=("broker_name",), after_s=120),),
)


def stuck_levels(delays: pl.DataFrame, cluster: str) -> pl.DataFrame:
    """Return DELAY_OFFSET_STUCK for each level and time. ``delays`` has gold.delay_progress and readings that agree."""
    known = delays.filter(~PAST_END & pl.col("judgement").is_in(["agree", "differ"])).sort(*LEVEL, "ts")
    differs, offset = pl.col("judgement") == "differ", pl.col("delivered_offset")
    # A reading that agrees, or an offset that moved, ends a run.
    begins = differs & ((~differs).shift(1).fill_null(value=True) | offset.ne_missing(offset.shift(1))).over(LEVEL)
    runs = (
        known.with_columns(begins.cum_sum().over(LEVEL).alias("run"))
        .filter(pl.col("judgement") == "differ")
        .group_by(*LEVEL, "run")
        .agg(
            pl.len().alias("readings"),
            pl.col("ts").min().alias("from_ts"),
            pl.col("ts").max().alias("to_ts"),
            (pl.col("due_offset") - offset).last().alias("overdue"),
            (pl.col("delay_ms").last() // 1000).alias("delay_s"),
            pl.col("queue_id").first(),
            pl.col("is_stated").all(),
            evidence("gold.delay_progress", "record_id", "broker_name", "queue_id"),
        )
        # The broker prints offset and end together: one answer is enough.
        .filter((pl.col("readings") >= LEAST_READINGS) | pl.col("is_stated"))
    )
    if runs.is_empty():
        return none()
    named = runs.with_columns(pl.lit(SCHEDULE_TOPIC).alias("topic"))
    return finding(named, DELAY_OFFSET_STUCK, cluster, severity="warning")


def lost_levels(delays: pl.DataFrame, cluster: str) -> pl.DataFrame:
    """Return DELAY_OFFSET_STUCK for each level whose offset is after the end of its queue."""
    after_end = delays.filter(PAST_END).sort(*LEVEL, "ts")
    if after_end.is_empty():
        return none()
    rows = after_end.group_by(*LEVEL, "delivered_offset", maintain_order=True).agg(
        pl.col("ts").min().alias("from_ts"),
        pl.col("ts").max().alias("to_ts"),
        pl.col("delayed_end").last(),
        pl.col("queue_id").first(),
        evidence("gold.delay_progress", "record_id", "broker_name", "queue_id"),
    )
    named = rows.with_columns(pl.lit(SCHEDULE_TOPIC).alias("topic"))
    return finding(named, DELAY_OFFSET_STUCK, cluster, severity="warning", form="past_end")
