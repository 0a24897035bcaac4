"""Offsets that went back, were moved ahead, were reset, or point past the end of their queue."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from mqreplay.evidence.offsets.explained_rewinds import HANDOVER, RESTART, UNKNOWN, with_handovers
from mqreplay.evidence.offsets.offset_causes import COPIED
from mqreplay.evidence.offsets.queue_events import COMMITS, COPIES
from mqreplay.findings.finding_evidence import FindingEvidence
from mqreplay.findings.kind import Cause, FindingKind
from mqreplay.findings.limits import Limits
from mqreplay.findings.offset_breaks import of_master, with_break_session, with_retaken
from mqreplay.findings.shape import counted, evidence, finding, one_or_none


def find(evidence: FindingEvidence, limits: Limits) -> pl.DataFrame:
    """Return the offsets that went back, jumped ahead, or point past the end by copies of brokers' files."""
    return offset_findings(
        evidence.offset_continuity,
        evidence.possible_owners,
        evidence.cluster,
        limits.same_cause_gap_s,
        limits.dispute_s,
        evidence.resets,
        limits.duplicate_warn_messages,
    )


OFFSET_REWIND = FindingKind(
    name="offset_rewind",
    find=find,
    meaning=(
        "The saved offset of a queue is lower than before, so the group consumes messages again. The brokers store"
        " whatever offset they are sent."
    ),
    rule=(
        "A copy of consumerOffset.json of a master holds a lower offset than the copy before it. Where there are no"
        " copies: broker.log names a commit below the stored offset, or a client committed less than was committed"
        " before. It is a warning if messages are delivered again and more than a change of the queue's owner is behind"
        " it. If no owner of the queue is known, commits that go back by up to duplicate_warn_messages messages are"
        " info."
    ),
    follows="ConsumerOffsetManager#commitOffset stores what it is sent",
    advice=(
        "Make consumers idempotent by message key. If nobody meant it, see the offsets and their times:"
        " `mqreplay explain FINDING`. If the summary names no address that sent the lower offset, import broker.log of"
        " the broker: it names each."
    ),
    confidence=1.0,
    thresholds=(
        "findings.same_cause_gap_s",
        "findings.dispute_s",
        "findings.duplicate_warn_messages",
        "replay.reset_reach_s",
    ),
    example=(
        "Group redirect on address-change: the offset of 4 queues went back by up to 41 messages (sorter-n/1: from 91"
        " to 50), by an offset reset; at most 161 messages delivered again."
    ),
    causes=(
        Cause("broker_down", same=("broker_name",), after_s=180),
        Cause("double_owned_queue", same=("consumer_group", "topic")),
        Cause("offset_reset", same=("consumer_group", "topic"), after_s=30),
    ),
)
OFFSET_JUMP = FindingKind(
    name="offset_jump",
    find=find,
    meaning="The saved offset of a queue rose past messages that the group was never given: it does not consume them.",
    rule="An offset rose past messages that the group was never given: a reset led there, or the next pull skips them.",
    follows="ConsumerOffsetManager#commitOffset stores what it is sent",
    advice=(
        "If nobody meant it, go back to before this moment, and the skipped messages are consumed: `mqadmin"
        " resetOffsetByTime -g GROUP -t TOPIC -s TIME`. Queues and offsets: `mqreplay explain FINDING`."
    ),
    confidence=0.9,
    thresholds=("findings.same_cause_gap_s", "replay.reset_reach_s"),
    example=(
        "Group reset-group on pay-topic: the offset of 8 queues was moved ahead by up to 82 messages (broker-a/3: from"
        " 61 to 143), by an offset reset; the messages in between may never have been consumed."
    ),
    causes=(Cause("offset_reset", same=("consumer_group", "topic"), after_s=30),),
)
OFFSET_BEYOND_MAX = FindingKind(
    name="offset_beyond_max",
    find=find,
    meaning=(
        "The saved offset of a queue is greater than the end of the queue. The group gets no new message of it until"
        " its next pull, which the broker answers with the end of the queue: messages before that end may be skipped."
    ),
    rule=(
        "The master stated, after the offset was saved, that the queue ends before it, or one answer of it"
        " (consumerProgress) has both numbers. An offset past the end that any queue can have needs no statement. The"
        " file of a broadcasting client counts, too."
    ),
    follows="DefaultMessageStore#getMessage: OFFSET_OVERFLOW_BADLY",
    advice=(
        "Find who set it: `mqreplay explain FINDING` shows the copies before and after. Compare the offsets with the"
        " ends of the queues: `mqadmin consumerProgress -g GROUP`. If messages were skipped: `mqadmin resetOffsetByTime"
        " -g GROUP -t TOPIC -s TIME`."
    ),
    confidence=1.0,
    thresholds=("findings.same_cause_gap_s",),
    example=(
        "Group parcel-archive on parcel-in: the offset of 1 queue (sorter-s/1) was set to 999999, past the end of the"
        " queue at 56, by a change from outside: no client committed it."
    ),
)
ADDRESSES = 3  # in a summary
UNKNOWN_OWNERS = " Whether the queue changed hands then is not recorded."
GROUP_TOPIC = ("consumer_group", "topic")
CAUSE_TEXT = {
    "reset": "an offset reset",
    "refused_query": "a start after a broker refused to tell the stored offset (clients before 5.0 take that for none)",
    HANDOVER: "commits of the clients between which queues changed hands",
    RESTART: "a restart of the broker, which had not saved its latest offsets",
    "client_commit": "a commit by a client",
    "set_from_outside": "a change from outside: no client committed it",
    COPIED: "a copy of its master's offsets",
    UNKNOWN: "an unknown cause: no commits or resets were recorded",
}
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
    possible_owners.py: while a queue goes from one client to another, for up to ``handover_s`` seconds, both commit.
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
    """Return an aggregate, ``largest``: the row that moved most as text, of the masters' rows if there are any."""
    place = pl.concat_str("broker_name", pl.col("queue_id").cast(pl.String), separator="/")
    text = pl.format("{}: from {} to {}", place, "previous_offset", "new_offset")
    order = [pl.col("broker_id") != 0, -pl.col("size").fill_null(-1), "to_ts", text]
    return text.sort_by(order).first().alias("largest")


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


