from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mqreplay.core.status_windows import (
    STATUSES,
    HeadPoint,
    Status,
    has_rewound,
    head_time,
    keep_head_points,
    partition_status,
    time_lag,
)
from oracles.group_status import group_status

LAGS = (0, 1, 2, 3)
EVERY_10_S = [10_000 * n for n in range(5)]
JUST_AFTER, LONG_AFTER = 41_000, 90_000
PART_MS = 700  # Burrow's clock has seconds


def literally(
    offsets: Sequence[int], times: Sequence[int], lags: Sequence[int], lag: int, ends: Sequence[int], now: int
) -> Status:
    """Apply Burrow's rules one by one, with all lags known."""
    offsets, times, lags = offsets[-10:], times[-10:], lags[-10:]
    if not offsets or lag <= 0:
        return "OK"
    if now // 1000 * 1000 - times[-1] > times[-1] - times[0] and not [end for end in ends if end <= offsets[-1]]:
        return "STOP"
    falls = [n for n in range(1, len(offsets)) if offsets[n] < offsets[n - 1]]
    if falls and not [n for n in range(falls[0], len(offsets)) if offsets[n] >= offsets[falls[0] - 1]]:
        return "REWIND"
    if min(lags) <= 0:
        return "OK"
    if len(set(offsets)) == 1:
        return "STALL"
    return "WARN" if sorted(lags) == list(lags) else "OK"


@st.composite
def commits(draw: st.DrawFn, most: int, lag: st.SearchStrategy[int | None]) -> tuple[list[int], list[int], list]:
    offsets = draw(st.lists(st.integers(0, 4), max_size=most))
    steps = draw(st.lists(st.integers(0, 3), min_size=len(offsets), max_size=len(offsets)))
    lags = draw(st.lists(lag, min_size=len(offsets), max_size=len(offsets)))
    return offsets, [PART_MS * each for each in itertools.accumulate(steps)], lags


ENDS = st.lists(st.integers(0, 6), max_size=3)


@given(commits(14, st.sampled_from(LAGS)), st.sampled_from(LAGS), ENDS, st.integers(0, 60).map(PART_MS.__mul__))
@example(([3], [0], [1]), 1, [], 1)
def test_known_lags_are_judged_by_burrows_rules(
    commits_and_lags: tuple[list[int], list[int], list[int]], lag: int, ends: list[int], now: int
) -> None:
    assert partition_status(*commits_and_lags, lag, ends, now) == literally(*commits_and_lags, lag, ends, now)


@given(
    commits(5, st.sampled_from([None, None, *LAGS])),
    st.sampled_from([None, *LAGS]),
    st.none() | ENDS,
    st.integers(0, 30).map(PART_MS.__mul__),
)
def test_an_unknown_lag_is_answered_only_where_it_cannot_matter(
    commits_and_lags: tuple[list[int], list[int], list[int | None]], lag: int | None, ends: list[int] | None, now: int
) -> None:
    offsets, times, lags = commits_and_lags
    possible = {
        literally(offsets, times, each, current, known_ends, now)
        for each in itertools.product(*(LAGS if one is None else (one,) for one in lags))
        for current in (LAGS if lag is None else (lag,))
        for known_ends in ([[], [0]] if ends is None else [ends])
    }
    expected = possible.pop() if len(possible) == 1 else None
    assert partition_status(offsets, times, lags, lag, ends, now) == expected


