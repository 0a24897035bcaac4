"""Offsets of a slave that stay behind its master's: SlaveSynchronize no longer copies them.

A slave copies its master's consumerOffset.json periodically. The only evidence are the recorded changes of the files:
if two copies of a file agree, the file was the same in between.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl
import pyarrow as pa

from mqreplay.decode.consumer_offset import FILE_NAMES
from mqreplay.evidence.arrays.distinct import common_codes
from mqreplay.evidence.arrays.frame_arrays import (
    COUNTLESS,
    INT64_MAX,
    INT64_MIN,
    NOWHERE,
    Mask,
    Numbers,
    last_such,
    lasts,
    lists,
    one_later,
    runs,
    spread,
    starts,
)
from mqreplay.evidence.arrays.nearest import as_of, nearest
from mqreplay.evidence.frames import instant_of, ms
from mqreplay.evidence.intervals import merge
from mqreplay.evidence.offsets.queue_events import COPIES, QueueEvents
from mqreplay.words.keys import GROUP_QUEUE, SLAVE

Copied = Mapping[str, Mapping[int, int]]  # broker name -> broker id -> time of the last copy of its file, microseconds
SLAVE_QUEUE = [*SLAVE, "consumer_group", "topic", "queue_id"]
SPAN = "STRUCT<began_ms: BIGINT, from_ms: BIGINT, to_ms: BIGINT, lacks: BIGINT, holds: BIGINT, has: BIGINT>"
# Order within a millisecond: the master's offset, the slave's offset, the slave's offset until then.
HELD, COPIED, LEFT, ENDED = range(4)


@dataclass(frozen=True)
class BothFiles:
    """Changes of two files of one broker name, by queue, group and slave, in order of time.

    ``row`` is the row of ``events``; ``copy`` a number for queue, group and slave; ``last`` the time of the last copy
    of the slave's file (microseconds), in the master's rows.
    """

    events: QueueEvents
    row: Numbers
    slave: Numbers
    copy: Numbers
    of_master: Mask
    last: Numbers

    @cached_property
    def first(self) -> Numbers:
        """Return the first row of each copy."""
        return starts(self.copy)

    @cached_property
    def at(self) -> Numbers:
        """Return the time of the copy that first shows the row's offset, in microseconds."""
        return self.events.known("at", self.row)

    @cached_property
    def offset(self) -> tuple[Numbers, Mask]:
        """Return the offset, and whether there is one."""
        return self.events.numbers("committed", self.row)

    def table(self, **found: pa.Array) -> pa.Table:
        """Return one row per copy: consumer_group, topic, broker_name, queue_id, slave_id and the values ``found``."""
        return self.events.table(self.row[self.first], GROUP_QUEUE, slave_id=self.slave[self.first], **found)


def both_files(events: QueueEvents, slaves: Copied) -> BothFiles:
    """Return the changes of broker names with ``slaves``; a slave's broker id is not 0."""
    rows = events.changes
    of_name, names = events.names
    listed = [sorted(slaves.get(name, {}).items()) for name in names]
    count = np.array([len(of_one) for of_one in listed], np.int64)
    ids, copied = (np.array([pair[i] for of_one in listed for pair in of_one], np.int64) for i in (0, 1))
    held = rows[events.of_master[rows]]
    times = count[of_name[held]]
    place = spread((np.cumsum(count) - count)[of_name[held]], times)
    held = np.repeat(held, times)
    broker_id, known = events.numbers("broker_id", rows)
    of_slave = known & (broker_id > 0)
    row, slave = np.append(held, rows[of_slave]), np.append(ids[place], broker_id[of_slave])
    last = np.append(copied[place], np.full(of_slave.sum(), INT64_MIN))
    of_master = np.arange(len(row)) < len(held)
    (copy,) = common_codes([pa.array(events.key[row]), pa.array(slave)])
    order = np.lexsort((of_master, events.known("at", row), copy))
    return BothFiles(events, row[order], slave[order], copy[order], of_master[order], last[order])


def stale_spans_of_shard(copies: BothFiles, reach_ms: int) -> pl.DataFrame:
    """Return SLAVE_QUEUE and SPAN's fields: one row per span in which a slave's copy was behind, see `falling_behind`.

    ``copies`` are those of a shard. Spans of a shard, and those of all shards, may be passed to `stale_copies`.
    """
    spans = pl.DataFrame(copies.table(behind=falling_behind(copies, reach_ms)))
    behind = spans.filter(pl.col("behind").list.len() > 0)
    return behind.select(*SLAVE_QUEUE, "behind").explode("behind").unnest("behind")


