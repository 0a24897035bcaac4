"""Offsets that went back, were moved ahead, were reset, or point past the end of their queue."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from mqreplay.findings.kind import Cause, FindingKind
from mqreplay.findings.shape import EVIDENCE_ROWS, counted, evidence_rows, finding, instant_text, key_text, one_or_none
from mqreplay.judge.nearest import as_of
from mqreplay.judge.queue_events import KEY
from mqreplay.judge.time_spans import with_session

OFFSET_REWIND = FindingKind(
    name="offset_rewind",
    rule="A copy of consumerOffset.json holds a lower offset than the copy before it.",
    follows="ConsumerOffsetManager#commitOffset puts what it is given",
    advice="If nobody meant it, find who reset or committed it, and see that consumers bear messages delivered twice.",
    confidence=1.0,
    causes=(
        Cause("broker_down", same=("broker_name",), after_s=180),
        Cause("double_owned_queue", same=("consumer_group", "topic")),
        Cause("offset_reset", same=("consumer_group", "topic"), after_s=30),
    ),
)
OFFSET_JUMP = FindingKind(
    name="offset_jump",
    rule="An offset rose past messages that the group was never given: a reset said so, or the next pull skips them.",
    follows="ConsumerOffsetManager#commitOffset",
    advice="If nobody meant it, reset the group by time to before this moment, so that what was skipped is consumed.",
    confidence=0.9,
    causes=(Cause("offset_reset", same=("consumer_group", "topic"), after_s=30),),
)
OFFSET_BEYOND_MAX = FindingKind(
    name="offset_beyond_max",
    rule="The master told, after the offset was saved, of a queue that ends before it.",
    follows="DefaultMessageStore#getMessage: OFFSET_OVERFLOW_BADLY",
    advice=(
        "See who set it; the next pull corrects it to the end of the queue, so check that nothing before was skipped."
    ),
    confidence=1.0,
)
OFFSET_RESET = FindingKind(
    name="offset_reset",
    rule="A broker pushed RESET_CONSUMER_CLIENT_OFFSET to clients (4.9), or answered pulls with a moved offset (5.x).",
    follows="Broker2Client#resetOffset",
    advice="If nobody meant it, find who ran resetOffsetByTime; back means delivered again, ahead means skipped.",
    confidence=1.0,
)

HANDOVER = "handover"
CAUSE_TEXT = {
    "reset": "an offset reset",
    HANDOVER: "commits of the clients between which queues changed hands",
    "client_commit": "a commit by a client",
    "set_from_outside": "a change from outside: no client committed it",
    "unknown": "an unknown cause: no commits or resets were recorded",
}
GROUP_TOPIC = ("consumer_group", "topic")
BREAK_KEY = ("broker_name", "broker_id", "topic", "consumer_group", "queue_id", "kind")


def offset_findings(
    continuity: pl.DataFrame, owners: pl.DataFrame, cluster: str, gap_s: int, handover_s: int
) -> pl.DataFrame:
    """Return OFFSET_REWIND, OFFSET_JUMP and OFFSET_BEYOND_MAX, of rows of gold.offset_continuity.

    Breaks of one group, topic and effect that are ``gap_s`` seconds apart or less are one finding. A slave's file
    shows what its master's file showed before: its rows are evidence, not another finding. ``owners`` is
    gold.queue_owner: while a queue goes from one client to another, for up to ``handover_s`` seconds, both commit.
    """
    # An offset put back from past the end is the end of the finding that it was there.
    put_back = (pl.col("kind") == "rewind") & (pl.col("cause") == "corrected")
    breaks = continuity.with_columns(
        effect=pl.when(put_back).then(pl.lit("beyond_max")).otherwise("kind"),
        # By the time that the offset is put right the queue has grown.
        end_when_set=pl.when(pl.col("kind") == "beyond_max").then("queue_max_offset"),
    ).filter(pl.col("effect").is_in(["rewind", "jump", "beyond_max"]))
    by = [*GROUP_TOPIC, "effect"]
    key = key_text(*BREAK_KEY) + pl.lit(" to_ts=") + instant_text("to_ts")
    sessions = with_session(_with_handovers(breaks, owners, handover_s), by, "to_ts", "to_ts", gap_s)
    merged = sessions.group_by(*by, "session").agg(
        _of_masters(pl.Expr.min, "from_ts"),
        _of_masters(pl.Expr.max, "to_ts"),
        _queues().alias("queues"),
        _of_masters(pl.Expr.max, "size").alias("most"),
        _sum_or_none(pl.col("redelivered_max").filter(_of_master())).alias("again"),
        pl.col("new_offset").max().alias("highest"),
        pl.coalesce(_of_masters(pl.Expr.max, name) for name in ("end_when_set", "queue_max_offset")).alias("end"),
        # A slave's copy skips what its master held in between, so the masters' rows know the cause best.
        _causes(_of_master()).alias("causes_of_masters"),
        _causes(pl.lit(True)).alias("causes"),
        one_or_none("broker_name"),
        one_or_none("queue_id"),
        evidence_rows("gold.offset_continuity", key.unique().sort().head(EVIDENCE_ROWS).implode()),
    )
    has_masters = pl.col("causes_of_masters").list.len() > 0
    merged = merged.with_columns(causes=pl.when(has_masters).then("causes_of_masters").otherwise("causes"))
    return pl.concat([_rewinds(merged, cluster), _jumps(merged, cluster), _beyond_max(merged, cluster)])


def _of_master() -> pl.Expr:
    return pl.col("broker_id") == 0


def _of_masters(over: Callable[[pl.Expr], pl.Expr], name: str) -> pl.Expr:
    """Return an aggregate over the masters' rows, or over all where no master's row has a value."""
    return pl.coalesce(over(pl.col(name).filter(_of_master())), over(pl.col(name))).alias(name)


def _queues() -> pl.Expr:
    """Return how many queues a group's rows are of; a reset may lack the broker name or the queue id."""
    is_whole = pl.col("broker_name").is_not_null() & pl.col("queue_id").is_not_null()
    return pl.struct("broker_name", "queue_id").filter(is_whole).n_unique()