@pytest.mark.parametrize(
    ("offsets", "lags", "current_lag", "ends", "now", "status"),
    [
        ([], [], 5, [9], LONG_AFTER, "OK"),
        ([1, 2, 3, 4, 5], [9] * 5, 0, [5], LONG_AFTER, "OK"),  # nothing left to consume: it may well be silent
        ([1, 2, 3, 4, 5], [4, 3, 2, 1, 0], 9, [14, 20], LONG_AFTER, "STOP"),  # that it once was at the end is long ago
        ([1, 2, 3, 4, 5], [4, 3, 2, 1, 0], 9, [5, 14], LONG_AFTER, "OK"),  # but not if it was a moment ago
        ([1, 2, 3, 4, 5], [9] * 5, 9, [14], 80_000, "WARN"),  # as long as the commits took: not yet stopped
        ([1, 2, 3, 4, 5], [9] * 5, 9, [14], 80_999, "WARN"),  # the clock has seconds
        ([1, 2, 3, 4, 5], [9] * 5, 9, [14], 81_000, "STOP"),
        ([9, 2, 3, 4, 5], [0, 9, 9, 9, 9], 9, [14], JUST_AFTER, "REWIND"),  # it was at the end: a rewind all the same
        ([5, 2, 3, 4, 5], [9, 12, 11, 10, 9], 9, [14], JUST_AFTER, "OK"),  # made up for, and the lag falls
        ([5, 2, 3, 4, 5], [9, 9, 9, 9, 9], 9, [14], JUST_AFTER, "WARN"),
        ([5, 5, 5, 5, 5], [4, 3, 3, 3, 3], 3, [8], JUST_AFTER, "STALL"),  # even if the lag fell, by what expired
        ([1, 2, 3, 4, 5], [9, 9, 8, 9, 9], 9, [14], JUST_AFTER, "OK"),
    ],
)
def test_examples(
    offsets: list[int], lags: list[int], current_lag: int, ends: list[int], now: int, status: Status
) -> None:
    assert partition_status(offsets, EVERY_10_S[: len(offsets)], lags, current_lag, ends, now) == status


@pytest.mark.parametrize(
    ("offsets", "lags", "current_lag", "ends", "now", "status"),
    [
        ([1000, 2000, 3000, 4000, 5000], [0, 50, 100, 150, 200], 200, [5200], 600, "OK"),
        ([1000, 2000, 3000, 4000, 5000], [0, 50, 100, 150, 200], 200, [5200], 900, "OK"),
        ([1000, 2000, 3000, 4000, 5000], [0, 50, 100, 150, 200], 200, [5200], 1000, "STOP"),
        ([1000, 1000, 1000, 1000, 1000], [0, 50, 100, 150, 200], 200, [1200], 600, "OK"),
        ([1000, 1000, 1000, 1000, 1000], [100] * 5, 100, [1100], 600, "STALL"),
        ([1000, 2000, 3000, 2000, 4000], [100, 150, 200, 1250, 300], 300, [4300], 600, "OK"),
        ([1000, 2000, 3000, 4000, 5000], [50, 100, 150, 200, 250], 0, [5250], 1000, "OK"),
        # STOP is asked before REWIND, and REWIND before the lag of 0 that ends all other rules.
        ([5000, 2000, 2100, 2200, 2300], [0, 9, 9, 9, 9], 9, [2309], 1000, "STOP"),
        ([5000, 2000, 2100, 2200, 2300], [0, 9, 9, 9, 9], 9, [2309], 600, "REWIND"),
        ([1000, 2000, 3000, 4000, 5000], [50, 100, 150, 200, 250], 250, [5250], 600, "WARN"),
    ],
)
def test_the_rules_of_burrow_in_their_order(
    offsets: list[int], lags: list[int], current_lag: int, ends: list[int], now: int, status: Status
) -> None:
    """Derived by hand from calculatePartitionStatus at ced55ba: commits every 100 s from 100 s on, ``now`` in s."""
    times = [100_000 * n for n in range(1, 6)]
    assert partition_status(offsets, times, lags, current_lag, ends, now * 1000) == status


def test_only_the_last_ten_commits_count() -> None:
    times = [1_000 * n for n in range(11)]
    assert partition_status([9, *[5] * 10], times, [0, *[4] * 10], 4, [9], 10_500) == "STALL"
    assert partition_status([5] * 11, [-(10**9), *times[1:]], [4] * 11, 4, [9], 20_000) == "STOP"


def test_lists_of_different_commits_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^2 offsets, 1 times and 2 lags of the same commits$"):
        partition_status([1, 2], [0], [1, 1], 1, [3], 1)


def test_only_the_first_fall_is_asked_whether_it_was_made_up_for() -> None:
    assert not has_rewound([5, 2, 6, 3])
    assert has_rewound([5, 2, 3, 1, 4])


@given(st.lists(st.none() | st.sampled_from(STATUSES)))
def test_a_group_is_as_bad_as_its_worst_queue(statuses: list[Status | None]) -> None:
    known = [status for status in statuses if status is not None]
    answer = group_status(statuses)
    assert answer == group_status(reversed(statuses))
    if answer is None:
        assert None in statuses
        assert set(known) <= {"OK"}
    else:
        assert answer in known or not statuses
        assert all(STATUSES.index(status) <= STATUSES.index(answer) for status in known)


POINTS = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 10_000)), max_size=30)


