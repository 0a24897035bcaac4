"""Consumer offsets that somebody reset: brokers passed the reset on to clients, or the offsets themselves show it."""

from __future__ import annotations

import polars as pl

from mqreplay.findings.kind import FindingKind
from mqreplay.findings.offsets import GROUP_TOPIC, group_text, queue_count
from mqreplay.findings.shape import EVIDENCE_ROWS, counted, finding, instant_text, key_text, one_or_none
from mqreplay.judge.reset_effects import reset_rows, with_reset_session

OFFSET_RESET = FindingKind(
    name="offset_reset",
    meaning=(
        "Somebody set the offsets of a consumer group. Set back, the group consumes messages again; set ahead, it never"
        " consumes those in between."
    ),
    rule=(
        "A broker pushed RESET_CONSUMER_CLIENT_OFFSET to clients (4.9), or answered pulls with a moved offset (5.x)."
        " Without such a record: the saved offset of a queue changed although no client committed it, or several"
        " offsets of a group fell at once on a broker that ran, or one fell while no member held its queue."
    ),
    follows="AdminBrokerProcessor#resetOffset, Broker2Client#resetOffset, ConsumerOffsetManager#assignResetOffset",
    advice=(
        "If nobody meant it, find who ran resetOffsetByTime: search broker.log for '[reset-offset] reset offset started"
        " by', which names the address. To go back to before a reset ahead: `mqadmin resetOffsetByTime -g GROUP -t"
        " TOPIC -s TIME`. Queues and offsets: `mqreplay explain FINDING`."
    ),
    confidence=1.0,
    thresholds=("replay.reset_reach_s",),
    example=(
        "Group redirect on address-change: 4 queues reset, back by up to 62 messages (sorter-n/1: from 141 to 79), at"
        " most 240 messages delivered again."
    ),
)
CONCLUDED = ", concluded from the offsets that its brokers hold"
FROM_OUTSIDE = "; no client of the group committed that"
CONCLUDED_CONFIDENCE = 0.8


def reset_findings(
    resets: pl.DataFrame, continuity: pl.DataFrame, cluster: str, gap_s: int, reach_s: int
) -> pl.DataFrame:
    """Return OFFSET_RESET, one for each group, topic and reset.

    ``resets`` is offset_causes.offset_resets' frame, ``continuity`` gold.offset_continuity with the causes of
    judge/concluded_resets.py. Queues that are set ``gap_s`` seconds apart or less are of one reset; what clients commit
    shows within ``reach_s`` seconds. A reset that moved an offset is a warning, else it is info.
    """
    rows = with_reset_session(reset_rows(resets, continuity, reach_s), gap_s)
    by = [*GROUP_TOPIC, "session"]
    evidence_key = pl.when(pl.col("record_id").is_not_null()).then(pl.lit("record_id=") + pl.col("record_id"))
    break_key = pl.concat_str(
        key_text("broker_name"),
        pl.lit("broker_id=0"),
        key_text("topic", "consumer_group", "queue_id"),
        pl.lit("kind=") + pl.col("break_kind"),
        pl.lit("to_ts=") + instant_text("break_ts"),
        separator=" ",
    )
    row = pl.struct("table_name", pl.coalesce(evidence_key, break_key).alias("key"))
    merged = rows.group_by(by).agg(
        pl.col("set_ts").min().alias("from_ts"),
        pl.col("seen_ts").max().alias("to_ts"),
        queue_count().alias("queues"),
        pl.col("recorded").any(),
        pl.col("from_outside").all(),
        one_or_none("broker_name"),
        one_or_none("queue_id"),
        row.unique().sort().head(EVIDENCE_ROWS).implode().alias("evidence"),
    )
    found = merged.join(_effects(rows, by), by, how="left", nulls_equal=True)
    severity = pl.when(pl.col("largest").is_not_null()).then(pl.lit("warning")).otherwise(pl.lit("info"))
    return pl.concat(
        [
            finding(part, OFFSET_RESET, cluster, severity=severity, summary=_summary(), confidence=confidence)
            for part, confidence in (
                (found.filter("recorded"), OFFSET_RESET.confidence),
                (found.filter(~pl.col("recorded")), CONCLUDED_CONFIDENCE),
            )
        ]
    )


def _effects(rows: pl.DataFrame, by: list[str]) -> pl.DataFrame:
    """Return ``by``, back and ahead (most messages), again (in all), and the largest move as text with its direction.

    Several clients may be told of one queue: it counts once.
    """
    queue = ["broker_name", "queue_id"]
    moved = rows.filter(pl.col("moved").is_not_null())
    each = moved.sort(pl.col("moved").abs(), "set_ts", "old", descending=True).unique([*by, *queue], keep="first")
    place = pl.concat_str("broker_name", pl.col("queue_id").cast(pl.String), separator="/")
    example = pl.format("{}: from {} to {}", place, "old", "new")
    largest = pl.col("example").sort_by(pl.col("moved").abs(), -pl.col("moved"), "example").last()
    return (
        each.with_columns(example.alias("example"))
        .group_by(by)
        .agg(
            (-pl.col("moved").filter(pl.col("moved") < 0).min()).alias("back"),
            pl.col("moved").filter(pl.col("moved") > 0).max().alias("ahead"),
            pl.col("again").sum(),
            largest.alias("largest"),
        )
    )


def _summary() -> pl.Expr:
    """Return the summary of a reset: its queues, how far their offsets moved, and what shows it."""
    sizes = [pl.lit(f", {way} by up to ") + counted(way, "message") for way in ("back", "ahead")]
    # Without records of clients nothing bounds how far they were ahead of what they had committed.
    bounded = pl.col("recorded") | pl.col("from_outside")
    bound = pl.when(bounded).then(pl.lit("; at most ")).otherwise(pl.lit("; about "))
    again = bound + counted("again", "message") + pl.lit(" delivered again")
    source = pl.when("recorded").then(pl.lit("")).when("from_outside").then(pl.lit(FROM_OUTSIDE))
    return pl.concat_str(
        group_text(),
        # An offset that catches up between two polls shows nothing.
        pl.when(bounded).then(pl.lit("")).otherwise(pl.lit("at least ")),
        counted("queues", "queue"),
        pl.lit(" reset"),
        *[size.fill_null("") for size in sizes],
        (pl.lit(" (") + pl.col("largest") + ")").fill_null(""),
        pl.when(pl.col("again") > 0).then(again).otherwise(pl.lit("")),
        source.otherwise(pl.lit(CONCLUDED)),
        pl.lit("."),
    )