def _sum_or_none(counts: pl.Expr) -> pl.Expr:
    """Return a sum; null if it does not fit into a bigint."""
    return counts.cast(pl.Int128).sum().cast(pl.Int64, strict=False)


def _causes(of: pl.Expr) -> pl.Expr:
    """Return the causes of a group's rows, each once, in order; a correction is no cause."""
    return pl.col("cause").filter((pl.col("cause") != "corrected") & of).unique().sort().implode()


def _with_handovers(breaks: pl.DataFrame, owners: pl.DataFrame, handover_s: int) -> pl.DataFrame:
    """Return the breaks; the cause is HANDOVER where two clients held the queue just before, or while, it went back.

    Both commit what they have consumed (RebalanceImpl#updateProcessQueueTableInRebalance persists on removal), and
    ConsumerOffsetManager takes what comes last.
    """
    held = as_of(
        breaks,
        _second_holders(owners),
        KEY,
        "to_ts",
        {"second_until": "second_until"},
        right_at="from_ts",
    )
    went_back = (pl.col("cause") == "client_commit") & (pl.col("effect") == "rewind")
    by_two = pl.col("second_until") >= pl.col("from_ts") - pl.duration(seconds=handover_s)
    cause = pl.when(went_back & by_two).then(pl.lit(HANDOVER)).otherwise("cause")
    return held.with_columns(cause=cause).drop("second_until")


def _second_holders(owners: pl.DataFrame) -> pl.DataFrame:
    """Return the owners' spans, oldest first, with ``second_until``.

    Of all spans of the queue up to this one, let the leader be the client that held it longest. ``second_until`` is
    until when any other client held it: so at least two clients held the queue at or after an instant if, and only if,
    ``second_until`` is not before it.
    """
    spans = owners.select(*KEY, "client_id", "from_ts", "to_ts").sort("from_ts")
    spans = spans.with_columns(longest=pl.col("to_ts").cum_max().shift(1).over(KEY))
    leads = pl.col("longest").is_null() | (pl.col("to_ts") > pl.col("longest"))
    leader = pl.when(leads).then("client_id").forward_fill().shift(1).over(KEY)
    other = pl.when(pl.col("client_id") != leader).then(pl.min_horizontal("to_ts", "longest"))
    return spans.with_columns(second_until=other).with_columns(pl.col("second_until").cum_max().over(KEY))


