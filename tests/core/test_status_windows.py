"""A queue's windows: each equals an evaluation at its end, with the data until then."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqreplay.core.status_windows import keep_head_points, partition_status, status_windows, time_lag

MINUTE = 60_000


def windows_of(commits, heads, until, window=MINUTE):
    windows = status_windows(
        *zip(*commits, strict=True), *(zip(*heads, strict=True) if heads else ([], [])), window, until
    )
    return [(w.window_end_ms, w.status, w.lag, w.commits) for w in windows]


def test_a_group_that_keeps_up_is_ok_and_one_that_stops_is_stop():
    commits = [(t, t // 1000) for t in range(5_000, 60_000, 5_000)]
    heads = [(t, t // 1000) for t in range(1_000, 180_000, 1_000)]
    found = windows_of(commits, heads, 170_000)
    assert [w[1] for w in found] == ["OK", "STOP", "STOP"]
    assert found[0][2:] == (5, 11)
    assert found[2][2:] == (124, 0)


def test_a_queue_that_does_not_move_while_messages_come_is_stall():
    commits = [(t, 30) for t in range(5_000, 120_000, 5_000)]
    heads = [(t, 40 + t // 1000) for t in range(1_000, 120_000, 1_000)]
    assert [w[1] for w in windows_of(commits, heads, 119_000)] == ["STALL", "STALL"]


def test_ends_older_than_burrow_keeps_do_not_hide_that_a_group_stopped():
    commits = [(t, t // 1000) for t in range(5_000, 60_000, 5_000)]
    heads = [(t, t // 1000) for t in range(0, 300_000, 30_000)]  # ten ends are five minutes
    assert [w[1] for w in windows_of(commits, heads, 239_000)] == ["OK", "OK", "STOP", "STOP"]


def test_one_end_alone_shows_no_silence():
    commits = [(t, t // 1000) for t in range(5_000, 60_000, 5_000)]
    heads = [(50_000, 50), (250_000, 60)]
    assert [w[1] for w in windows_of(commits, heads, 255_000)] == ["OK"] * 5


def test_without_ends_the_lag_is_unknown_and_the_status_with_it():
    ((_, status, lag, commits),) = windows_of([(1_000, 5), (6_000, 6)], [], 7_000)
    assert (status, lag, commits) == (None, None, 2)


def test_time_lag_is_interpolated():
    (window,) = status_windows([50_000], [150], [0, 40_000, 59_000], [100, 200, 300], MINUTE, 59_000)
    assert window.time_lag_ms == 39_000.0


def test_what_comes_after_the_recording_is_no_silence():
    # Ten seconds into the second window the recording ends: asked at 120 s, the group would have stopped.
    commits = [(t, t // 1000) for t in range(30_000, 71_000, 5_000)]
    heads = [(t, t // 1000 + 50) for t in range(1_000, 71_000, 1_000)]
    assert [w[1] for w in windows_of(commits, heads, 70_000)] == ["WARN", "WARN"]
    assert [w[1] for w in windows_of(commits, heads, 119_000)] == ["WARN", "STOP"]


COMMITS = st.lists(st.tuples(st.integers(0, 500_000), st.integers(0, 50)), min_size=1, max_size=30).map(sorted)


@given(COMMITS, COMMITS, st.integers(0, 600_000))
def test_every_window_counts_its_own_commits_and_none_is_left_out(commits, heads, until):
    until = max(until, commits[-1][0])
    found = windows_of(commits, heads, until)
    assert sum(w[3] for w in found) == len(commits)
    ends = [w[0] for w in found]
    assert ends == list(range(ends[0], ends[-1] + 1, MINUTE))
    assert ends[-1] - MINUTE <= until < ends[-1] + MINUTE


def test_each_commit_is_behind_the_end_seen_at_its_time() -> None:
    # Behind by 1, 3 and 5: it falls back. Against the last end it would have been 7, 6 and 5: catching up.
    (window,) = status_windows([10_000, 20_000, 30_000], [5, 6, 7], [9_000, 19_000, 29_000], [6, 9, 12], 40_000, 39_999)
    assert (window.status, window.lag) == ("WARN", 5)


def test_without_commits_there_is_no_window() -> None:
    assert status_windows([], [], [1], [1], 1_000, 9_000) == []


def test_every_time_has_its_offset() -> None:
    with pytest.raises(ValueError, match="zip"):
        status_windows([1, 2], [1], [1], [1], 1_000, 500)
    with pytest.raises(ValueError, match="zip"):
        status_windows([1], [1], [1, 2], [1], 1_000, 500)


def asked_at_each_end(commits, heads, window, until):
    """The same by its definition: all that was known by then, worked out anew for each window."""
    found, before = [], 0
    end = (commits[0][0] // window + 1) * window
    while end - window <= until:
        now = min(end, until)
        made = [c for c in commits if c[0] <= end]
        points = [(offset, at) for at, offset in heads if at <= end]
        times, offsets = zip(*made[-10:], strict=True)
        lags = []
        for at, offset in made[-10:]:
            known = [head for head, seen in points if seen <= at]
            lags.append(max(0, known[-1] - offset) if known else None)
        ends = [head for head, _ in points]
        lag = max(0, ends[-1] - offsets[-1]) if ends else None
        lately = [head for head, seen in points[-10:-2] if seen > now - 100_000] + ends[-2:]
        status = partition_status(offsets, times, lags, lag, lately or None, now)
        delay = time_lag(keep_head_points(points), offsets[-1], now)
        found.append((end, status, lag, delay, len(made) - before, offsets[-1]))
        before, end = len(made), end + window
    return found


@given(COMMITS, st.lists(st.tuples(st.integers(0, 500_000), st.integers(0, 50)), max_size=40).map(sorted))
def test_looking_at_each_point_once_changes_nothing(commits, heads):
    until = max(500_000, commits[-1][0])
    columns = [*zip(*commits, strict=True)], [*zip(*heads, strict=True)] or [(), ()]
    windows = status_windows(*columns[0], *columns[1], MINUTE, until)
    assert [tuple(w) for w in windows] == asked_at_each_end(commits, heads, MINUTE, until)
