"""The status of a consumer group by Burrow's rules, and its lag in time.

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


def group_status(statuses: Iterable[Status | None]) -> Status | None:
    """Return the worst status of a group's queues, by Burrow's numbers: OK, WARN, STOP, STALL, REWIND.

    Burrow itself returns ERR for the last three. An undetermined queue (None) does not hide the problem of another one;
    if all others are OK, the group is undetermined. OK without queues. No method of RocketMQ: Burrow's
    evaluateConsumerStatus.

    >>> group_status(["OK", "STOP", "WARN"]), group_status([None, "WARN"]), group_status([None, "OK"])
    ('STOP', 'WARN', None)
    """
    distinct = set(statuses)
    worst: Status = "OK"
    for status in STATUSES:
        if status in distinct:
            worst = status
    return None if worst == "OK" and None in distinct else worst


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
