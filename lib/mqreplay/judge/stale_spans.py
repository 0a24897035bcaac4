"""When a slave's copy of an offset was below all that its master held for a while: it is no longer copied."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from mqreplay.judge.both_files import BothFiles, last_such
from mqreplay.judge.nearest import NOWHERE, Numbers, nearest, starts
from mqreplay.judge.queue_events import LEAST, MOST, Mask, lasts, lists, one_later, runs
from mqreplay.judge.saturating import COUNTLESS

ITEM = "STRUCT<began_ms: BIGINT, from_ms: BIGINT, to_ms: BIGINT, lacks: BIGINT, holds: BIGINT, has: BIGINT>"
# Of what was seen in the same millisecond: what the master held, what the slave held, and then what it still held.
HELD, COPIED, LEFT, ENDED = range(4)


@dataclass(frozen=True)
class _Moments:
    """All that was seen of each copy, in its order. ``what`` happened at ``ms``, and the ``offset`` it tells of.

    HELD: the master's file from then on; COPIED: the slave's; LEFT: the slave's until then, what after that nobody
    knows; ENDED: the slave's when it was last copied.
    """

    copy: Numbers
    ms: Numbers
    what: Numbers
    offset: Numbers
    known: Mask
    before: Numbers  # of HELD: what the master's file held until then, LEAST where that is not known; else MOST

    @cached_property
    def place(self) -> Numbers:
        """The order, as numbers: of one millisecond, what the slave still held comes last."""
        return self.ms * 4 + np.minimum(self.what, LEFT)

    @cached_property
    def first(self) -> Numbers:
        """The first moment of each copy."""
        return starts(self.copy)

    @cached_property
    def begins(self) -> Mask:
        """Whether the moment is the first of its copy."""
        is_first = np.zeros(len(self.copy), bool)
        is_first[self.first] = True
        return is_first


def falling_behind(copies: BothFiles, reach_ms: int) -> pa.ListArray:
    """Of each copy the spans in which it was, as ITEM: each between two moments at which something was seen.

    In all of it the copy was below what the master held in the ``reach_ms`` before; ``began_ms`` is when that began, in
    the first of the spans that go on from each other; ``lacks`` is how many messages it was below at the end: what the
    master ``holds`` then, less what the copy ``has``.
    """
    seen = _moments(copies)
    has, holds, behind = _compared(seen)
    stale = np.zeros(len(behind), bool)
    asked = np.flatnonzero(behind)
    stale[asked] = has[asked] < _lowest(seen, asked, reach_ms)
    goes_on = one_later(stale) & ~seen.begins
    prior = np.where(seen.begins, MOST - reach_ms, one_later(seen.ms))
    # A span that begins between two moments does so when the last of what ended before it falls out of reach.
    since = np.where(goes_on, prior, np.minimum(seen.ms, prior + reach_ms))
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
    shown = (newest != NOWHERE) & (last != LEAST)
    newest, last = newest[shown], last[shown]
    newest, last = newest[last >= at[newest]], last[last >= at[newest]]
    row = np.concatenate([held, copied, left, newest])
    what = np.repeat([HELD, COPIED, LEFT, ENDED], [len(held), len(copied), len(left), len(newest)])
    moment = np.concatenate([at[held], at[copied], since[left], last])
    value = np.where(what == LEFT, old[row], offset[row])
    known = (what == LEFT) | there[row]
    before = np.where(what == HELD, np.where(had[row], old[row], LEAST), MOST)
    order = np.lexsort((moment, what, moment // 1000, copies.copy[row]))
    columns = (copies.copy[row], moment // 1000, what, value, known, before)
    return _Moments(*(column[order] for column in columns))


def _compared(seen: _Moments) -> tuple[Numbers, Numbers, Mask]:
    """At each moment: what the slave had, what the master had held until then, and whether the slave had less.

    What the slave had is asked when the master's file moves, and when a copy last showed it.
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
    """The last moment of the copy before each that is such, or NOWHERE."""
    return np.where(seen.begins, NOWHERE, one_later(last_such(such, seen.first)))


def _lowest(seen: _Moments, asked: Numbers, reach_ms: int) -> Numbers:
    """The least that the master's file held until a change within reach of those asked; MOST where there was none."""
    copy = seen.copy[asked]
    begin = nearest(copy, seen.ms[asked] - (reach_ms - 1), seen.copy, seen.ms, side="after")
    end = nearest(copy, seen.place[asked], seen.copy, seen.place) + 1
    # Every second run is a range, the others lie between them; one more row, for a range may end with the last.
    bounds = np.column_stack([begin, end]).ravel()
    return runs(np.minimum, np.append(seen.before, MOST), bounds)[::2]
