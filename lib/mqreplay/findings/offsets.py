"""Offsets that went back, were moved ahead, were reset, or point past the end of their queue.

Breaks of one event are one finding: those of one moment and cause, and those that a change of owner explains.
"""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from mqreplay.decode.broker_events import TOPIC_DELETED
from mqreplay.evidence.arrays.nearest import as_of
from mqreplay.evidence.intervals import with_session
from mqreplay.evidence.offsets.break_causes import (
    AT_ONCE_S,
    HANDOVER,
    OVERTAKEN,
    RESTART,
    UNKNOWN_CAUSE,
    with_handovers,
)
from mqreplay.evidence.offsets.offset_causes import COPIED
from mqreplay.evidence.offsets.queue_events import COMMITS, COPIES
from mqreplay.findings.finding_evidence import FindingEvidence
from mqreplay.findings.kind import Cause, FindingKind
from mqreplay.findings.limits import Limits
from mqreplay.findings.shape import evidence, finding, first_of, one_or_none, seconds, with_values
from mqreplay.words.keys import GROUP_QUEUE, GROUP_TOPIC


def find(evidence: FindingEvidence, limits: Limits) -> pl.DataFrame:
    """Return the offsets that went back, jumped ahead, or point past the end by copies of brokers' files."""
    offsets = offset_findings(
        evidence.offset_continuity,
        evidence.possible_owners,
        evidence.cluster,
        limits.same_cause_gap_s,
        limits.dispute_s,
        evidence.resets,
        limits.duplicate_warn_messages,
    )
    return with_deleted_topics(offsets, evidence.broker_event)


OFFSET_REWIND = FindingKind(
    name="offset_rewind",
    find=find,
    confidence=1.0,
    thresholds=(
        "findings.same_cause_gap_s",
        "findings.dispute_s",
        "findings.duplicate_warn_messages",
        "replay.reset_reach_s",
    ),
    causes=(
        Cause("broker_down", same=("broker_name",), after_s=180),
        Cause("double_owned_queue", same=("consumer_group", "topic")),
        Cause("offset_reset", same=("consumer_group", "topic"), after_s=30),
        # A replica has the offsets of its last copy (SlaveSynchronize#syncConsumerOffset).
        Cause("master_changed", same=("broker_name",), after_s=180, overlaps=True),
    ),
)
OFFSET_JUMP = FindingKind(
    name="offset_jump",
    find=find,
    confidence=0.9,
    thresholds=("findings.same_cause_gap_s", "replay.reset_reach_s"),
    causes=(
        Cause("offset_reset", same=("consumer_group", "topic"), after_s=30),
        Cause("expired_unread", same=("consumer_group", "topic"), after_s=60),
    ),
)
OFFSET_BEYOND_MAX = FindingKind(
    name="offset_beyond_max",
    find=find,
    confidence=1.0,
    thresholds=("findings.same_cause_gap_s",),
)
ADDRESSES = 3  # in a summary
OF_COMMITS = 0.9  # of two clients with clocks of their own; other clients' commits may not be recorded
WITHOUT_OWNERS = 0.8  # nothing shows whether the queue changed hands
BREAK_KEY = ("broker_name", "broker_id", "topic", "consumer_group", "queue_id", "kind")


