"""Consumer offsets that somebody reset: brokers passed the reset on to clients, or the offsets themselves show it."""

from __future__ import annotations

import polars as pl

from mqreplay.evidence.offsets.reset_effects import reset_rows, with_reset_session
from mqreplay.findings.finding_evidence import FindingEvidence
from mqreplay.findings.kind import FindingKind
from mqreplay.findings.limits import Limits
from mqreplay.findings.offsets import GROUP_TOPIC, addresses_text, group_text, queue_count
from mqreplay.findings.shape import counted, evidence_row, finding, key_of, one_or_none


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
    meaning=(
        "Somebody set the offsets of a consumer group. Set back, the group consumes messages again; set ahead, it never"
        " consumes those in between."
    ),
    rule=(
        "A broker was asked for a reset (broker.log names the address), pushed RESET_CONSUMER_CLIENT_OFFSET to clients"
        " (4.9), or answered pulls with a moved offset (5.x). It is info where nothing shows that an offset moved."
        " Without such a record: the saved offset of a queue changed although no client committed it, or several"
        " offsets of a group fell at once on a broker that ran, or one fell while no member held its queue; one rose"
        " while the broker listed no member; or several of a group that was a minute behind and slow rose at once, to"
        " the ends that their queues had at one instant, and it was slow again."
    ),
    follows="AdminBrokerProcessor#resetOffset, Broker2Client#resetOffset, ConsumerOffsetManager#assignResetOffset",
    advice=(
        "If nobody meant it, find who ran resetOffsetByTime, skipAccumulatedMessage or cloneGroupOffset, or used a"
        " dashboard. If the summary names no address that"
        " started it, import broker.log of the brokers, which does. To go back to before a reset ahead: `mqadmin"
        " resetOffsetByTime -g GROUP -t TOPIC -s TIME`. Queues and offsets: `mqreplay explain FINDING`."
    ),
    confidence=1.0,
    thresholds=("replay.reset_reach_s",),
    example=(
        "Group redirect on address-change: 4 queues reset, back by up to 62 messages (sorter-n/1: from 141 to 79), at"
        " most 240 messages delivered again."
    ),
)
RESET_GAP_S = 30  # one reset reaches all its clients within seconds
CONCLUDED = ", concluded from the offsets that its brokers hold"
FROM_OUTSIDE = "; no client of the group committed that"
OPEN = "; whether it was carried out, and to which offsets, is not recorded."
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
    summary = pl.when("only_asked").then(_request_text()).otherwise(_summary())
    return finding(found, OFFSET_RESET, cluster, severity=severity, summary=summary, confidence=confidence)


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
    largest = pl.col("example").sort_by(pl.col("moved").abs(), -pl.col("moved"), "example").last()
    return (
        each.with_columns(example.alias("example"))
        .group_by(by)
        .agg(
            (-pl.col("moved").filter(pl.col("moved") < 0).min()).alias("back"),
            pl.col("moved").filter(pl.col("moved") > 0).max().alias("ahead"),
            pl.col("moved").filter((pl.col("moved") > 0) & ~pl.col("pulled_back")).sum().alias("skipped"),
            pl.col("again").filter(~pl.col("pulled_back")).sum(),
            pl.col("again").filter("pulled_back").sum().alias("pulled_back"),
            largest.alias("largest"),
        )
    )


def _summary() -> pl.Expr:
    """Return the summary of a reset: its queues, how far their offsets moved, and what shows it."""
    sizes = [pl.lit(f", {way} by up to ") + counted(way, "message") for way in ("back", "ahead")]
    # Without records of clients nothing bounds how far they were ahead of what they had committed.
    bound = pl.when("bounded").then(pl.lit("; at most ")).otherwise(pl.lit("; at least "))
    again = bound + counted("again", "message") + pl.lit(" delivered again")
    # What a client had received, it may have finished without a commit.
    skipped = pl.lit("; at most ") + counted("skipped", "message") + pl.lit(" skipped")
    pulled_back = pl.concat_str(
        pl.lit(" Pulls that came later, until "),
        pl.col("to_ts").dt.strftime("%H:%M:%S"),
        pl.lit(" UTC, were answered with these offsets: clients that were further ahead went back, at most "),
        counted("pulled_back", "message"),
        pl.lit(" delivered again."),
    )
    source = pl.when("recorded").then(pl.lit("")).when("from_outside").then(pl.lit(FROM_OUTSIDE))
    return pl.concat_str(
        group_text(),
        # An offset that catches up between two polls shows nothing.
        pl.when("bounded").then(pl.lit("")).otherwise(pl.lit("at least ")),
        counted("queues", "queue"),
        pl.lit(" reset"),
        *[size.fill_null("") for size in sizes],
        (pl.lit(" (") + pl.col("largest") + ")").fill_null(""),
        _started_text(),
        pl.when(pl.col("again") > 0).then(again).otherwise(pl.lit("")),
        pl.when(pl.col("skipped") > 0).then(skipped).otherwise(pl.lit("")),
        source.otherwise(pl.lit(CONCLUDED)),
        pl.lit("."),
        pl.when(pl.col("pulled_back") > 0).then(pulled_back).otherwise(pl.lit("")),
    )


def _started_text() -> pl.Expr:
    return (pl.lit(", started") + _by_text()).fill_null("")


def _by_text() -> pl.Expr:
    return pl.lit(" by ") + addresses_text(pl.col("addresses"))


def _request_text() -> pl.Expr:
    """Return the summary of a reset of which only requests without offsets are known."""
    instants = pl.element().cast(pl.Datetime("ms")).dt.strftime("%Y-%m-%d %H:%M:%S")
    at_end = pl.element() < 0
    where = pl.when(at_end).then(pl.lit("the ends of the queues")).otherwise(instants + pl.lit(" UTC"))
    targets = pl.col("to_ms").list.eval(where).list.unique(maintain_order=True).list.join(" and ")
    to = pl.when(pl.col("to_ms").list.len() > 0).then(pl.lit(" to ") + targets).otherwise(pl.lit(""))
    reset = pl.concat_str(pl.lit("offsets were reset"), to, _started_text())
    asked = pl.concat_str(pl.lit("a reset of the offsets"), to, pl.lit(" was started"), _by_text().fill_null(""))
    refused = pl.col("errors").list.join("; ")
    return pl.concat_str(
        group_text(),
        pl.when("is_sent")
        .then(pl.concat_str(reset, pl.lit("; to which offsets is not recorded.")))
        .when(pl.col("errors").list.len() > 0)
        .then(pl.concat_str(asked, pl.lit(", and refused: "), refused, pl.lit(".")))
        .otherwise(pl.concat_str(asked, pl.lit(OPEN))),
    )
