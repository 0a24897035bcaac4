"""The status of a consumer group by Burrow's rules, its lag in time, and the state of a queue in each window.

Not RocketMQ's rules: those of LinkedIn's Burrow (evaluator/caching.go at its commit ced55ba of October 2025, with its
defaults: allowed-lag and minimum-complete 0) and, for time, of kafka-lag-exporter
(LookupTable), so that operators find the same terms. Offsets and lags are in messages, times in epoch ms. A lag that
was not recorded is None, never 0: a result is returned if every possible lag gives the same result, else None
(undetermined).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Literal, NamedTuple

Status = Literal["OK", "WARN", "STOP", "STALL", "REWIND"]
# In the order of Burrow's numbers (protocol.StatusConstant: 1, 2, 4, 5, 6); 3 is ERR, which means "one of these".
STATUSES: tuple[Status, ...] = ("OK", "WARN", "STOP", "STALL", "REWIND")
INTERVALS = 10  # commits kept of each queue: Burrow's storage option `intervals`
HeadPoint = tuple[int, int]  # (end offset of the queue in messages, epoch ms at which it was seen)
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
    windows: list[WindowStatus] = []
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
        windows.append(_window(last, lags, heads, kept, end, now, seen - before))
        before, known, end = seen, reached, end + window_ms
    return windows


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


def partition_status(
    offsets: Sequence[int],
    timestamps_ms: Sequence[int],
    lags: Sequence[int | None],
    current_lag: int | None,
    broker_offsets: Sequence[int] | None,
    now_ms: int,
) -> Status | None:
    """Return the status of a queue and group by its last 10 commits, oldest first; None if unknown lags decide.

    ``offsets``: committed offsets in messages; ``timestamps_ms``: when; ``lags``: messages behind at each commit, None
    unknown; ``current_lag``: messages behind now; ``broker_offsets``: the queue's recent end offsets in messages, None
    unknown, while an empty list says as in Burrow that none is stored. In this order: OK without commits or lag; STOP;
    REWIND; OK if any lag was 0; STALL; WARN; OK. Burrow's clock has seconds: one commit alone is STOP from
    the next second on.
    ValueError if the three lists differ in length.
    No method of RocketMQ: Burrow's calculatePartitionStatus.

    >>> minute = [0, 10_000, 20_000, 30_000, 40_000]
    >>> partition_status([1, 2, 3, 4, 5], minute, [9, 9, 9, 9, 9], 9, [14], 41_000)
    'WARN'
    >>> partition_status([5, 5, 5, 5, 5], minute, [1, 2, 3, 4, 5], 5, [10], 41_000)
    'STALL'
    >>> partition_status([1, 2, 3, 4, 5], minute, [9, 9, 9, 9, 9], 9, [14], 90_000)
    'STOP'
    >>> partition_status([9, 2, 3, 4, 5], minute, [1, 9, 9, 9, 9], 9, [14], 41_000)
    'REWIND'
    >>> partition_status([5, 5, 5, 5, 5], minute, [1, None, 3, 4, 5], 5, [10], 41_000) is None
    True
    """
    if not len(offsets) == len(timestamps_ms) == len(lags):
        raise ValueError(f"{len(offsets)} offsets, {len(timestamps_ms)} times and {len(lags)} lags of the same commits")
    if not offsets or (current_lag is not None and current_lag <= 0):
        return "OK"
    kept = offsets[-INTERVALS:]
    if now_ms // 1000 * 1000 - timestamps_ms[-1] > timestamps_ms[-1] - timestamps_ms[-len(kept)]:
        if broker_offsets is None:
            return None
        if all(end > kept[-1] for end in broker_offsets):
            return None if current_lag is None else "STOP"
    status: Status | None = "REWIND" if has_rewound(kept) else _status_by_lag(kept, lags[-INTERVALS:])
    return status if status == "OK" or current_lag is not None else None


def has_rewound(offsets: Sequence[int]) -> bool:
    """Return whether the first decrease of the committed offsets (messages, oldest first) was not recovered.

    It is recovered when an offset reaches the one before the decrease. Later decreases have no effect.
    No method of RocketMQ: Burrow's checkIfOffsetsRewind and checkIfRewindRecovered.

    >>> has_rewound([5, 2, 4]), has_rewound([5, 2, 5]), has_rewound([1, 1, 2])
    (True, False, False)
    """
    for place, (before, after) in enumerate(pairwise(offsets), 1):
        if after < before:
            return all(offset < before for offset in offsets[place:])
    return False


def _status_by_lag(offsets: Sequence[int], lags: Sequence[int | None]) -> Status | None:
    known = [lag for lag in lags if lag is not None]
    if any(lag <= 0 for lag in known):
        return "OK"
    if offsets.count(offsets[-1]) == len(offsets):
        status: Status = "STALL"
    elif any(after < before for before, after in pairwise(known)):
        return "OK"  # if known lags decrease, at least one step between them does, regardless of unknown ones
    else:
        status = "WARN"
    return status if len(known) == len(lags) else None


class HeadTime(NamedTuple):
    """The time of a queue's end at an offset: ``time_ms`` in epoch ms; ``extrapolated``: before the first point."""

    time_ms: float
    extrapolated: bool