def offset_findings(
    continuity: pl.DataFrame,
    owners: pl.DataFrame,
    cluster: str,
    gap_s: int,
    handover_s: int,
    resets: pl.DataFrame,
    few_messages: int = 0,
) -> pl.DataFrame:
    """Return OFFSET_REWIND, OFFSET_JUMP and OFFSET_BEYOND_MAX, of rows of gold.offset_continuity.

    Breaks of one group, topic and effect that are ``gap_s`` seconds apart or less are one finding. A slave's file
    shows what its master's file showed before: its rows are evidence, not another finding. ``owners`` is the frame of
    ownership.py: while a queue goes from one client to another, for up to ``handover_s`` seconds, both commit.
    ``resets`` is offset_causes.offset_resets' frame: other resets are concluded from the offsets. A commit that goes
    back by up to ``few_messages`` is what a change of the owner brings.
    """
    # An offset put back from past the end is the end of the finding that it was there.
    put_back = (pl.col("kind") == "rewind") & (pl.col("cause") == "corrected")
    breaks = continuity.with_columns(
        pl.col("source").fill_null(COPIES),
        effect=pl.when(put_back).then(pl.lit("beyond_max")).otherwise("kind"),
        # By the time that the offset is put right the queue has grown.
        end_when_set=pl.when(pl.col("kind") == "beyond_max").then("queue_max_offset"),
    ).filter(pl.col("effect").is_in(["rewind", "jump", "beyond_max"]))
    by = [*GROUP_TOPIC, "effect"]
    known = with_handovers(breaks, owners, handover_s, ["client_commit"])
    known = with_retaken(known, owners, handover_s, few_messages)
    sessions = with_break_session(known, by, gap_s)
    merged = sessions.group_by(*by, "session").agg(
        _of_masters(pl.Expr.min, "from_ts"),
        _of_masters(pl.Expr.max, "to_ts"),
        queue_count().alias("queues"),
        _of_masters(pl.Expr.max, "size").alias("most"),
        _sum_or_none(pl.col("redelivered_max").filter(of_master())).alias("again"),
        # Where only the correction was seen, the offset before it is the one past the end.
        pl.coalesce(
            pl.col("new_offset").filter(pl.col("kind") != "rewind").max(),
            pl.col("previous_offset").filter(pl.col("cause") == "corrected").max(),
            pl.col("new_offset").max(),
        ).alias("highest"),
        pl.col("source").unique().alias("sources"),
        pl.col("has_owners").all(),
        pl.col("client_addr").drop_nulls().unique().sort().alias("addresses"),
        pl.coalesce(_of_masters(pl.Expr.max, name) for name in ("end_when_set", "queue_max_offset")).alias("end"),
        # A slave's copy skips what its master held in between, so the masters' rows know the cause best.
        _causes(of_master()).alias("causes_of_masters"),
        _causes(pl.lit(True)).alias("causes"),
        one_or_none("broker_name"),
        one_or_none("queue_id"),
        _largest(),
        evidence("gold.offset_continuity", *BREAK_KEY, "to_ts"),
    )
    has_masters = pl.col("causes_of_masters").list.len() > 0
    merged = merged.with_columns(causes=pl.when(has_masters).then("causes_of_masters").otherwise("causes"))
    # A slave that copies what its master held delivers nothing again.
    merged = merged.filter(pl.col("causes").list.join(" ") != COPIED)
    recorded = resets.select(GROUP_TOPIC).unique().with_columns(pl.lit(True).alias("has_resets"))
    merged = merged.join(recorded, GROUP_TOPIC, how="left", nulls_equal=True)
    return pl.concat([_rewinds(merged, cluster, few_messages), _jumps(merged, cluster), _beyond_max(merged, cluster)])


def _of_masters(over: Callable[[pl.Expr], pl.Expr], name: str) -> pl.Expr:
    """Return an aggregate over the masters' rows, or over all where no master's row has a value."""
    return pl.coalesce(over(pl.col(name).filter(of_master())), over(pl.col(name))).alias(name)


def _largest() -> pl.Expr:
    """Return an aggregate, ``largest``: the move that was largest, of the masters' rows if there are any."""
    place = pl.concat_str("broker_name", pl.col("queue_id").cast(pl.String), separator="/")
    text = pl.format("{}: from {} to {}", place, "previous_offset", "new_offset")
    order = [pl.col("broker_id") != 0, -pl.col("size").fill_null(-1), "to_ts", text]
    move = pl.struct("broker_name", "queue_id", old="previous_offset", new="new_offset")
    return pl.when(text.is_not_null()).then(move).sort_by(order).first().alias("largest")


