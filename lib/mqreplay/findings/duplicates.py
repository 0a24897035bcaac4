"""Messages that a group received more than once, by the cause that the evidence of each delivery allows.

The cause lies between the two deliveries. What happened before the first one, to another queue, or to an offset above
the message, cannot be the cause. Of several possible causes the latest one counts.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from mqreplay.decode.recording.advice import Need
from mqreplay.evidence.arrays.nearest import as_of
from mqreplay.evidence.intervals import with_session
from mqreplay.evidence.messages.deliveries import DELIVERED_MESSAGE
from mqreplay.evidence.offsets.break_causes import wide_resets
from mqreplay.findings.finding_evidence import FindingEvidence
from mqreplay.findings.kind import Cause, FindingKind
from mqreplay.findings.limits import Limits
from mqreplay.findings.shape import evidence, finding, one_or_none
from mqreplay.words.keys import GROUP, GROUP_QUEUE


def find(evidence: FindingEvidence, limits: Limits, found: pl.DataFrame) -> pl.DataFrame:
    """Return the messages that a group received more than once; ``found`` are the findings that may be their cause."""
    return duplicate_findings(
        evidence.repeated_deliveries,
        found,
        evidence.offset_continuity,
        pl.concat([evidence.resets, wide_resets(evidence.asked_resets).select(evidence.resets.columns)]),
        evidence.queue_owner,
        evidence.cluster,
        gap_s=limits.lost_s,
        after_s=limits.failed_over_s,
        warn_messages=limits.duplicate_warn_messages,
    )


DUPLICATE_DELIVERY = FindingKind(
    name="duplicate_delivery",
    find_in_findings=find,
    confidence=1.0,
    needs=(Need("consume_log"),),
    thresholds=("findings.duplicate_warn_messages", "findings.lost_s", "findings.failed_over_s"),
    causes=(
        Cause("offset_rewind", same=("consumer_group",), after_s=180),
        Cause("offset_reset", same=("consumer_group",), after_s=180),
        Cause("offset_beyond_max", same=("consumer_group",), after_s=180),
        Cause("consumer_lost", same=("consumer_group",), after_s=150),
        Cause("double_owned_queue", same=("consumer_group",)),
        Cause("strategy_conflict", same=("consumer_group",)),
        Cause("subscription_conflict", same=("consumer_group",)),
        Cause("broker_down", same=("broker_name",), after_s=60, of_master=True),
    ),
)
QUEUE_OF_GROUP = ("consumer_group", "queue_topic", "broker_name", "queue_id")


def duplicate_findings(
    repeated: pl.DataFrame,
    found: pl.DataFrame,
    continuity: pl.DataFrame,
    resets: pl.DataFrame,
    owners: pl.DataFrame,
    cluster: str,
    *,
    gap_s: int,
    after_s: int,
    warn_messages: int,
) -> pl.DataFrame:
    """Return DUPLICATE_DELIVERY: one finding for each group and cause, or without a cause for each group and broker.

    ``repeated`` has the rows of deliveries's repeated_deliveries of all shards, ``found`` the findings of all
    other kinds. ``continuity`` is gold.offset_continuity, ``resets`` offset_resets' frame, ``owners`` gold.queue_owner.
    Outages count until ``after_s`` seconds after their end. Without a cause, deliveries ``gap_s`` seconds apart or less
    are one finding, and more than ``warn_messages`` of a queue that changed hands.
    """
    rows = with_cause(repeated, found, continuity, resets, owners, after_s)
    caused = rows.filter(pl.col("cause_id") != "").with_columns(pl.lit(0, pl.UInt32).alias("session"))
    alone = with_session(rows.filter(pl.col("cause_id") == ""), (GROUP, "broker_name", RETAKEN), "ts", "ts", gap_s)
    of_queue = pl.struct(DELIVERED_MESSAGE).n_unique().over(*QUEUE_OF_GROUP, RETAKEN, "session")
    unusual = alone.filter(~pl.col(RETAKEN) | (of_queue > warn_messages))
    by = ("consumer_group", "cause_id", "cause_kind", "session")
    merged = pl.concat(
        [
            caused.group_by(by).agg(*_counts(), one_or_none("broker_name")),
            unusual.group_by(*by, "broker_name", RETAKEN).agg(*_counts()).select(*by, *_COUNTED, "broker_name"),
        ]
    )
    return _findings(merged, cluster, warn_messages)


_COUNTED = ("from_ts", "to_ts", "redelivered", "same_client", "topics", "topic", "queue_id", "evidence")


def _counts() -> list[pl.Expr]:
    return [
        pl.col("ts").min().alias("from_ts"),
        pl.col("ts").max().alias("to_ts"),
        pl.struct(DELIVERED_MESSAGE).n_unique().cast(pl.Int64).alias("redelivered"),
        (~pl.col(RETAKEN)).any().alias("same_client"),
        pl.col("topic").n_unique().alias("topics"),
        one_or_none("topic"),
        one_or_none("queue_id"),
        evidence("silver.consume", "record_id"),
    ]


def _findings(merged: pl.DataFrame, cluster: str, warn_messages: int) -> pl.DataFrame:
    several = pl.when(pl.col("topics") > 1).then("topics").alias("topics")
    return finding(merged.with_columns(several, usual=warn_messages), DUPLICATE_DELIVERY, cluster, severity="warning")


RETAKEN = "retaken"  # another client received the message, or the same one after it had taken the queue anew
# A reset reaches a client at once, and shows in a copy of the broker's file: the client waits 10 s, commits each 5 s,
# the broker saves each 5 s, and copies are seconds apart.
SHOWN_LATE = pl.duration(seconds=30)
FLIGHT = pl.duration(seconds=15)  # messages that a client had begun to process end after the reset
TAKEN_AFTER = pl.duration(seconds=150)  # who takes the queues of a lost client has received its messages by then
NEAR = pl.duration(seconds=60)
EXACT = pl.duration(seconds=2)
CAUSE = ("cause_id", "cause_kind")


def with_cause(
    repeated: pl.DataFrame,
    found: pl.DataFrame,
    continuity: pl.DataFrame,
    resets: pl.DataFrame,
    owners: pl.DataFrame,
    after_s: int,
) -> pl.DataFrame:
    """Return the repeated deliveries with RETAKEN, cause_id (empty: no finding explains it) and cause_kind.

    The frames are those of duplicates.duplicate_findings.
    """
    queue_topic = pl.coalesce("queue_topic", "topic")  # of a message that came back: the retry topic
    rows = repeated.with_columns(queue_topic.alias("queue_topic"), pl.col("topic").alias("own_topic"))
    rows = _with_retaken(rows.with_columns(pl.col("queue_topic").alias("topic")), owners)
    of_offset = _by_offset(rows, found, continuity, resets)
    others = [
        _by_loss(rows, found, ["consumer_group", "previous_client_id"]),
        _by_loss(rows, found, ["consumer_group"]),
        _while_it_lasts(rows, found, "double_owned_queue", ["consumer_group", "topic"]),
        _while_it_lasts(rows, found, "strategy_conflict", ["consumer_group"]),
        _while_it_lasts(rows, found, "subscription_conflict", ["consumer_group"]),
        _by_outage(rows, found, after_s),
    ]
    cause, kind = (pl.coalesce(pl.Series(part[name]) for part in (of_offset, *others)) for name in CAUSE)
    return rows.with_columns(
        pl.col("own_topic").alias("topic"), cause.fill_null("").alias("cause_id"), kind.alias("cause_kind")
    ).drop("own_topic")


def _with_retaken(rows: pl.DataFrame, owners: pl.DataFrame) -> pl.DataFrame:
    """Add RETAKEN; an owner's interval may be dated a little after the first delivery that it explains."""
    by = [*GROUP_QUEUE, "client_id"]
    asked = rows.with_columns((pl.col("ts") + EXACT).alias("_at"))
    held = as_of(asked, owners, by, "_at", {"_since": "from_ts"}, right_at="from_ts")
    anew = (pl.col("_since") > pl.col("previous_ts")).fill_null(value=False)
    moved = pl.col("client_id") != pl.col("previous_client_id")
    return held.with_columns((moved | anew).alias(RETAKEN)).drop("_at", "_since")