def keep_head_points(head_points: Iterable[HeadPoint]) -> list[HeadPoint]:
    """Return the relevant points of (end offset in messages, epoch ms), in the order of the samples.

    A run of equal ends keeps its first and its last point: nothing was written between them. A point not later than
    the one before is dropped, and so is one whose end is lower (a broker that lost messages) until it is passed again.
    No method of RocketMQ: kafka-lag-exporter's addPoint, without its limit on the number of points.

    >>> keep_head_points([(1, 10), (5, 20), (5, 30), (5, 40), (4, 50), (9, 45), (9, 60)])
    [(1, 10), (5, 20), (5, 40), (9, 45), (9, 60)]
    """
    kept: list[HeadPoint] = []
    for point in head_points:
        if kept and (point[1] <= kept[-1][1] or point[0] < kept[-1][0]):
            continue
        if len(kept) > 1 and kept[-1][0] == kept[-2][0] == point[0]:
            kept[-1] = point
        else:
            kept.append(point)
    return kept


def head_time(head_points: Sequence[HeadPoint], offset: int) -> HeadTime | None:
    """Return when the queue's end was last at ``offset`` (messages), interpolated between its neighbours.

    ``head_points`` as from keep_head_points. Before the first point: on the line through the first and the last one.
    None with fewer than 2 points, if the end never moved, and at or past the last point.
    No method of RocketMQ: kafka-lag-exporter's lookup, which gives infinity where the end never moved.

    >>> points = [(100, 1_000), (200, 2_000), (200, 5_000), (300, 6_000)]
    >>> head_time(points, 150), head_time(points, 200), head_time(points, 60)
    (HeadTime(time_ms=1500.0, extrapolated=False), HeadTime(time_ms=5000.0, extrapolated=False), \
HeadTime(time_ms=0.0, extrapolated=True))
    """
    if len(head_points) < 2 or offset >= head_points[-1][0] or head_points[0][0] == head_points[-1][0]:
        return None
    place = bisect_right(head_points, offset, key=_end)
    left, right = (head_points[place - 1], head_points[place]) if place else (head_points[0], head_points[-1])
    per_message = (right[1] - left[1]) / (right[0] - left[0])
    return HeadTime(left[1] + (offset - left[0]) * per_message, place == 0)


def _end(point: HeadPoint) -> int:
    return point[0]


def time_lag(head_points: Sequence[HeadPoint], committed_offset: int, now_ms: int) -> float | None:
    """Return the ms since the queue's end left the committed offset (messages); 0 if it has not; None if unknown.

    ``head_points`` as from keep_head_points: (end offset in messages, epoch ms). An offset older than the first point
    is estimated, as kafka-lag-exporter does (see head_time). With fewer than 2 points it is unknown, even at the end.
    Never below 0. No method of RocketMQ: kafka-lag-exporter's time lag.

    >>> points = [(100, 1_000), (200, 2_000)]
    >>> time_lag(points, 150, 2_500), time_lag(points, 200, 2_500), time_lag(points, 50, 2_500)
    (1000.0, 0.0, 2000.0)
    >>> time_lag(points[:1], 50, 2_500) is None
    True
    """
    if len(head_points) < 2:
        return None
    if committed_offset >= head_points[-1][0]:
        return 0.0
    point = head_time(head_points, committed_offset)
    return None if point is None else max(0.0, now_ms - point.time_ms)
