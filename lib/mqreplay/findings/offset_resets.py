"""Consumer offsets that somebody reset: brokers passed the reset on to clients, or the offsets themselves show it."""

from __future__ import annotations

import polars as pl

from mqreplay.findings.kind import FindingKind
from mqreplay.findings.offsets import BREAK_KEY, GROUP_TOPIC, group_text, queue_count
from mqreplay.findings.shape import counted, evidence, evidence_row, finding, one_or_none, record_key
from mqreplay.judge.time_spans import with_session

OFFSET_RESET = FindingKind(
    name="offset_reset",
    rule=(
        "A broker pushed RESET_CONSUMER_CLIENT_OFFSET to clients (4.9), or answered pulls with a moved offset (5.x)."
        " Where such requests are not recorded: several offsets of a group fell at once, on a broker that ran."
    ),
    follows="Broker2Client#resetOffset",
    advice="If nobody meant it, find who ran resetOffsetByTime; back means delivered again, ahead means skipped.",
    confidence=1.0,
)
CONCLUDED = ", concluded from the offsets that its brokers hold"
CONCLUDED_CONFIDENCE = 0.8


def reset_findings(
    resets: pl.DataFrame, continuity: pl.DataFrame, cluster: str, gap_s: int, reach_s: int
) -> pl.DataFrame:
    """Return OFFSET_RESET, one for each group, topic and reset; ``continuity`` shows how far the offsets moved.

    ``resets`` is offset_resets' frame. Pushes ``gap_s`` seconds apart or less are one reset; its effect
    shows within ``reach_s`` seconds.
    """
    row = evidence_row(pl.col("table_name"), record_key(pl.col("record_id")))
    sessions = with_session(resets, GROUP_TOPIC, "ts", "ts", gap_s)
    merged = sessions.group_by(*GROUP_TOPIC, "session").agg(
        pl.col("ts").min().alias("from_ts"),
        pl.col("ts").max().alias("to_ts"),
        queue_count().alias("queues"),
        row.unique().sort().implode().alias("evidence"),
    )
    step = pl.when(pl.col("kind") == "rewind").then(-pl.col("size")).otherwise("size")
    by_reset = continuity.filter(
        (pl.col("cause") == "reset") & (pl.col("broker_id") == 0), pl.col("size").is_not_null()
    ).select(*GROUP_TOPIC, pl.col("to_ts").alias("changed_ts"), step.alias("by"))
    after = pl.col("changed_ts").is_between("from_ts", pl.col("to_ts") + pl.duration(seconds=reach_s))
    largest = (
        merged.join(by_reset, GROUP_TOPIC)
        .filter(after)
        .group_by(*GROUP_TOPIC, "session")
        .agg(pl.col("by").sort_by(pl.col("by").abs(), -pl.col("by")).last())  # of two equal ones the one back
    )
    rows = merged.join(largest, [*GROUP_TOPIC, "session"], how="left")
    severity = pl.when(pl.col("by").is_not_null()).then(pl.lit("warning")).otherwise(pl.lit("info"))
    return finding(rows, OFFSET_RESET, cluster, severity=severity, summary=_summary())


def concluded_reset_findings(continuity: pl.DataFrame, resets: pl.DataFrame, cluster: str, gap_s: int) -> pl.DataFrame:
    """Return OFFSET_RESET of the groups and topics of which no reset was recorded, but offsets show one.

    ``continuity`` is gold.offset_continuity with the causes of judge/concluded_resets.py, ``resets`` offset_resets'
    frame. Changes ``gap_s`` seconds apart or less are one reset.
    """
    shown = continuity.filter((pl.col("cause") == "reset") & (pl.col("broker_id") == 0))
    alone = shown.join(resets.select(GROUP_TOPIC).unique(), GROUP_TOPIC, how="anti")
    step = pl.when(pl.col("kind") == "rewind").then(-pl.col("size")).otherwise("size").alias("by")
    sessions = with_session(alone.with_columns(step), GROUP_TOPIC, "from_ts", "to_ts", gap_s)
    rows = sessions.group_by(*GROUP_TOPIC, "session").agg(
        pl.col("from_ts").min(),
        pl.col("to_ts").max(),
        queue_count().alias("queues"),
        pl.col("by").sort_by(pl.col("by").abs(), -pl.col("by")).last(),
        one_or_none("broker_name"),
        evidence("gold.offset_continuity", *BREAK_KEY, "to_ts"),
    )
    summary = _summary("at least ", CONCLUDED)  # an offset that caught up between two polls shows nothing
    return finding(rows, OFFSET_RESET, cluster, severity="warning", summary=summary, confidence=CONCLUDED_CONFIDENCE)


def _summary(bound: str = "", source: str = "") -> pl.Expr:
    """Return the summary of a reset: its queues, and by how many messages (``by``) the offset moved that moved most.

    ``bound`` precedes the number of queues, ``source`` says what the finding is concluded from.
    """
    size = counted(pl.col("by").abs(), "message")
    effect = (
        pl.when(pl.col("by") < 0)
        .then(pl.lit(", back by up to ") + size)
        .when(pl.col("by") > 0)
        .then(pl.lit(", ahead by up to ") + size)
        .otherwise(pl.lit(""))
    )
    return pl.concat_str(
        group_text(), pl.lit(bound), counted("queues", "queue"), pl.lit(" reset"), effect, pl.lit(f"{source}.")
    )
