"""Consumer offsets that somebody reset: brokers passed the reset on to clients, or the offsets themselves show it."""

from __future__ import annotations

import polars as pl

from mqreplay.evidence.offsets.reset_effects import reset_rows, with_reset_session
from mqreplay.findings.finding_evidence import FindingEvidence
from mqreplay.findings.kind import FindingKind
from mqreplay.findings.limits import Limits
from mqreplay.findings.offsets import ADDRESSES, queue_count
from mqreplay.findings.shape import evidence_row, finding, first_of, key_of, one_or_none
from mqreplay.words.keys import GROUP_TOPIC


def find(evidence: FindingEvidence, limits: Limits) -> pl.DataFrame:
    """Return the resets of offsets."""
    return reset_findings(
        evidence.resets,
        evidence.offset_continuity,
        evidence.cluster,
        RESET_GAP_S,
        limits.reset_reach_s,
        evidence.asked_resets,
    )


OFFSET_RESET = FindingKind(
    name="offset_reset",
    find=find,
    confidence=1.0,
    thresholds=("replay.reset_reach_s",),
)
RESET_GAP_S = 30  # one reset reaches all its clients within seconds
CONCLUDED_CONFIDENCE = 0.8
ASKED_CONFIDENCE = 0.9  # who asked, and when; not which offsets
UNSENT_CONFIDENCE = 0.7  # nothing shows that it was carried out


def reset_findings(
    resets: pl.DataFrame,
    continuity: pl.DataFrame,
    cluster: str,
    gap_s: int,
    reach_s: int,
    asked: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """Return OFFSET_RESET, one for each group, topic and reset.

    ``resets`` is offset_causes.offset_resets' frame, ``continuity`` gold.offset_continuity with the causes of
    concluded_resets. Queues that are set ``gap_s`` seconds apart or less are of one reset; what clients commit
    shows within ``reach_s`` seconds. ``asked`` is asked_resets' frame: requests without offsets. A reset that moved an
    offset is a warning, else it is info.
    """
    rows = with_reset_session(reset_rows(resets, continuity, reach_s, asked), gap_s)
    by = [*GROUP_TOPIC, "session"]
    is_break = pl.col("record_id").is_null()
    of_break = {name: pl.col(name) for name in (*GROUP_TOPIC, "broker_name", "queue_id")}
    of_break |= {"kind": pl.col("break_kind"), "to_ts": pl.col("break_ts"), "broker_id": pl.lit(0)}
    key = {name: pl.when(is_break).then(value) for name, value in of_break.items()}
    row = evidence_row(pl.col("table_name"), key_of({"record_id": pl.col("record_id"), **key}))
    merged = rows.group_by(by).agg(
        # A broker's log has whole seconds: other evidence is more exact.
        pl.coalesce(pl.col("set_ts").filter(~pl.col("asked")).min(), pl.col("set_ts").min()).alias("from_ts"),
        pl.col("seen_ts").max().alias("to_ts"),
        queue_count().alias("queues"),
        pl.col("recorded").any(),
        pl.col("from_outside").filter(~pl.col("asked")).all(),
        pl.col("bounded").filter(~pl.col("asked")).all(),
        pl.col("asked").all().alias("only_asked"),
        pl.col("is_sent").any(),
        pl.col("error").drop_nulls().unique().sort().alias("errors"),
        pl.col("client_addr").drop_nulls().unique().sort().alias("addresses"),
        pl.col("to_ms").drop_nulls().unique().sort().alias("to_ms"),
        one_or_none("broker_name"),
        one_or_none("queue_id"),
        row.unique().sort().implode().alias("evidence"),
    )
    found = merged.join(_effects(rows, by), by, how="left", nulls_equal=True)
    moved = pl.col("largest").is_not_null() | (pl.col("pulled_back") > 0)
    severity = pl.when(moved).then(pl.lit("warning")).otherwise(pl.lit("info"))
    confidence = (
        pl.when(~pl.col("recorded"))
        .then(CONCLUDED_CONFIDENCE)
        .when(~pl.col("only_asked"))
        .then(OFFSET_RESET.confidence)
        .when(pl.col("is_sent") | (pl.col("errors").list.len() > 0))
        .then(ASKED_CONFIDENCE)
        .otherwise(UNSENT_CONFIDENCE)
    )
    valued = found.with_columns(
        *first_of("addresses", ADDRESSES),
        severity.alias("severity"),
        confidence.alias("confidence"),
        pl.col("to_ts").alias("seen_ts"),
        _targets().alias("targets"),
        is_counted=pl.lit(False),
    )
    forms = (valued.filter(~pl.col("only_asked")), ""), (valued.filter("only_asked"), "asked")
    levels = {"severity": pl.col("severity"), "confidence": pl.col("confidence")}
    return pl.concat([finding(rows, OFFSET_RESET, cluster, form=form, **levels) for rows, form in forms])


def _effects(rows: pl.DataFrame, by: list[str]) -> pl.DataFrame:
    """Return ``by``, back and ahead (most messages), skipped, again and pulled_back (in all), and the largest move.

    pulled_back: messages delivered again where the offset went ahead, but the client that pulled was further ahead.
    A queue whose reset several clients receive counts once.
    """
    queue = ["broker_name", "queue_id"]
    moved = rows.filter(pl.col("moved").is_not_null() | pl.col("pulled_back"))
    each = moved.sort(pl.col("moved").abs(), "set_ts", "old", descending=True).unique([*by, *queue], keep="first")
    place = pl.concat_str("broker_name", pl.col("queue_id").cast(pl.String), separator="/")
    example = pl.format("{}: from {} to {}", place, "old", "new")
    move = pl.when(example.is_not_null()).then(pl.struct("broker_name", "queue_id", "old", "new"))
    largest = move.sort_by(pl.col("moved").abs(), -pl.col("moved"), example).last()
    return each.group_by(by).agg(
        (-pl.col("moved").filter(pl.col("moved") < 0).min()).alias("back"),
        pl.col("moved").filter(pl.col("moved") > 0).max().alias("ahead"),
        pl.col("moved").filter((pl.col("moved") > 0) & ~pl.col("pulled_back")).sum().alias("skipped"),
        pl.col("again").filter(~pl.col("pulled_back")).sum(),
        pl.col("again").filter("pulled_back").sum().alias("pulled_back"),
        largest.alias("largest"),
    )


def _targets() -> pl.Expr:
    """Return where requests without offsets set a group: instants, or the ends of its queues."""
    instants = pl.element().cast(pl.Datetime("ms")).dt.strftime("%Y-%m-%d %H:%M:%S UTC")
    where = pl.when(pl.element() < 0).then(pl.lit("ends")).otherwise(instants)
    return pl.col("to_ms").list.eval(where).list.unique(maintain_order=True)