@dataclass(frozen=True)
class _Moments:
    """The observations of each copy in order: ``what`` at ``ms``, with its ``offset``.

    HELD: the master's file from then on; COPIED: the slave's; LEFT: the slave's until then, unknown afterwards; ENDED:
    the slave's at its last copy.
    """

    copy: Numbers
    ms: Numbers
    what: Numbers
    offset: Numbers
    known: Mask
    before: Numbers  # of HELD: the master's offset until then, LEAST if unknown; of others MOST

    @cached_property
    def place(self) -> Numbers:
        """Return numbers for the order: within a millisecond, the slave's offset until then comes last."""
        return self.ms * 4 + np.minimum(self.what, LEFT)

    @cached_property
    def first(self) -> Numbers:
        """Return the first moment of each copy."""
        return starts(self.copy)

    @cached_property
    def begins(self) -> Mask:
        """Return whether the moment is the first of its copy."""
        is_first = np.zeros(len(self.copy), bool)
        is_first[self.first] = True
        return is_first


def falling_behind(copies: BothFiles, reach_ms: int) -> pa.ListArray:
    """Return the spans in which each copy was behind, as SPAN: each between two observations.

    During a span the copy did not change, and was below all offsets of the master, in the ``reach_ms`` before: a slave
    that copies gets all offsets (SlaveSynchronize#syncConsumerOffset). ``began_ms`` is the start of the first of
    consecutive spans; ``lacks`` is how many messages the copy lacked at the end: the master's offset then
    (``holds``) less the copy's (``has``).
    """
    seen = _moments(copies)
    has, holds, behind = _compared(seen)
    below = np.zeros(len(behind), bool)
    asked = np.flatnonzero(behind)
    below[asked] = has[asked] < _lowest(seen, asked, reach_ms)
    changed = _before(seen, seen.what == COPIED)
    unchanged_since = np.where(changed == NOWHERE, INT64_MAX, seen.ms[changed] + reach_ms)
    stale = below & (unchanged_since <= seen.ms)
    goes_on, was_below = one_later(stale) & ~seen.begins, one_later(below) & ~seen.begins
    prior = np.where(seen.begins, INT64_MAX - reach_ms, one_later(seen.ms))
    # A span that begins between two moments begins when the change or the last lower offset leaves the reach.
    first = np.where(was_below, unchanged_since, np.minimum(seen.ms, prior + reach_ms))
    since = np.where(goes_on, prior, first)
    began = since[last_such(stale & ~goes_on, seen.first)]
    rows = np.flatnonzero(stale)
    lacks = holds[rows] - has[rows]
    fields = {
        "began_ms": pa.array(began[rows], pa.int64()),
        "from_ms": pa.array(since[rows], pa.int64()),
        "to_ms": pa.array(seen.ms[rows], pa.int64()),
        "lacks": pa.array(np.where((lacks < 0) | (lacks > COUNTLESS), COUNTLESS, lacks), pa.int64()),
        "holds": pa.array(holds[rows], pa.int64()),
        "has": pa.array(has[rows], pa.int64()),
    }
    first = np.searchsorted(seen.copy[rows], copies.copy[copies.first])
    return lists(np.append(first, len(rows)), fields)


