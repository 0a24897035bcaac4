"""A queue's commits and ends over a night -> its state at the end of each window, by Burrow's rules."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from mqreplay.core.burrow import INTERVALS, HeadPoint, keep_head_points, partition_status, time_lag


class WindowStatus(NamedTuple):
    """The state of one queue of a group at ``window_end_ms`` (epoch ms).

    ``status``: Burrow's word, None undetermined; ``lag`` in messages, ``time_lag_ms``, None unknown; ``commits`` made
    in the window; ``committed_offset`` in messages.
    """

    window_end_ms: int
    status: str | None
    lag: int | None
    time_lag_ms: float | None
    commits: int
    committed_offset: int


def status_windows(
    commit_ts: Sequence[int],
    commit_offset: Sequence[int],
    head_ts: Sequence[int],
    head_offset: Sequence[int],
    window_ms: int,
    until_ms: int,
) -> list[WindowStatus]:
    """One entry for each window from that of the first commit to that of ``until_ms``; both lists oldest first.

    Times are epoch ms, offsets messages; a window ends at a multiple of ``window_ms``. Windows after the last commit
    are told too: that a group stopped is what a status is for.
    No method of RocketMQ: Burrow evaluates on demand; here it is asked at the end of each window.

    >>> windows = status_windows([1_000, 61_000], [5, 9], [500, 60_500], [5, 9], 60_000, 130_000)
    >>> [(w.window_end_ms, w.status, w.lag, w.commits) for w in windows]
    [(60000, 'OK', 0, 1), (120000, 'OK', 0, 1), (180000, 'OK', 0, 0)]
    """
    if not commit_ts:
        return []
    points = list(zip(head_offset, head_ts, strict=True))
    found = []
    end = (commit_ts[0] // window_ms + 1) * window_ms
    before = 0
    while end - window_ms <= until_ms:
        seen = bisect_right(commit_ts, end)
        known = bisect_right(head_ts, end)
        found.append(_window(commit_ts[:seen], commit_offset[:seen], points[:known], head_ts, end, seen - before))
        before, end = seen, end + window_ms
    return found


def _window(
    commit_ts: Sequence[int],
    commit_offset: Sequence[int],
    points: Sequence[HeadPoint],
    head_ts: Sequence[int],
    end: int,
    commits: int,
) -> WindowStatus:
    times, offsets = commit_ts[-INTERVALS:], commit_offset[-INTERVALS:]
    lags = [_lag_at(points, head_ts, at, offset) for at, offset in zip(times, offsets, strict=True)]
    lag = max(0, points[-1][0] - offsets[-1]) if points else None
    heads = [head for head, _ in points[-INTERVALS:]] or None
    status = partition_status(offsets, times, lags, lag, heads, end)
    delay = time_lag(keep_head_points(points), offsets[-1], end) if points else None
    return WindowStatus(end, status, lag, delay, commits, offsets[-1])


def _lag_at(points: Sequence[HeadPoint], head_ts: Sequence[int], at: int, offset: int) -> int | None:
    """Messages behind the end last seen at or before a commit; None if none was."""
    place = min(bisect_right(head_ts, at), len(points))
    return max(0, points[place - 1][0] - offset) if place else None