def _by_offset(rows: pl.DataFrame, found: pl.DataFrame, continuity: pl.DataFrame, resets: pl.DataFrame) -> pl.DataFrame:
    """Return CAUSE of each row: the latest rewind or reset of the queue that made the group start at or below it."""
    went_back = continuity.filter((pl.col("kind") == "rewind") & (pl.col("broker_id") == 0)).with_columns(
        pl.coalesce("from_ts", "to_ts").alias("since_ts")
    )
    # After a reset, clients commit the new offset or a later one: the reset itself came before, and counts if known.
    by_reset = pl.col("cause").is_in(["reset", "client_commit"])
    happened = pl.when(by_reset).then(pl.col("since_ts") - NEAR).otherwise("to_ts")
    went_back = went_back.with_columns(happened.alias("happened_ts"))
    corrected = pl.col("cause") == "corrected"
    rewinds, corrections = went_back.filter(~corrected), went_back.filter(corrected)
    resets = resets.select(
        *GROUP_QUEUE,
        "record_id",
        pl.col("offset").alias("new_offset"),
        pl.col("since").alias("since_ts"),
        pl.col("ts").alias("to_ts"),
        pl.col("ts").alias("happened_ts"),
    )
    whole = resets.filter(pl.col("broker_name").is_not_null() & pl.col("queue_id").is_not_null())
    wide = resets.join(whole, on="record_id", how="anti")
    found_ids = [
        *[_event(rows, rewinds, GROUP_QUEUE, found, "offset_rewind", late, EXACT) for late in (SHOWN_LATE, EXACT)],
        *[
            _event(rows, corrections, GROUP_QUEUE, found, "offset_beyond_max", late, EXACT)
            for late in (SHOWN_LATE, EXACT)
        ],
        _event(rows, whole, GROUP_QUEUE, found, "offset_reset", EXACT, FLIGHT),
        _event(rows, wide, ("consumer_group", "topic"), found, "offset_reset", EXACT, FLIGHT),
    ]
    best = found_ids[0]
    for other in found_ids[1:]:
        later = (other["happened_ts"] > best["happened_ts"]).fill_null(value=False) | best["happened_ts"].is_null()
        best = pl.DataFrame({name: other[name].zip_with(later, best[name]) for name in best.columns})
    return best