def reset_findings(
    resets: pl.DataFrame, continuity: pl.DataFrame, cluster: str, gap_s: int, reach_s: int
) -> pl.DataFrame:
    """Return OFFSET_RESET, one for each group, topic and reset; ``continuity`` shows how far the offsets moved.

    ``resets`` is offset_resets' frame. Pushes ``gap_s`` seconds apart or less are one reset; its effect
    shows within ``reach_s`` seconds.
    """
    key = pl.struct("table_name", (pl.lit("record_id=") + pl.col("record_id")).alias("key"))
    sessions = with_session(resets, GROUP_TOPIC, "ts", "ts", gap_s)
    merged = sessions.group_by(*GROUP_TOPIC, "session").agg(
        pl.col("ts").min().alias("from_ts"),
        pl.col("ts").max().alias("to_ts"),
        _queues().alias("queues"),
        key.unique().sort().head(EVIDENCE_ROWS).implode().alias("evidence"),
    )
    step = pl.when(pl.col("kind") == "rewind").then(-pl.col("size")).otherwise("size")
    by_reset = continuity.filter((pl.col("cause") == "reset") & _of_master(), pl.col("size").is_not_null()).select(
        *GROUP_TOPIC, pl.col("to_ts").alias("changed_ts"), step.alias("by")
    )
    after = pl.col("changed_ts").is_between("from_ts", pl.col("to_ts") + pl.duration(seconds=reach_s))
    largest = (
        merged.join(by_reset, GROUP_TOPIC)
        .filter(after)
        .group_by(*GROUP_TOPIC, "session")
        .agg(pl.col("by").sort_by(pl.col("by").abs(), -pl.col("by")).last())  # of two equal ones the one back
    )
    rows = merged.join(largest, [*GROUP_TOPIC, "session"], how="left")
    size = counted(pl.col("by").abs(), "message")
    effect = (
        pl.when(pl.col("by") < 0)
        .then(pl.lit(", back by up to ") + size)
        .when(pl.col("by") > 0)
        .then(pl.lit(", ahead by up to ") + size)
        .otherwise(pl.lit(""))
    )
    summary = pl.concat_str(_group_text(), counted("queues", "queue"), pl.lit(" reset"), effect, pl.lit("."))
    severity = pl.when(pl.col("by").is_not_null()).then(pl.lit("warning")).otherwise(pl.lit("info"))
    return finding(rows, OFFSET_RESET, cluster, severity=severity, summary=summary)


def _group_text() -> pl.Expr:
    return pl.format("Group {} on {}: ", *(pl.col(name).fill_null("") for name in GROUP_TOPIC))


def _offset_of_queues() -> pl.Expr:
    return pl.concat_str(_group_text(), pl.lit("the offset of "), counted("queues", "queue"))


def _cause_text() -> pl.Expr:
    return pl.col("causes").list.eval(pl.element().replace(CAUSE_TEXT)).list.join(" and ")


def _rewinds(merged: pl.DataFrame, cluster: str) -> pl.DataFrame:
    again = pl.col("again") > 0
    repeated = pl.when(again).then(pl.lit("; at most ") + counted("again", "message") + " delivered again")
    summary = pl.concat_str(
        _offset_of_queues(),
        pl.lit(" went back by up to "),
        counted("most", "message"),
        pl.lit(", by "),
        _cause_text(),
        repeated.fill_null(""),
        pl.lit("."),
    )
    handed_over = pl.col("causes").list.join(" ") == HANDOVER  # and nothing else
    severity = pl.when(again & ~handed_over).then(pl.lit("warning")).otherwise(pl.lit("info"))
    rows = merged.filter(pl.col("effect") == "rewind")
    return finding(rows, OFFSET_REWIND, cluster, severity=severity, summary=summary)


def _jumps(merged: pl.DataFrame, cluster: str) -> pl.DataFrame:
    summary = pl.concat_str(
        _offset_of_queues(),
        pl.lit(" was moved ahead by up to "),
        counted("most", "message"),
        pl.lit(", by "),
        _cause_text(),
        pl.lit("; what lay between may never have been consumed."),
    )
    rows = merged.filter(pl.col("effect") == "jump")
    return finding(rows, OFFSET_JUMP, cluster, severity="warning", summary=summary)


def _beyond_max(merged: pl.DataFrame, cluster: str) -> pl.DataFrame:
    past_end = pl.lit(", past the end of the queue")
    summary = pl.concat_str(
        _offset_of_queues(),
        pl.lit(" was set to "),
        pl.col("highest").cast(pl.String),
        pl.coalesce(past_end + " at " + pl.col("end").cast(pl.String), past_end),
        pl.lit(", by "),
        _cause_text(),
        pl.lit("."),
    )
    rows = merged.filter(pl.col("effect") == "beyond_max")
    return finding(rows, OFFSET_BEYOND_MAX, cluster, severity="warning", summary=summary)
