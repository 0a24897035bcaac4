"""The rules of core's status_windows on numpy arrays, for all queues and windows together; see status_windows.py.

The queues' lists are concatenated: `place` is an index into all items, `row` is the queue of an item. No loop over
windows is needed, because:

- A commit's lag and the verdict of the ten commits up to it depend only on that commit, not on the window.
- Of ends with rising times those count that no earlier end of the queue exceeds: a running maximum.
- The middle of a run of equal ends is no neighbour of any offset: dropped or not, it changes no time.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from mqreplay.core.status_windows import ENDS_MS, INTERVALS, LEAST_ENDS, STATUSES

Ints: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]
Mask: TypeAlias = npt.NDArray[np.bool_]

# Numbers from LIMIT on are not supported: below it differences are exact as doubles, and a row and a number fit one
# integer that sorts by both, for at most MOST_NUMBERED rows.
LIMIT = 1 << 44
_NUMBER_BITS = 45
MOST_NUMBERED = 1 << (63 - _NUMBER_BITS)

UNKNOWN_LAG = -1
_OK, _WARN, _STOP, _STALL, _REWIND = map(STATUSES.index, ("OK", "WARN", "STOP", "STALL", "REWIND"))


@dataclass(frozen=True)
class Lists:
    """Commits or ends of many queues: those of row r start at ``bounds[r]``, oldest first."""

    bounds: Ints
    ts: Ints
    offset: Ints

    def part(self, start: int, end: int) -> Lists:
        """Return the lists of some rows."""
        items = slice(self.bounds[start], self.bounds[end])
        return Lists(self.bounds[start : end + 1] - self.bounds[start], self.ts[items], self.offset[items])

    @cached_property
    def row(self) -> Ints:
        """Return the row of each item."""
        return np.repeat(np.arange(len(self.bounds) - 1), np.diff(self.bounds))

    @cached_property
    def by_ts(self) -> Ints:
        """Return keys that sort by row and time."""
        return (self.row << _NUMBER_BITS) + self.ts

    @cached_property
    def by_offset(self) -> Ints:
        """Return keys that sort by row and offset."""
        return (self.row << _NUMBER_BITS) + self.offset


class Windows(NamedTuple):
    """The fields of WindowStatus for each window; those of row r start at ``bounds[r]``.

    ``status``: its place among STATUSES, or UNKNOWN_LAG; ``lag`` UNKNOWN_LAG and ``time_lag_ms`` NaN if not known.
    """

    bounds: Ints
    end: Ints
    status: Ints
    lag: Ints
    time_lag_ms: Floats
    commits: Ints
    committed_offset: Ints


def sums(counts: Ints) -> Ints:
    """Return the start of each list of these lengths, and the end of the last."""
    bounds = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, out=bounds[1:])
    return bounds


def first_windows(commits: Lists, length: Ints, until: Ints) -> tuple[Ints, Ints]:
    """Return for each row the end of the window of its first commit, and its number of windows."""
    some = np.diff(commits.bounds) > 0
    first_end = np.zeros(len(length), dtype=np.int64)
    first_end[some] = (commits.ts[commits.bounds[:-1][some]] // length[some] + 1) * length[some]
    return first_end, np.where(some, np.maximum(0, (until - first_end) // length + 2), 0)


def windows(commits: Lists, heads: Lists, length: Ints, until: Ints) -> Windows:
    """Return the windows of each row: ``length`` and ``until`` as core's window_ms and until_ms.

    Times of commits never decrease, those of heads increase, length is positive, all numbers are within LIMIT.
    """
    first_end, number = first_windows(commits, length, until)
    bounds = sums(number)
    row = np.repeat(np.arange(len(number)), number)
    end = first_end[row] + (np.arange(len(row)) - bounds[row]) * length[row]
    now = np.minimum(end, until[row])

    upto = (row << _NUMBER_BITS) + np.minimum(end, LIMIT)
    behind, seen = (np.searchsorted(lists.by_ts, upto, side="right") for lists in (commits, heads))
    last = behind - 1  # no window is before the first commit
    before, firsts = np.roll(behind, 1), bounds[:-1][number > 0]
    before[firsts] = commits.bounds[row[firsts]]
    offset = commits.offset[last]
    lag = _lags(heads, row, seen, offset)
    known = lag != UNKNOWN_LAG

    first, verdict = _verdicts(commits, heads)
    status = np.where(known, verdict[last], UNKNOWN_LAG)
    silent = now // 1000 * 1000 - commits.ts[last] > commits.ts[last] - commits.ts[first[last]]
    (asked,) = np.nonzero(silent & known)
    stopped = np.ones(len(asked), dtype=bool)
    for back in range(1, INTERVALS + 1):
        place = np.maximum(seen[asked] - back, heads.bounds[row[asked]])
        passed = (back > LEAST_ENDS) & (heads.ts[place] <= now[asked] - ENDS_MS)
        stopped &= passed | (heads.offset[place] > offset[asked])
    status[asked[stopped]] = _STOP
    status[lag == 0] = _OK
    return Windows(bounds, end, status, lag, _time_lags(commits, heads, row, last, seen, now), behind - before, offset)


def _lags(heads: Lists, row: Ints, seen: Ints, offset: Ints) -> Ints:
    """Return messages from these offsets to the last end before the place ``seen``; UNKNOWN_LAG if there is none."""
    lag = np.full(len(row), UNKNOWN_LAG)
    known = seen > heads.bounds[row]
    lag[known] = np.maximum(0, heads.offset[seen[known] - 1] - offset[known])
    return lag


def _verdicts(commits: Lists, heads: Lists) -> tuple[Ints, Ints]:
    """Return for each commit the first of the ten up to it, and their verdict without silence and current lag."""
    place = np.arange(len(commits.ts))
    first = np.maximum(place - (INTERVALS - 1), commits.bounds[commits.row])
    seen = np.searchsorted(heads.by_ts, commits.by_ts, side="right")
    lag = _lags(heads, commits.row, seen, commits.offset)

    def lately(event: Mask) -> Ints:
        """Return the last place up to each for which the condition was true."""
        return np.maximum.accumulate(np.where(event, place, -1))

    step = np.diff(commits.offset, prepend=commits.offset[:1])
    moved = lately(step != 0) > first
    # Unknown lags are a queue's first ones: none is between two known ones, and none of them is a decrease.
    fell = lately(np.diff(lag, prepend=lag[:1]) < 0) > first
    verdict = np.where(moved, np.where(fell, _OK, _WARN), _STALL)
    verdict[(lag[first] == UNKNOWN_LAG) & (verdict != _OK)] = UNKNOWN_LAG
    verdict[lately(lag == 0) >= first] = _OK
    verdict[_rewound(commits.offset, step < 0, first)] = _REWIND
    return first, verdict


def _rewound(offset: Ints, falls: Mask, first: Ints) -> Ints:
    """Return the commits at which the first decrease among the ten up to them has not been recovered."""
    place = np.arange(len(offset))
    next_fall = np.append(np.minimum.accumulate(np.where(falls, place, len(place))[::-1])[::-1], len(place))
    (fallen,) = np.nonzero(next_fall[first + 1] <= place)
    fall = next_fall[first[fallen] + 1]
    lost = np.ones(len(fallen), dtype=bool)
    for after in range(INTERVALS - 1):
        lost &= offset[np.minimum(fall + after, fallen)] < offset[fall - 1]
    return fallen[lost]


def _time_lags(commits: Lists, heads: Lists, row: Ints, last: Ints, seen: Ints, now: Ints) -> Floats:
    """Return the lag in time of each window, from row, last commit and the place after its last end; else NaN."""
    counts = heads.by_offset == np.maximum.accumulate(heads.by_offset)
    before = sums(counts)
    ts, end, by_offset = heads.ts[counts], heads.offset[counts], heads.by_offset[counts]
    above = np.searchsorted(by_offset, commits.by_offset, side="right")

    lag = np.full(len(row), np.nan)
    (asked,) = np.nonzero(before[seen] - before[heads.bounds[row]] > 1)
    oldest, newest = before[heads.bounds[row[asked]]], before[seen[asked]] - 1
    offset = commits.offset[last[asked]]
    reached = offset >= end[newest]
    lag[asked[reached]] = 0.0
    between = ~reached & (end[oldest] != end[newest])
    asked, oldest, newest, offset = asked[between], oldest[between], newest[between], offset[between]
    right = above[last[asked]]
    early = right == oldest
    left, right = np.where(early, oldest, right - 1), np.where(early, newest, right)
    per_message = (ts[right] - ts[left]) / (end[right] - end[left])
    late = now[asked] - (ts[left] + (offset - end[left]) * per_message)
    lag[asked] = np.where(late > 0.0, late, 0.0)
    return lag
