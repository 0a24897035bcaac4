"""Members and queues of groups over the night, by the rules of `mqreplay at`."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

import polars as pl

from mqreplay.core.pull_check import FLAG_COMMIT_OFFSET
from mqreplay.core.retry_topic import RETRY_GROUP_TOPIC_PREFIX as RETRY
from mqreplay.core.topic_route import MASTER_ID
from mqreplay.evidence.arrays.keys import QUEUE
from mqreplay.evidence.offsets.queue_events import accepted_commits
from mqreplay.moment.instant import Recorded
from mqreplay.moment.queues import stated_ends
from mqreplay.moment.steps import first_ms, last_ms, rows_of, spans_of

GROUP = "consumer_group"
LINE = [GROUP, *QUEUE]
SLOTS = 180  # instants of the night at which lag is known
REACH = dt.timedelta(days=1)  # older offsets are not looked for
REMOVED = -(2**63)  # in place of an offset that a copy no longer has
OF_COMMIT = ("kind", "commit_offset", "error", "response_code", "remark")


@dataclass(frozen=True)
class QueueFrames:
    """Frames of a night; instants are milliseconds since it began.

    ``members``: consumer_group, client_id, from_ts, to_ts, shares_queues, begin, end (the first one after it).
    ``held``: LINE, begin, end (exclusive): at least one client held the queue. ``known``: LINE, since: from then on
    the group is known to read the queue. ``lines``: LINE, line: numbers of those with a committed offset.
    ``lag``: line, slot, lag: from the start of the slot, by line and slot.
    """

    members: pl.DataFrame
    held: pl.DataFrame
    known: pl.DataFrame
    lines: pl.DataFrame
    lag: pl.DataFrame


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
    spans = owned.select(*LINE, first_ms("from_ts", night).alias("begin"), first_ms("to_ts", night).alias("end"))
    committed, ends, suggested = _offsets(night)
    lines = committed.select(LINE).unique().with_row_index("line")
    known = pl.concat([committed.group_by(LINE).agg(pl.col("since").min()), suggested.select(*LINE, "since")])
    return QueueFrames(
        members,
        merged(spans.filter(pl.col("end") > pl.col("begin")).collect(), LINE),
        known.group_by(LINE).agg(pl.col("since").min()),
        lines,
        lag_of_lines(lines, committed, ends),
    )


def merged(spans: pl.DataFrame, key: list[str]) -> pl.DataFrame:
    """Join spans (begin, end) of each key where they touch or overlap."""
    before = pl.col("end").cum_max().shift(1).over(key)
    new = (pl.col("begin") > before).fill_null(value=True)
    runs = spans.sort(*key, "begin", "end").with_columns(new.cum_sum().alias("run"))
    joined = runs.group_by(*key, "run").agg(pl.col("begin").min(), pl.col("end").max())
    return joined.drop("run").sort(*key, "begin")


def _offsets(night: Recorded) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Return the last committed offset and the last end in each slot, and since when a suggestion is known.

    A slot is the number of the first of SLOTS instants at which the value holds.
    """

    def rows(table: str, ts: str) -> pl.LazyFrame:
        return rows_of(night, table, ts, REACH)

    master = pl.col("broker_id").fill_null(MASTER_ID) == MASTER_ID
    own = ~pl.col("topic").str.starts_with(RETRY)
    copies = [
        rows(name, "to_ts")
        .filter(pl.col("broker_id") == MASTER_ID, pl.col("client_id").is_null(), own)
        .select(*LINE, pl.col("new_offset").alias("offset"), pl.col("to_ts").alias("ts"), pl.lit(2).alias("order"))
        for name in ("silver.offset_checkpoint", "silver.offset_change")
    ]
    sent = rows("silver.offset_commit", "ts").filter(master, own).select(*LINE, "ts", *OF_COMMIT).collect()
    commits = accepted_commits(sent).lazy()
    pulls = rows("silver.pull", "request_ts").filter(own)
    carries = (pl.col("sys_flag") & FLAG_COMMIT_OFFSET) == FLAG_COMMIT_OFFSET
    carried = pulls.filter(carries, master, pl.col("commit_offset") > 0)
    committed = [
        *copies,
        commits.select(*LINE, pl.col("commit_offset").alias("offset"), "ts", pl.lit(1).alias("order")),
        carried.select(*LINE, pl.col("commit_offset").alias("offset"), pl.col("request_ts").alias("ts"), order=3),
    ]
    answered = pulls.filter(pl.col("response_ts") <= night.last)
    stated = stated_ends(night, rows("silver.topic_stats", "ts"), answered)
    ends = stated.select(*QUEUE, "ts", pl.col("end_offset").alias("offset"), order=1)
    suggested = (
        answered.filter(pl.col("suggest_which_broker_id").is_not_null())
        .group_by(LINE)
        .agg(pl.col("response_ts").min().alias("ts"))
        .with_columns(first_ms("ts", night).alias("since"))
    )
    made = [_by_slot(night, pl.concat(committed), LINE), _by_slot(night, ends, list(QUEUE)), suggested]
    first, second, third = pl.collect_all(made)
    return first, second, third


def _by_slot(night: Recorded, events: pl.LazyFrame, key: list[str]) -> pl.LazyFrame:
    since = (pl.col("ts") - pl.lit(night.first)).dt.total_microseconds()
    width = slot_ms((night.last - night.first).total_seconds()) * 1_000
    slot = (-(-since // width)).clip(0).cast(pl.Int32).alias("slot")
    last = pl.col("offset").sort_by("ts", "order", "offset").last()
    in_slot = events.group_by(*key, slot).agg(last, pl.col("ts").min())
    return in_slot.with_columns(first_ms("ts", night).alias("since"))


def slot_ms(seconds: float) -> int:
    """Return the length of a slot in milliseconds: SLOTS + 1 instants hold the night.

    >>> slot_ms(1_800)
    10000
    """
    return max(int(-(-seconds * 1_000 // SLOTS)), 1)


def lag_of_lines(lines: pl.DataFrame, committed: pl.DataFrame, ends: pl.DataFrame) -> pl.DataFrame:
    """Return the messages between offset and end at each slot in which one of them changes: line, slot, lag."""
    offsets = committed.join(lines, LINE).select("line", "slot", pl.col("offset").fill_null(REMOVED))
    of_ends = ends.join(lines, list(QUEUE)).select("line", "slot", pl.col("offset").alias("end"))
    changes = pl.concat([offsets, of_ends], how="diagonal").group_by("line", "slot").agg(pl.col("offset", "end").max())
    known = changes.sort("line", "slot").with_columns(pl.col("offset", "end").forward_fill().over("line"))
    offset = pl.when(pl.col("offset") != REMOVED).then("offset")
    return known.select("line", "slot", (pl.col("end") - offset).clip(0).alias("lag"))