def group_text() -> pl.Expr:
    """Return the begin of a summary: the group and its topic."""
    return pl.format("Group {} on {}: ", *(pl.col(name).fill_null("") for name in GROUP_TOPIC))


def _offset_of_queues() -> pl.Expr:
    return pl.concat_str(group_text(), pl.lit("the offset of "), counted("queues", "queue"))


def _cause_text() -> pl.Expr:
    return pl.col("causes").list.eval(pl.element().replace(CAUSE_TEXT)).list.join(" and ")


def _largest_text() -> pl.Expr:
    return (pl.lit(" (") + pl.col("largest") + ")").fill_null("")


def addresses_text(addresses: pl.Expr) -> pl.Expr:
    """Return the first ADDRESSES of a list of addresses as part of a sentence; null of an empty list."""
    shown, count = addresses.list.head(ADDRESSES).list.join(" and "), addresses.list.len()
    more = pl.when(count > ADDRESSES).then(pl.format(" and {} more", count.cast(pl.Int64) - ADDRESSES))
    return pl.when(count > 0).then(pl.concat_str(shown, more.otherwise(pl.lit(""))))


def _rewinds(merged: pl.DataFrame, cluster: str, few_messages: int) -> pl.DataFrame:
    again = pl.col("again") > 0
    # Without records of clients nothing bounds how far they were ahead of what they had committed.
    concluded = pl.col("causes").list.contains("reset") & pl.col("has_resets").is_null()
    unbounded = concluded | pl.any_horizontal(pl.col("causes").list.contains(cause) for cause in (UNKNOWN, RESTART))
    only_reset = concluded & (pl.col("causes").list.len() == 1)
    of_unbounded = pl.when(only_reset).then(pl.lit("; at least ")).otherwise(pl.lit("; about "))
    bound = pl.when(unbounded).then(of_unbounded).otherwise(pl.lit("; at most "))
    by_commits = ~pl.col("sources").list.contains(COPIES)
    without_owners = by_commits & ~pl.col("has_owners") & pl.col("causes").list.contains("client_commit")
    repeated = pl.when(again).then(bound + counted("again", "message") + " delivered again")
    summary = pl.concat_str(
        _offset_of_queues(),
        pl.lit(" went back by up to "),
        counted("most", "message"),
        _largest_text(),
        pl.lit(", by "),
        _cause_text(),
        (pl.lit(", sent from ") + addresses_text(pl.col("addresses"))).fill_null(""),
        repeated.fill_null(""),
        pl.lit("."),
        pl.when(without_owners).then(pl.lit(UNKNOWN_OWNERS)).otherwise(pl.lit("")),
    )
    causes = pl.col("causes").list.join(" ")
    perhaps = without_owners & (causes == "client_commit") & (pl.col("most") <= few_messages)
    normal = (causes == HANDOVER) | perhaps  # and nothing else
    severity = pl.when(again & ~normal).then(pl.lit("warning")).otherwise(pl.lit("info"))
    confidence = (
        pl.when(without_owners)
        .then(WITHOUT_OWNERS)
        .when(by_commits & pl.col("sources").list.contains(COMMITS))
        .then(OF_COMMITS)
        .otherwise(OFFSET_REWIND.confidence)
    )
    rows = merged.filter(pl.col("effect") == "rewind")
    return finding(rows, OFFSET_REWIND, cluster, severity=severity, summary=summary, confidence=confidence)


def _jumps(merged: pl.DataFrame, cluster: str) -> pl.DataFrame:
    summary = pl.concat_str(
        _offset_of_queues(),
        pl.lit(" was moved ahead by up to "),
        counted("most", "message"),
        _largest_text(),
        pl.lit(", by "),
        _cause_text(),
        pl.lit("; the messages in between may never have been consumed."),
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
        # A correction alone does not show who set it.
        pl.when(pl.col("causes").list.len() > 0).then(pl.lit(", by ") + _cause_text()).otherwise(pl.lit("")),
        pl.lit("."),
    )
    rows = merged.filter(pl.col("effect") == "beyond_max")
    return finding(rows, OFFSET_BEYOND_MAX, cluster, severity="warning", summary=summary)
