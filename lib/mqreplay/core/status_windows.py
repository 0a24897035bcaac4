"""The state of a queue at the end of each window, by Burrow's rules, from its commits and ends."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from mqreplay.core.burrow import INTERVALS, HeadPoint, keep_head_points, partition_status, time_lag

# Burrow keeps ten ends of a queue, asked every 10 s: ends of a longer time would hide that a group stopped.
ENDS_MS = INTERVALS * 10_000
LEAST_ENDS = 2  # one end alone may be of the moment at which its last message came


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
    """Return one entry per window, from that of the first commit to that of ``until_ms``; both lists oldest first.

    Times are epoch ms, offsets messages; a window ends at a multiple of ``window_ms``, the last is asked at
    ``until_ms``: the time after it was not recorded, and is not a silence. Windows after the last commit are included,
    because a status must show that a group stopped. ValueError if a time lacks its offset.
    No method of RocketMQ: Burrow evaluates on demand; here it is asked at the end of each window.

    >>> windows = status_windows([1_000, 61_000], [5, 9], [500, 60_500], [5, 9], 60_000, 130_000)
    >>> [(w.window_end_ms, w.status, w.lag, w.commits) for w in windows]
    [(60000, 'OK', 0, 1), (120000, 'OK', 0, 1), (180000, 'OK', 0, 0)]
    """
    if not commit_ts:
        return []
    commits = list(zip(commit_ts, commit_offset, strict=True))
    points = list(zip(head_offset, head_ts, strict=True))
    found: list[WindowStatus] = []
    kept: list[HeadPoint] = []
    end = (commit_ts[0] // window_ms + 1) * window_ms
    before = known = 0
    while end - window_ms <= until_ms:
        seen = bisect_right(commit_ts, end, before)
        reached = bisect_right(head_ts, end, known)
        # Only the last two points decide what is kept, so each point is processed once.
        kept[-2:] = keep_head_points(kept[-2:] + points[known:reached])
        last = commits[max(0, seen - INTERVALS) : seen]
        lags = [_lag_at(points, head_ts, at, offset) for at, offset in last]
        now = min(end, until_ms)
        heads = _recent_ends(points[max(0, reached - INTERVALS) : reached], now)
        found.append(_window(last, lags, heads, kept, end, now, seen - before))
        before, known, end = seen, reached, end + window_ms
    return found


def _recent_ends(points: Sequence[HeadPoint], now: int) -> list[int]:
    """Return the ends of the last ENDS_MS, and at least LEAST_ENDS of them, if they exist."""
    return [head for head, at in points[:-LEAST_ENDS] if at > now - ENDS_MS] + [
        head for head, _ in points[-LEAST_ENDS:]
    ]


def _window(
    commits: Sequence[tuple[int, int]],
    lags: Sequence[int | None],
    heads: Sequence[int],
    kept: Sequence[HeadPoint],
    end: int,
    now: int,
    made: int,
) -> WindowStatus:
    times, offsets = [at for at, _ in commits], [offset for _, offset in commits]
    lag = max(0, heads[-1] - offsets[-1]) if heads else None
    status = partition_status(offsets, times, lags, lag, heads or None, now)
    return WindowStatus(end, status, lag, time_lag(kept, offsets[-1], now), made, offsets[-1])


def _lag_at(points: Sequence[HeadPoint], head_ts: Sequence[int], at: int, offset: int) -> int | None:
    """Messages behind the end last seen at or before a commit; None if none was."""
    place = bisect_right(head_ts, at)
    return max(0, points[place - 1][0] - offset) if place else None
