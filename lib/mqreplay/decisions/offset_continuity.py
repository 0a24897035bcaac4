"""gold.offset_continuity: breaks of a consumer offset that a broker stores: changes other than a plain advance.

ConsumerOffsetManager#commitOffset stores any offset, so every break is possible; each kind needs its proof:
  rewind      the next snapshot holds a lower offset
  vanished    the next snapshot holds none
  beyond_max  the master, asked after it, stated that the queue ends before the offset; without such a statement: the
              offset rose far, and returned to about its old value, because the broker corrects an offset past the end
  below_min   the master stated, before it, that the queue begins after the offset
  jump        the offset rose past messages that the group did not receive: by a reset, or the next pull skips them
  stale       a slave's file stayed below all recent offsets of its master's file (slave_copies.py)
A large rise alone is no break: one slow message holds an offset back, and then releases it at once (ProcessQueue).
Without copies of a broker's offsets, its log and clients' commits show rewinds (lowered_commits.py).
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Final

import numpy as np
import polars as pl
import pyarrow as pa

from mqreplay.decisions.decision import QUEUE_WORDS, Decision, RowCount
from mqreplay.decode.kind import OFFSET_PHRASES, ON_BROKER
from mqreplay.decode.recording.advice import Need
from mqreplay.evidence.arrays.frame_arrays import (
    INT64_MIN,
    NOWHERE,
    Mask,
    Numbers,
    instants,
    lengths,
    less,
    one_later,
    starts,
)
from mqreplay.evidence.arrays.nearest import as_of, nearest
from mqreplay.evidence.frames import first_of
from mqreplay.evidence.offsets.break_causes import OVERTAKEN, UNKNOWN_CAUSE
from mqreplay.evidence.offsets.offset_causes import (
    BEGAN,
    COPIED,
    has_master,
    with_awaited_reset,
    with_committed,
    with_extent,
    with_refused_query,
    with_reset,
    with_reset_ahead,
    with_skip,
)
from mqreplay.evidence.offsets.queue_events import COPIES, QueueEvents
from mqreplay.words.keys import GROUP_QUEUE, QUEUE

CHAIN = ["source_name", *GROUP_QUEUE]  # of one offset in one file
ORDER = ["to_ts", "from_ts", "previous_offset", "new_offset", "source_digest"]
LEAP = 1000  # messages
LEAP_TIMES = 100  # as many as the queue grew meanwhile: no group consumes so much at once and goes back
# A client commits each 5 s (persistConsumerOffsetInterval) and with each pull. A broker takes the two from different
# queues of requests, so the older may be stored last, until the next. At most a batch (pullBatchSize) is between them.
OVERTAKEN_MESSAGES, OVERTAKEN_S = 32, 15


def offset_continuity(
    offset_change: pl.DataFrame,
    ends: pl.DataFrame,
    suspects: pl.DataFrame,
    resets: pl.DataFrame,
    skips: pl.DataFrame,
    offset_commit: pl.DataFrame,
    pull: pl.DataFrame,
    groups_with_commits: AbstractSet[str],
    reset_reach_s: int,
    lowered: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """Return one row a break in the offsets of a shard's queues, on each broker whose file shows it.

    The table is the concatenation over the shards. ``offset_change``, ``offset_commit`` and ``pull`` are the shard's
    rows of the silver tables; only brokers' files are judged. ``ends`` is queue_ends' frame, ``resets`` offset_resets',
    ``suspects`` and ``skips`` those of the functions; rows of other queues in these four have no effect.
    ``groups_with_commits`` are the groups of which commits were recorded, in any shard.
    ``reset_reach_s`` is how long a reset takes at most to show in a snapshot (clients commit it, slaves copy it).
    ``lowered`` is lowered_commits' frame.
    """
    # In most queues nothing can be wrong: only the changes of the others are judged.
    judged = pl.concat([frame.select(GROUP_QUEUE) for frame in (suspects, resets, skips)]).unique()
    changes = offset_change.filter(pl.col("broker_id").is_not_null()).join(judged, on=GROUP_QUEUE, how="semi").unique()
    none = {"client_addr": pl.lit(None, pl.String), "answered_max": pl.lit(None, pl.Int64)}
    changes = changes.with_columns(source=pl.lit(COPIES), **none)
    if lowered is not None:
        judged = pl.concat([judged, lowered.select(GROUP_QUEUE)]).unique()
        changes = pl.concat([changes, lowered.select(changes.columns)])
    commits, pulls = (frame.join(judged, on=GROUP_QUEUE, how="semi") for frame in (offset_commit, pull))
    changes = _with_ends(changes, ends.join(judged, on=QUEUE, how="semi"))
    changes = with_skip(with_reset(changes, resets, reset_reach_s), skips, reset_reach_s)
    changes = with_refused_query(changes, commits, skips, reset_reach_s)
    changes = with_committed(changes, commits, pulls, groups_with_commits, reset_reach_s)
    changes = with_reset_ahead(changes, resets, skips, reset_reach_s)
    changes = with_extent(with_awaited_reset(changes, resets), resets, pulls, reset_reach_s)
    changes = _with_leaps(changes.sort(ORDER), offset_change)
    changes = changes.with_columns(_kind().alias("kind"), has_master(changes).alias("has_master"))
    # The row before has the proof that an offset was past the end: it was judged when it was set.
    before = {"kind_before": "kind", "end_before": "answered_end", "ts_before": "to_ts", "leapt_before": "leapt"}
    return (
        changes.with_columns(
            *(pl.col(column).shift(1).over(CHAIN).alias(name) for name, column in before.items()),
            overtaken=_overtaken(),
        )
        .filter(pl.col("kind").is_not_null())
        .select(
            "day",
            "broker_name",
            "broker_id",
            "topic",
            "consumer_group",
            "queue_id",
            "kind",
            "previous_offset",
            "new_offset",
            less("new_offset", pl.coalesce("previous_offset", "new_offset")).abs().alias("size"),
            BEGAN.alias("from_ts"),
            "to_ts",
            _cause().alias("cause"),
            _redelivered_max().alias("redelivered_max"),
            "queue_min_offset",
            "queue_max_offset",
            "source",
            "client_addr",
            "source_digest",
        )
    )


def _with_ends(changes: pl.DataFrame, ends: pl.DataFrame) -> pl.DataFrame:
    """Add queue_max_offset, asked first after the change, and queue_min_offset, stated last before it.

    And ``answered_end``, the end answered first after the change, which is at most the end to which a pull after it
    corrects the offset; ``max_before``, the end asked first after the copy before the change, or ``answered_max``.
    """
    asked = changes.with_columns(BEGAN.alias("_began"))
    # Where queues were asked one by one, only one of both may be known.
    lows, highs = (ends.filter(pl.col(name).is_not_null()) for name in ("queue_min_offset", "queue_max_offset"))
    asked = as_of(
        asked, highs, QUEUE, "to_ts", {"queue_max_offset": "queue_max_offset"}, right_at="asked_at", after=True
    )
    asked = as_of(asked, highs, QUEUE, "to_ts", {"answered_end": "queue_max_offset"}, right_at="at", after=True)
    asked = as_of(asked, lows, QUEUE, "_began", {"queue_min_offset": "queue_min_offset"}, right_at="at")
    asked = as_of(asked, highs, QUEUE, "_began", {"max_before": "queue_max_offset"}, right_at="asked_at", after=True)
    return asked.with_columns(max_before=pl.coalesce("answered_max", "max_before")).drop("_began", "answered_max")


def _with_leaps(changes: pl.DataFrame, offset_change: pl.DataFrame) -> pl.DataFrame:
    """Return the changes, sorted by ORDER, with ``leapt``: whether an offset was past the end, where no end is known.

    It rose by LEAP messages or more, and the next change took it back to a little more than where it had been: the end
    of the queue, to which the broker corrects it. No other group was so far in that queue.
    """
    old, new = pl.col("previous_offset"), pl.col("new_offset")
    next_old, back_to = (pl.col(name).shift(-1).over(CHAIN) for name in ("previous_offset", "new_offset"))
    rise, growth = less(new, old), less(back_to, old)
    comes_back = (next_old == new) & (growth > 0) & (rise >= LEAP) & (rise // LEAP_TIMES >= growth)
    leaps = changes.with_columns(leapt=(comes_back & pl.col("queue_max_offset").is_null()).fill_null(False))
    if not leaps["leapt"].any():
        return leaps
    queues = leaps.filter("leapt").select(QUEUE).unique()
    reached = offset_change.filter(pl.col("broker_id").is_not_null()).join(queues, QUEUE, how="semi")
    reached = reached.group_by(*QUEUE, "consumer_group").agg(pl.col("new_offset").max().alias("reached"))
    others = leaps.with_row_index("_row").filter("leapt").join(reached, QUEUE, suffix="_other")
    farther = (pl.col("consumer_group_other") != pl.col("consumer_group")) & (pl.col("reached") >= new)
    real = others.filter(farther)["_row"].unique().implode()
    is_real = pl.int_range(pl.len(), dtype=pl.UInt32).is_in(real)
    return leaps.with_columns(leapt=pl.col("leapt") & ~is_real)


def _kind() -> pl.Expr:
    new, old = pl.col("new_offset"), pl.col("previous_offset")
    rose = old.is_null() | (new > old)
    is_past = pl.col("leapt") | (rose & (new > pl.col("queue_max_offset")))
    return first_of(
        (new.is_null(), "vanished"),
        (new < old, "rewind"),
        (is_past, "beyond_max"),
        (new < pl.col("queue_min_offset"), "below_min"),
        (old.is_not_null() & (pl.col("reset") | pl.col("skipped")), "jump"),
    )


def _corrected() -> pl.Expr:
    """Return whether an offset past the end was set back to the end, as the next pull does, and not further back.

    If it was set during the recording, the end is the one stated then; otherwise the one stated after the first copy.
    """
    new, old = pl.col("new_offset"), pl.col("previous_offset")
    set_back = (pl.col("kind_before") == "beyond_max") & (new >= pl.col("end_before"))
    is_first = pl.col("ts_before").is_null() | (pl.col("source") != COPIES)
    set_earlier = is_first & (old > pl.col("max_before"))
    return set_back.fill_null(False) | set_earlier.fill_null(False) | pl.col("leapt_before").fill_null(False)


def _overtaken() -> pl.Expr:
    """Return whether an offset went back by few messages and was restored by the next commit, of rows by ORDER."""
    old, new = pl.col("previous_offset"), pl.col("new_offset")
    restored = pl.col("new_offset").shift(-1).over(CHAIN) >= old
    soon = pl.col("to_ts").shift(-1).over(CHAIN) <= pl.col("to_ts") + pl.duration(seconds=OVERTAKEN_S)
    return (less(old, new) <= OVERTAKEN_MESSAGES) & restored & soon


def _cause() -> pl.Expr:
    kind, committed = pl.col("kind"), pl.col("committed")
    return first_of(
        (kind == "vanished", "removed"),
        ((kind == "rewind") & _corrected(), "corrected"),
        ("reset", "reset"),
        ((kind == "jump") & pl.col("refused_query"), "refused_query"),
        (committed, "client_commit"),
        ((pl.col("broker_id") > 0) & pl.col("has_master"), COPIED),
        # A broker's log and commits show a commit, whoever sent it.
        (pl.col("source") != COPIES, "client_commit"),
        (~committed, "set_from_outside"),
        ((kind == "rewind") & pl.col("overtaken"), OVERTAKEN),
        otherwise=UNKNOWN_CAUSE,
    )


def _redelivered_max() -> pl.Expr:
    """Return how many messages the queue held between the group's old offset, and its new one or the reset's.

    Messages that clients received and had not committed are delivered again, too.
    """
    top = pl.max_horizontal(pl.min_horizontal("previous_offset", "max_before"), "delivered_to")
    nothing = pl.lit(0, pl.Int64)
    bottom = pl.max_horizontal(pl.min_horizontal("new_offset", "reset_to"), pl.coalesce("queue_min_offset", nothing))
    # Messages past the end were never consumed, so an offset that is corrected delivers none again.
    again = pl.when(_corrected()).then(nothing).otherwise(pl.max_horizontal(less(top, bottom), nothing))
    is_other = pl.col("kind").is_in(["jump", "beyond_max", "below_min"])
    return pl.when(pl.col("kind") == "rewind").then(again).when(is_other).then(nothing)


def suspects(events: QueueEvents) -> pa.Table:
    """Return the queues whose offset fell, vanished or left the range that the master stated.

    Columns: consumer_group, topic, broker_name, queue_id.
    """
    rows = events.changes
    new, has_new = events.numbers("committed", rows)
    old, has_old = events.numbers("previous_offset", rows)
    fell = ~has_new | (has_old & (new < old))
    at = events.known("at", rows)
    since, has_since = events.numbers("also_at", rows)
    ends, queue = events.ends, events.queue[rows]
    began = np.where(has_since, since, at)
    high, above = _bound(queue, at, ends.queue, ends.asked_at, ends.high, ends.has_high, "after")
    low, below = _bound(queue, began, ends.queue, ends.at, ends.low, ends.has_low, "before")
    outside = (above & (new > high)) | (below & (new < low))
    found = rows[fell | outside]
    _, first = np.unique(events.key[found], return_index=True)
    return events.table(found[first], GROUP_QUEUE)


def _bound(
    queue: Numbers, at: Numbers, of: Numbers, stated_at: Numbers, value: Numbers, there: Mask, side: str
) -> tuple[Numbers, Mask]:
    rows = np.flatnonzero(there)
    # Of several statements at one instant the strictest counts: the lowest end, the highest beginning.
    rows = rows[np.argsort(value[rows], kind="stable")]
    place = nearest(queue, at, of[rows], stated_at[rows], side=side)
    if not len(rows):
        return np.zeros(len(queue), np.int64), np.zeros(len(queue), bool)
    return value[rows][place], place != NOWHERE


def skips(events: QueueEvents) -> pa.Table:
    """Return the pulls that begin past all messages that the group received.

    Columns: consumer_group, topic, broker_name, queue_id, ``skipped_from``, ``skipped_to`` (messages), ``ts``.

    The first pull of a queue skips nothing: what the group received before the recording is not known. Nor does a pull
    past the queue's end: it is corrected.
    """
    rows = events.pulls
    opaque, has_opaque = events.numbers("opaque", rows)
    at, key = events.known("at", rows), events.key[rows]
    rows = rows[np.lexsort((events.client_order[rows], opaque, has_opaque, at, key))]
    key, (begins, asks) = events.key[rows], events.numbers("queue_offset", rows)
    delivered, answered = events.numbers("next_begin_offset", rows)
    reaches = np.maximum(np.where(answered, delivered, INT64_MIN), np.where(asks, begins, INT64_MIN))
    reached = _running_most(key, reaches)
    most, known = events.numbers("max_offset", rows)
    skipped = np.flatnonzero(asks & known & (reached != INT64_MIN) & (begins > reached) & (begins <= most))
    found = rows[skipped]
    return events.table(
        found,
        GROUP_QUEUE,
        skipped_from=reached[skipped],
        skipped_to=begins[skipped],
        ts=instants(events.known("at", found)),
    )


def _running_most(key: Numbers, values: Numbers) -> Numbers:
    """Return for each row the greatest value of the rows of its key before it, LEAST for the first.

    Rows are sorted by key.
    """
    if not len(key):
        return values
    distinct, rank = np.unique(values, return_inverse=True)
    first = starts(key)
    run = np.repeat(np.arange(len(first)), lengths(first, len(key)))
    # Runs rise, so that no run's values are carried into the next.
    most = np.maximum.accumulate(run * (len(distinct) + 1) + rank) - run * (len(distinct) + 1)
    before = one_later(distinct[most])
    before[first] = INT64_MIN
    return before


OFFSET_CONTINUITY: Final = Decision(
    table="gold.offset_continuity",
    instant="to_ts",
    one="offset change",
    many="offset changes",
    importance=22,
    phrases=(
        OFFSET_PHRASES,
        QUEUE_WORDS,
        ON_BROKER,
        "{kind} of {size:,}",
        "cause {cause}",
        "sent from {client_addr}",
        "source {source}",
        "at most {redelivered_max:,} delivered again",
    ),
    needs=(Need("consumer_offset"), Need("offset_commits"), Need("server_requests")),
    count=RowCount("silver.offset_change"),
)