def _moments(copies: BothFiles) -> _Moments:
    events, (offset, there), at = copies.events, copies.offset, copies.at
    old, had = events.numbers("previous_offset", copies.row)
    since, has_since = events.numbers("also_at", copies.row)
    held, copied = np.flatnonzero(copies.of_master), np.flatnonzero(~copies.of_master)
    left = copied[had[copied] & has_since[copied]]
    newest = last_such(~copies.of_master, copies.first)[lasts(copies.first, len(at))]
    last = runs(np.maximum, copies.last, copies.first)
    shown = (newest != NOWHERE) & (last != INT64_MIN)
    newest, last = newest[shown], last[shown]
    newest, last = newest[last >= at[newest]], last[last >= at[newest]]
    row = np.concatenate([held, copied, left, newest])
    what = np.repeat([HELD, COPIED, LEFT, ENDED], [len(held), len(copied), len(left), len(newest)])
    moment = np.concatenate([at[held], at[copied], since[left], last])
    value = np.where(what == LEFT, old[row], offset[row])
    known = (what == LEFT) | there[row]
    before = np.where(what == HELD, np.where(had[row], old[row], INT64_MIN), INT64_MAX)
    order = np.lexsort((moment, what, moment // 1000, copies.copy[row]))
    columns = (copies.copy[row], moment // 1000, what, value, known, before)
    return _Moments(*(column[order] for column in columns))


def _compared(seen: _Moments) -> tuple[Numbers, Numbers, Mask]:
    """Return at each moment the slave's offset, the master's lowest recent offset, and whether the slave's is lower.

    The slave's offset is compared when the master's file changes, and at the last copy that shows it.
    """
    copied = _before(seen, (seen.what == COPIED) | (seen.what == LEFT))
    held = _before(seen, seen.what == HELD)
    moves = seen.what == HELD
    there = (copied != NOWHERE) & seen.known[copied] & (seen.what[copied] == COPIED)
    has = np.where(moves, seen.offset[copied], seen.offset)
    is_known = np.where(moves, there, seen.known & (seen.what != COPIED))
    holds = seen.offset[held]
    return has, holds, is_known & (held != NOWHERE) & seen.known[held] & (has < holds)


def _before(seen: _Moments, such: Mask) -> Numbers:
    """Return the last earlier moment of the copy for which the condition is true, or NOWHERE."""
    return np.where(seen.begins, NOWHERE, one_later(last_such(such, seen.first)))


def _lowest(seen: _Moments, asked: Numbers, reach_ms: int) -> Numbers:
    """Return the lowest offset of the master's file before changes within reach; MOST if there was none."""
    copy = seen.copy[asked]
    begin = nearest(copy, seen.ms[asked] - (reach_ms - 1), seen.copy, seen.ms, side="after")
    end = nearest(copy, seen.place[asked], seen.copy, seen.place) + 1
    # Every second run is a range, the others are between them; one more row, because a range may end with the last.
    bounds = np.column_stack([begin, end]).ravel()
    return runs(np.minimum, np.append(seen.before, INT64_MAX), bounds)[::2]


def stale_copies(
    spans: pl.DataFrame, snapshot: pl.DataFrame, outages: pl.DataFrame, stale_slave_s: int
) -> pl.DataFrame:
    """Return gold.offset_continuity's rows of kind stale: a slave's offset below all recent offsets of its master.

    One row per time span. ``spans`` is the frame of `stale_spans_of_shard`, of one or more shards; ``snapshot`` is
    silver.snapshot and ``outages`` broker_outages' frame, both whole. Only times are judged in which both files were
    copied and the master was up.
    """
    read = snapshot.filter(pl.col("file_name").is_in(FILE_NAMES) & pl.col("broker_id").is_not_null())
    slaves = read.filter(pl.col("broker_id") > 0).rename({"broker_id": "slave_id"})
    masters = read.filter(pl.col("broker_id") == 0)
    # Watched spans of a slave do not overlap: a stale span overlaps the last one that began by its end, or none.
    watched = _watched(slaves, masters, outages, stale_slave_s)
    judged = as_of(spans, watched, SLAVE, "to_ms", {"watched_to": "watched_to"}, right_at="watched_from")
    judged = judged.filter(pl.col("watched_to") >= pl.col("from_ms"))
    until = pl.min_horizontal("to_ms", "watched_to")
    # The copy's offset when it lacked most messages; the last one of equal ones.
    periods = (
        judged.sort("lacks", "to_ms", "holds", "has")
        .group_by(*SLAVE_QUEUE, "began_ms", maintain_order=True)
        .agg(instant_of(until.max()).alias("to_ts"), pl.col("holds", "has", "lacks").last())
    )
    none = pl.lit(None, pl.Int64)
    return as_of(periods, slaves, SLAVE, "to_ts", {"source_digest": "source_digest"}, right_at="ts").select(
        pl.col("to_ts").dt.date().alias("day"),
        "broker_name",
        pl.col("slave_id").alias("broker_id"),
        "topic",
        "consumer_group",
        "queue_id",
        pl.lit("stale").alias("kind"),
        pl.col("holds").alias("previous_offset"),
        pl.col("has").alias("new_offset"),
        pl.col("lacks").alias("size"),
        # Longest time since the copy was last correct, when it became stale.
        instant_of(pl.col("began_ms") - stale_slave_s * 1000).alias("from_ts"),
        "to_ts",
        pl.lit("not_copied").alias("cause"),
        pl.col("lacks").alias("redelivered_max"),
        none.alias("queue_min_offset"),
        none.alias("queue_max_offset"),
        pl.lit(COPIES).alias("source"),
        pl.lit(None, pl.String).alias("client_addr"),
        "source_digest",
    )


def _watched(slaves: pl.DataFrame, masters: pl.DataFrame, outages: pl.DataFrame, stale_slave_s: int) -> pl.DataFrame:
    """Return the time spans in which a slave's copies are comparable.

    Columns: broker_name, slave_id, watched_from, watched_to (epoch ms).

    In the ``stale_slave_s`` seconds before each copy the master's file was copied, and the master was never down.
    """
    copied = as_of(slaves.select(*SLAVE, "ts"), masters, ["broker_name"], "ts", {"master_ts": "ts"})
    age_ms = ms("ts") - ms("master_ts")
    # Keep, of all outages that began by an instant, the latest end.
    gone = outages.filter(pl.col("broker_id") == 0).sort("from_ts")
    gone = gone.with_columns(pl.col("to_ts").cum_max().over("broker_name"))
    there = as_of(copied, gone, ["broker_name"], "ts", {"_gone_until": "to_ts"}, right_at="from_ts")
    was_gone = pl.col("_gone_until") > pl.col("ts") - pl.duration(seconds=stale_slave_s)
    there = there.filter((age_ms < stale_slave_s * 1000) & ~was_gone.fill_null(False))
    spans = merge(there, SLAVE, at="ts", gap_s=stale_slave_s)
    return spans.select(*SLAVE, ms("from_ts").alias("watched_from"), ms("to_ts").alias("watched_to"))