def _event(
    rows: pl.DataFrame,
    events: pl.DataFrame,
    by: Sequence[str],
    found: pl.DataFrame,
    kind: str,
    late: pl.Expr,
    flight: pl.Expr,
) -> pl.DataFrame:
    """Return CAUSE and happened_ts: the last event that may explain each row, and the finding of ``kind`` with it.

    ``events`` has ``by``, new_offset, since_ts, to_ts and happened_ts. An event is seen up to ``late`` after it
    happened. Messages may first be delivered up to ``flight`` after it.
    """
    numbered = events.sort("since_ts", "to_ts").with_row_index("event")
    asked = rows.with_columns((pl.col("ts") + late).alias("_at"))
    last = as_of(asked, numbered, by, "_at", {"event": "event"}, right_at="since_ts").select(
        "consumer_group", "topic", "previous_ts", "stored_ts", "queue_offset", "event"
    )
    known = last.join(
        numbered.select("event", "new_offset", "to_ts", "happened_ts"), on="event", how="left", maintain_order="left"
    )
    at_or_below = pl.col("new_offset").is_null() | (pl.col("new_offset") <= pl.col("queue_offset"))
    stored = (pl.col("stored_ts") <= pl.col("to_ts") + EXACT).fill_null(value=True)
    possible = (pl.col("previous_ts") <= pl.col("to_ts") + flight) & at_or_below & stored
    placed = known.with_columns(pl.when(possible).then("to_ts").alias("event_ts"))
    by_topic = ["consumer_group", "topic"]
    inside, near = (_finding_at(placed, found, kind, by_topic, "event_ts", reach, reach) for reach in (EXACT, NEAR))
    either = {name: pl.coalesce(inside[name], near[name]) for name in CAUSE}
    return placed.with_columns(**either).select(
        *CAUSE, pl.when(pl.col("cause_id").is_not_null()).then("happened_ts").alias("happened_ts")
    )


def _by_loss(rows: pl.DataFrame, found: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """Return CAUSE of the rows whose queue changed hands as a member of the group was lost."""
    lost = found.rename({"client_id": "previous_client_id"})
    named = _finding_at(rows, lost, "consumer_lost", by, "ts", EXACT, TAKEN_AFTER)
    return named.select(pl.when(RETAKEN).then(pl.col(name)).alias(name) for name in CAUSE)


def _while_it_lasts(rows: pl.DataFrame, found: pl.DataFrame, kind: str, by: Sequence[str]) -> pl.DataFrame:
    """Return CAUSE of the rows whose queue changed hands while the members of the group disagreed."""
    named = _finding_at(rows, found, kind, by, "ts", SHOWN_LATE, NEAR)
    return named.select(pl.when(RETAKEN).then(pl.col(name)).alias(name) for name in CAUSE)


def _by_outage(rows: pl.DataFrame, found: pl.DataFrame, after_s: int) -> pl.DataFrame:
    """Return CAUSE of the rows that were delivered again while the master of their queue was down, or soon after."""
    masters = found.filter(pl.col("broker_id") == 0)
    return _finding_at(rows, masters, "broker_down", ["broker_name"], "ts", EXACT, pl.duration(seconds=after_s)).select(
        CAUSE
    )


def _finding_at(
    rows: pl.DataFrame,
    found: pl.DataFrame,
    kind: str,
    by: Sequence[str],
    at: str,
    before: pl.Expr,
    after: pl.Expr,
) -> pl.DataFrame:
    """Return the rows, in their order, with CAUSE: the last finding of a kind that had begun at an instant.

    It may begin up to ``before`` later, and must not have ended more than ``after`` earlier.
    """
    causes = found.filter(pl.col("kind") == kind).sort("from_ts", "finding_id").with_row_index("_number")
    asked = rows.with_columns((pl.col(at) + before).alias("_at"))
    last = as_of(asked, causes, by, "_at", {"_number": "_number"}, right_at="from_ts")
    spans = causes.select(
        "_number", pl.col("finding_id").alias("cause_id"), pl.coalesce("to_ts", "from_ts").alias("_ended")
    )
    known = last.join(spans, on="_number", how="left", maintain_order="left")
    lasts = (pl.col("_ended") + after >= pl.col(at)).fill_null(value=False)
    return known.with_columns(
        pl.when(lasts).then("cause_id").alias("cause_id"), pl.when(lasts).then(pl.lit(kind)).alias("cause_kind")
    ).drop("_at", "_number", "_ended")