def queue_count() -> pl.Expr:
    """Return how many queues a group's rows are of; a reset may lack the broker name or the queue id."""
    is_whole = pl.col("broker_name").is_not_null() & pl.col("queue_id").is_not_null()
    return pl.struct("broker_name", "queue_id").filter(is_whole).n_unique()


def _sum_or_none(counts: pl.Expr) -> pl.Expr:
    """Return a sum; null if it does not fit into a bigint."""
    return counts.cast(pl.Int128).sum().cast(pl.Int64, strict=False)


def _causes(of: pl.Expr) -> pl.Expr:
    """Return the causes of a group's rows, each once, in order; a correction is no cause."""
    return pl.col("cause").filter((pl.col("cause") != "corrected") & of).unique().sort().implode()


def _rewinds(merged: pl.DataFrame, cluster: str, few_messages: int) -> pl.DataFrame:
    again = pl.col("again") > 0
    # Without records of clients nothing bounds how far they were ahead of what they had committed.
    concluded = pl.col("causes").list.contains("reset") & pl.col("has_resets").is_null()
    unbounded = concluded | pl.any_horizontal(
        pl.col("causes").list.contains(cause) for cause in (UNKNOWN_CAUSE, RESTART)
    )
    only_reset = concluded & (pl.col("causes").list.len() == 1)
    of_unbounded = pl.when(only_reset).then(pl.lit("at_least")).otherwise(pl.lit("about"))
    bound = pl.when(unbounded).then(of_unbounded).otherwise(pl.lit("at_most"))
    by_commits = ~pl.col("sources").list.contains(COPIES)
    without_owners = by_commits & ~pl.col("has_owners") & pl.col("causes").list.contains("client_commit")
    causes = pl.col("causes").list.join(" ")
    perhaps = without_owners & (causes == "client_commit") & (pl.col("most") <= few_messages)
    normal = (pl.col("causes").list.set_difference([HANDOVER, OVERTAKEN]).list.len() == 0) | perhaps
    severity = pl.when(again & ~normal).then(pl.lit("warning")).otherwise(pl.lit("info"))
    confidence = (
        pl.when(without_owners)
        .then(WITHOUT_OWNERS)
        .when(by_commits & pl.col("sources").list.contains(COMMITS))
        .then(OF_COMMITS)
        .otherwise(OFFSET_REWIND.confidence)
    )
    rows = merged.with_columns(
        *first_of("addresses", ADDRESSES), bound=bound, without_owners=without_owners, is_counted=pl.lit(False)
    ).filter(pl.col("effect") == "rewind")
    return finding(rows, OFFSET_REWIND, cluster, severity=severity, confidence=confidence)


def _jumps(merged: pl.DataFrame, cluster: str) -> pl.DataFrame:
    rows = merged.filter(pl.col("effect") == "jump")
    return finding(rows, OFFSET_JUMP, cluster, severity="warning")


def _beyond_max(merged: pl.DataFrame, cluster: str) -> pl.DataFrame:
    rows = merged.filter(pl.col("effect") == "beyond_max").with_columns(UNKNOWN_DELETION)
    return finding(rows, OFFSET_BEYOND_MAX, cluster, severity="warning")


UNKNOWN_DELETION = pl.lit(None, pl.Boolean).alias("was_deleted")  # until `with_deleted_topics`


def with_deleted_topics(findings: pl.DataFrame, broker_event: pl.DataFrame | None) -> pl.DataFrame:
    """Return the findings; OFFSET_BEYOND_MAX says if a log has the deletion of its topic before.

    A topic that is created again begins at 0, while the offsets of its groups stay (TopicConfigManager,
    AdminBrokerProcessor#deleteTopic). ``broker_event`` is the silver table.
    """
    if broker_event is None or broker_event.is_empty():
        return findings
    deleted = broker_event.filter(pl.col("event") == TOPIC_DELETED).group_by("topic").agg(pl.col("ts").min())
    known = findings.join(deleted, "topic", how="left", maintain_order="left")
    is_after = (pl.col("kind") == OFFSET_BEYOND_MAX.name) & (pl.col("ts") <= pl.col("to_ts"))
    return with_values(
        known.with_columns(pl.when(is_after).then(True).alias("was_deleted")).drop("ts"), ["was_deleted"]
    )


