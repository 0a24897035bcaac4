"""Members and queues of groups over the night, by the rules of `mqreplay at`."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

import polars as pl

from mqreplay.core.retry_topic import RETRY_GROUP_TOPIC_PREFIX as RETRY
from mqreplay.evidence.intervals import INSTANT, intersect, merge
from mqreplay.evidence.members.ownership import disputes
from mqreplay.evidence.offsets.queue_ends import lag_of
from mqreplay.moment.instant import Recorded
from mqreplay.moment.offsets import offset_events, stated_ends
from mqreplay.moment.steps import first_ms, last_ms, rows_of, spans_of
from mqreplay.words.keys import GROUP, GROUP_QUEUE, GROUP_TOPIC, QUEUE

LAG_SLOTS = 180  # instants of the night at which lag is known
REACH = dt.timedelta(days=1)  # older offsets are not looked for
EVENT_ORDER = pl.Enum(["commit", "copy", "pull"])
REMOVED_OFFSET = -(2**63)  # in place of an offset that a copy no longer has; it has no lag


@dataclass(frozen=True)
class QueueFrames:
    """Frames of a night; ``begin`` and ``end`` are milliseconds since it began.

    ``members``: consumer_group, client_id, from_ts, to_ts, shares_queues, begin, end (the first one after it).
    ``owned``: GROUP_QUEUE, client_id, from_ts, to_ts, of queues that a client held.
    ``known``: GROUP_QUEUE, ts: from then on the group is known to read the queue.
    ``lines``: GROUP_QUEUE, line: numbers of those with a committed offset.
    ``lag``: line, slot, lag: from the start of the slot, by line and slot.
    ``ends``: QUEUE, slot, offset: the last end that was stated before the slot.
    """

    members: pl.DataFrame
    owned: pl.DataFrame
    known: pl.DataFrame
    lines: pl.DataFrame
    lag: pl.DataFrame
    ends: pl.DataFrame


def queue_frames(night: Recorded) -> QueueFrames:
    """Read members and queues of the night."""
    members = (
        spans_of(night, "gold.member")
        .select(GROUP, "client_id", "from_ts", "to_ts", "ended", "shares_queues")
        .with_columns(first_ms("from_ts", night).alias("begin"), (last_ms("to_ts", night) + 1).alias("end"))
        .sort(GROUP, "client_id", "begin", "end")
        .collect()
    )
    owned = spans_of(night, "gold.queue_owner").filter(~pl.col("topic").str.starts_with(RETRY))
    owned = owned.filter(pl.col("to_ts") > pl.col("from_ts"))
    committed, ends, suggested = _offsets(night)
    lines = committed.select(GROUP_QUEUE).unique().with_row_index("line")
    known = pl.concat([each.select(*GROUP_QUEUE, "ts") for each in (committed, suggested)])
    return QueueFrames(
        members,
        owned.select(*GROUP_QUEUE, "client_id", "from_ts", "to_ts").collect(),
        known.group_by(GROUP_QUEUE).agg(pl.col("ts").min()),
        lines,
        lag_of_lines(lines, committed, ends),
        ends,
    )


def unowned(frames: QueueFrames, night: Recorded) -> pl.DataFrame:
    """Return the times in which nobody held a queue that its group is known to read: GROUP_QUEUE, begin, end."""
    until = pl.lit(night.last + dt.timedelta(milliseconds=1), INSTANT)
    due = frames.known.select(*GROUP_QUEUE, pl.col("ts").alias("from_ts"), until.alias("to_ts"))
    spans = disputes(frames.owned, due).filter(pl.col("owners") == 0)
    return spans.select(*GROUP_QUEUE, first_ms("from_ts", night).alias("begin"), first_ms("to_ts", night).alias("end"))


def shared_or_dropped(owned: pl.DataFrame) -> pl.DataFrame:
    """Return `disputes` of the queues that were held, while anything of the group and topic was.

    A queue that came or went with its broker or topic is not due before or after.
    """
    extent = owned.group_by(GROUP_QUEUE).agg(pl.col("from_ts").min(), pl.col("to_ts").max())
    return disputes(owned, intersect(extent, merge(owned, GROUP_TOPIC), GROUP_TOPIC))


def _offsets(night: Recorded) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Return the last committed offset and the last end in each slot, and since when a suggestion is known.

    A slot is the number of the first of LAG_SLOTS instants at which the value holds.
    """

    def rows(table: str, ts: str) -> pl.LazyFrame:
        return rows_of(night, table, ts, REACH)

    def own_rows(table: str, ts: str) -> pl.LazyFrame:
        return rows(table, ts).filter(~pl.col("topic").str.starts_with(RETRY))

    answered = own_rows("silver.pull", "request_ts").filter(pl.col("response_ts") <= night.last)
    stated = stated_ends(night, rows).filter(~pl.col("topic").str.starts_with(RETRY))
    ends = stated.select(*QUEUE, "ts", pl.col("end_offset").alias("offset"), order=1)
    order = pl.col("committed_by").cast(EVENT_ORDER).alias("order")  # sorts faster than text
    committed = offset_events(own_rows).select(
        *GROUP_QUEUE, pl.col("committed").alias("offset"), pl.col("committed_ts").alias("ts"), order
    )
    suggested = (
        answered.filter(pl.col("suggest_which_broker_id").is_not_null())
        .group_by(GROUP_QUEUE)
        .agg(pl.col("response_ts").min().alias("ts"))
    )
    frames = [_by_slot(night, committed, GROUP_QUEUE), _by_slot(night, ends, QUEUE), suggested]
    first, second, third = pl.collect_all(frames)
    return first, second, third


def _by_slot(night: Recorded, events: pl.LazyFrame, key: tuple[str, ...]) -> pl.LazyFrame:
    since = (pl.col("ts") - pl.lit(night.first)).dt.total_microseconds()
    width = slot_ms((night.last - night.first).total_seconds()) * 1_000
    slot = (-(-since // width)).clip(0).cast(pl.Int32).alias("slot")
    last = pl.col("offset").sort_by("ts", "order", "offset").last()
    return events.group_by(*key, slot).agg(last, pl.col("ts").min())


def slot_ms(seconds: float) -> int:
    """Return the length of a slot in milliseconds: LAG_SLOTS + 1 instants hold the night.

    >>> slot_ms(1_800)
    10000
    """
    return max(int(-(-seconds * 1_000 // LAG_SLOTS)), 1)


def lag_of_lines(lines: pl.DataFrame, committed: pl.DataFrame, ends: pl.DataFrame) -> pl.DataFrame:
    """Return the messages between offset and end at each slot in which one of them changes: line, slot, lag."""
    offsets = committed.join(lines, GROUP_QUEUE).select("line", "slot", pl.col("offset").fill_null(REMOVED_OFFSET))
    of_ends = ends.join(lines, list(QUEUE)).select("line", "slot", pl.col("offset").alias("end"))
    changes = pl.concat([offsets, of_ends], how="diagonal").group_by("line", "slot").agg(pl.col("offset", "end").max())
    known = changes.sort("line", "slot").with_columns(pl.col("offset", "end").forward_fill().over("line"))
    return known.select("line", "slot", lag_of("end", "offset"))