@st.composite
def rising(draw: st.DrawFn) -> list[HeadPoint]:
    """Points as they come from a healthy broker: later ones never lower."""
    times = sorted(draw(st.sets(st.integers(0, 10_000), max_size=30)))
    ends = sorted(draw(st.lists(st.integers(0, 50), min_size=len(times), max_size=len(times))))
    return list(zip(ends, times, strict=True))


@given(POINTS)
def test_kept_points_rise_in_time_and_never_fall_and_runs_have_two(points: list[HeadPoint]) -> None:
    kept = keep_head_points(points)
    assert [time for _, time in kept] == sorted({time for _, time in kept})
    assert [end for end, _ in kept] == sorted(end for end, _ in kept)
    assert all(len(list(run)) <= 2 for _, run in itertools.groupby(kept, key=lambda point: point[0]))
    assert keep_head_points(kept) == kept
    assert kept[:1] == points[:1]


@given(rising(), st.integers(-10, 60))
def test_dropping_the_middle_of_runs_changes_no_time(points: list[HeadPoint], offset: int) -> None:
    assert head_time(keep_head_points(points), offset) == head_time(points, offset)


@given(rising().map(keep_head_points), st.integers(-10, 60), st.integers(-10, 60))
def test_who_has_committed_more_lags_less(points: list[HeadPoint], one: int, other: int) -> None:
    lags = [time_lag(points, offset, 10_000) for offset in sorted((one, other))]
    if lags[0] is not None and lags[1] is not None:
        assert lags[0] >= lags[1] - 1e-6  # interpolation rounds
    assert all(lag is None or lag >= 0 for lag in lags)


@given(rising().map(keep_head_points), st.integers(-10, 60))
def test_the_time_lies_between_the_points_around_it(points: list[HeadPoint], offset: int) -> None:
    found = head_time(points, offset)
    if found is None:
        assert len(points) < 2 or offset >= points[-1][0] or points[0][0] == points[-1][0]
    elif found.extrapolated:
        assert offset < points[0][0]
        assert found.time_ms < points[0][1]
    else:
        assert max(time for end, time in points if end <= offset) <= found.time_ms + 1e-6
        assert found.time_ms <= min(time for end, time in points if end > offset) + 1e-6


@given(rising().map(keep_head_points))
def test_at_a_point_the_lag_is_its_age(points: list[HeadPoint]) -> None:
    for end, time in dict(points).items():  # the last point of each end
        lag = time_lag(points, end, 20_000)
        assert lag is None if len(points) < 2 else lag == (0.0 if end == points[-1][0] else 20_000 - time)


def test_a_lag_that_nothing_tells_is_unknown_not_zero() -> None:
    assert time_lag([], 5, 1_000) is None
    assert time_lag([(5, 0)], 5, 1_000) is None
    assert time_lag([(5, 0), (5, 900)], 4, 1_000) is None  # the end never moved: when it was at 4 is unknown
    assert time_lag([(5, 0), (5, 900)], 5, 1_000) == 0.0


def test_before_the_first_point_the_whole_line_is_followed() -> None:
    points = [(100, 10_000), (110, 20_000), (200, 30_000)]  # 5 messages a second over all
    assert head_time(points, 75) == (5_000.0, True)
    assert time_lag(points, 75, 31_000) == 26_000.0


def test_asked_for_a_moment_before_the_end_was_there_the_lag_is_zero() -> None:
    assert time_lag([(100, 10_000), (200, 20_000)], 150, 12_000) == 0.0


def test_every_status_by_burrows_numbers() -> None:
    assert STATUSES == ("OK", "WARN", "STOP", "STALL", "REWIND")


def test_the_commit_of_the_fall_itself_counts() -> None:
    assert has_rewound([5, 2])
    assert not has_rewound([5, 2, 5])
    # It alone is lower; the check begins with it, not behind it.
    assert has_rewound([3, 1])


def test_only_the_run_at_the_end_grows() -> None:
    points = [(1, 10), (2, 20), (3, 30), (3, 40), (3, 50), (2, 55), (3, 60)]
    assert keep_head_points(points) == [(1, 10), (2, 20), (3, 30), (3, 60)]
    assert keep_head_points([(1, 10), (1, 20), (2, 30), (2, 40)]) == [(1, 10), (1, 20), (2, 30), (2, 40)]
    assert keep_head_points([(1, 10), (2, 20), (2, 30)]) == [(1, 10), (2, 20), (2, 30)]