def of_master() -> pl.Expr:
    """Return whether a break is shown by a master's file."""
    return pl.col("broker_id") == 0


def with_break_session(breaks: pl.DataFrame, by: list[str], gap_s: int) -> pl.DataFrame:
    """Return the breaks with ``session``: of one cause and moment, and those of other causes meanwhile.

    Offsets are set within seconds, but an offset past the end may stand for longer. A slave shows what its master
    showed last.
    """
    stands = pl.col("effect") == "beyond_max"
    named = breaks.with_columns(of=pl.when(stands).then(pl.lit("")).otherwise("cause")).with_row_index("_row")
    own = [*by, "of"]
    masters, slaves = named.filter(of_master()), named.filter(~of_master())
    parts = [
        with_session(masters.filter(stands), own, "to_ts", "to_ts", gap_s),
        with_session(masters.filter(~stands), own, "to_ts", "to_ts", min(gap_s, AT_ONCE_S)),
    ]
    of_masters = _together(pl.concat(parts), own)
    last = as_of(slaves, of_masters.with_columns(at="to_ts"), by, "to_ts", {"at": "at"}, right_at="from_ts")
    numbers = of_masters.select(*by, "session", at="to_ts").unique([*by, "at"], keep="any", maintain_order=True)
    met = last.join(numbers, [*by, "at"], how="left", maintain_order="left", nulls_equal=True)
    follows = (pl.col("session").is_not_null() & (seconds("at", "from_ts") <= gap_s)).fill_null(False)
    alone = with_session(met.filter(~follows).drop("at", "session"), own, "to_ts", "to_ts", gap_s)
    alone = alone.with_columns(pl.col("session").cast(pl.Int64) + (of_masters["session"].max() or 0))
    return pl.concat([of_masters, met.filter(follows).select(of_masters.columns), alone.select(of_masters.columns)])


def _together(breaks: pl.DataFrame, own: list[str]) -> pl.DataFrame:
    """Return the breaks. Overlapping sessions of one effect become one, also if their causes differ."""
    span = breaks.group_by(*own, "session").agg(pl.col("from_ts").min(), pl.col("to_ts").max())
    by = own[:-1]
    merged = with_session(span.rename({"session": "part"}), by, "from_ts", "to_ts", 0)
    numbers = merged.select(*own, "part", pl.col("session").cast(pl.Int64))
    parted = breaks.rename({"session": "part"})
    return parted.join(numbers, [*own, "part"], nulls_equal=True).drop("part")


def with_retaken(breaks: pl.DataFrame, owners: pl.DataFrame, handover_s: int, few: int) -> pl.DataFrame:
    """Return the breaks with ``has_owners``; the cause is HANDOVER, too, where a client took the queue anew just then.

    Only breaks that commits show, of up to ``few`` messages: what the client had not committed when it gave the queue
    up. More than that is lost by something else. ``has_owners``: whether any owner of the queue is known.
    """
    held = as_of(breaks, owners, GROUP_QUEUE, "to_ts", {"taken_ts": "from_ts"}, right_at="from_ts")
    since = pl.col("from_ts") - pl.duration(seconds=handover_s)
    is_commit = (pl.col("cause") == "client_commit") & (pl.col("effect") == "rewind") & (pl.col("source") != COPIES)
    is_few = pl.col("size") <= few
    cause = pl.when(is_commit & is_few & (pl.col("taken_ts") >= since)).then(pl.lit(HANDOVER)).otherwise("cause")
    known = owners.select(GROUP_QUEUE).unique().with_columns(has_owners=pl.lit(True))
    named = held.with_columns(cause=cause).drop("taken_ts").join(known, GROUP_QUEUE, how="left", nulls_equal=True)
    return named.with_columns(pl.col("has_owners").fill_null(False))
