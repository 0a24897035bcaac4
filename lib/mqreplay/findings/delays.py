"""Delay levels whose messages a broker does not deliver."""

from __future__ import annotations

import polars as pl

from mqreplay.core.delay_level import SCHEDULE_TOPIC
from mqreplay.evidence_advice import Need
from mqreplay.findings.finding_evidence import FindingEvidence
from mqreplay.findings.kind import Cause, FindingKind
from mqreplay.findings.limits import Limits
from mqreplay.findings.shape import counted, evidence, finding, none, whole_seconds

LEVEL = ("broker_name", "broker_id", "delay_level")
LEAST_READINGS = 2


def find(evidence: FindingEvidence, _limits: Limits) -> pl.DataFrame:
    """Return the delay levels whose offset stayed behind what was due."""
    return stuck_levels(evidence.delays, evidence.cluster)


DELAY_OFFSET_STUCK = FindingKind(
    name="delay_offset_stuck",
    find=find,
    meaning="A broker does not deliver delayed messages of a level although their delay is over. Messages that were"
    " sent with this level, and messages that consumers sent back, reach nobody. They are kept in SCHEDULE_TOPIC_XXXX.",
    rule="At two readings or more, the offset of a level in a master's delayOffset.json was the same, and below the end"
    " that its queue had at a reading longer before than the delay and stuck_s seconds. A broker that had started less"
    " than stuck_s seconds before does not count.",
    follows="ScheduleMessageService.DeliverDelayedMessageTimerTask#executeOnTimeUp",
    advice="Read store.log and broker.log of the master for ScheduleMessageService: it tries the same message again if"
    " its topic takes no messages, or if its disk is full. Check that messageDelayLevel still has the level: a broker"
    " delivers nothing of a level that was removed. A restart of the broker starts the service anew.",
    confidence=0.9,
    needs=(Need("topic_stats"),),
    thresholds=("findings.stuck_s",),
    example="The master of broker-a delivered no messages of delay level 3 (10 s) for 240 s or longer: 412 messages are"
    " overdue.",
    causes=(Cause("disk_full", same=("broker_name",), after_s=120),),
)


def stuck_levels(delays: pl.DataFrame, cluster: str) -> pl.DataFrame:
    """Return DELAY_OFFSET_STUCK for each level and time. ``delays`` has gold.delay_progress and readings that agree."""
    known = delays.filter(pl.col("judgement").is_in(["agree", "differ"])).sort(*LEVEL, "ts")
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
            pl.col("delay_ms").last(),
            pl.col("queue_id").first(),
            evidence("gold.delay_progress", "record_id", "broker_name", "queue_id"),
        )
        .filter(pl.col("readings") >= LEAST_READINGS)
    )
    if runs.is_empty():
        return none()
    summary = pl.concat_str(
        pl.format("The master of {} delivered no messages of delay level {}", "broker_name", "delay_level"),
        pl.format(" ({} s) for ", pl.col("delay_ms") // 1000),
        whole_seconds("from_ts", "to_ts"),
        pl.format(" or longer: {} ", counted("overdue", "message")),
        pl.when(pl.col("overdue") == 1).then(pl.lit("is overdue.")).otherwise(pl.lit("are overdue.")),
    )
    named = runs.with_columns(pl.lit(SCHEDULE_TOPIC).alias("topic"))
    return finding(named, DELAY_OFFSET_STUCK, cluster, severity="warning", summary=summary)
