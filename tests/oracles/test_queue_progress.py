"""Progress by hour: which change begins and ends an hour, and which end of the queue counts."""

from __future__ import annotations

import itertools

import pytest

from oracles.offset_evidence import OffsetChange, QueueEnd
from oracles.queue_progress import HourProgress, progress_by_hour

MOST = 2**63 - 1
HOUR_US = 3_600_000_000


def change(ts: int, previous: int | None, new: int | None) -> OffsetChange:
    return OffsetChange(None, ts, previous, new)


def test_an_hour_has_its_own_changes_and_the_one_at_its_full_hour() -> None:
    changes = [change(0, 4, 5), change(HOUR_US - 1, 5, 3), change(HOUR_US, 3, 8), change(3 * HOUR_US, 8, 9)]
    found = progress_by_hour(reversed(changes), [])
    assert found == [
        HourProgress(0, 4, 3, 3, 5, 2, None),
        HourProgress(HOUR_US, 3, 8, 3, 8, 1, None),
        HourProgress(3 * HOUR_US, 8, 9, 8, 9, 1, None),
    ]


@pytest.mark.parametrize(
    ("previous", "new", "first", "last", "least", "most"),
    [(None, 7, 7, 7, 7, 7), (7, None, 7, None, 7, 7), (None, None, None, None, None, None)],
)
def test_missing_offsets(
    previous: int | None, new: int | None, first: int | None, last: int | None, least: int | None, most: int | None
) -> None:
    [hour] = progress_by_hour([change(1, previous, new)], [QueueEnd(2, 0, 9)])
    assert hour == HourProgress(0, first, last, least, most, 1, 9)
    assert (hour.advance, hour.lag) == (None if last is None else 0, None if last is None else 2)


@pytest.mark.parametrize(
    ("ends", "high"),
    [
        ([], None),
        ([QueueEnd(HOUR_US, 0, 8)], 8),  # the hour's own last instant
        ([QueueEnd(HOUR_US + 1, 0, 8)], None),
        ([QueueEnd(5, 0, 8), QueueEnd(HOUR_US + 1, 0, 9)], 8),
        ([QueueEnd(-1, 0, 8)], None),  # of another hour
        ([QueueEnd(0, 0, 8)], 8),
        ([QueueEnd(5, 0, 8), QueueEnd(6, 0, None)], None),  # the last statement has no end
        ([QueueEnd(5, 0, 8), QueueEnd(5, 0, None), QueueEnd(5, 0, 9)], 9),
    ],
)
def test_the_end_is_the_last_one_stated_in_the_hour(ends: list[QueueEnd], high: int | None) -> None:
    for order in itertools.permutations(ends):
        assert [hour.queue_max_offset for hour in progress_by_hour([change(1, 2, 3)], order)] == [high]


def test_changes_of_one_instant_go_by_their_offsets() -> None:
    changes = [change(5, 4, 5), change(5, None, 4), change(5, 5, 9), change(5, 5, None)]
    for order in itertools.permutations(changes):
        [hour] = progress_by_hour(order, [])
        assert (hour.first_offset, hour.last_offset, hour.changes) == (4, 9, 4)


@pytest.mark.parametrize(
    ("previous", "new", "high", "advance", "lag"),
    [(-1, MOST, MOST, MOST, 0), (MOST, -1, MOST, -MOST, None), (0, 1, MOST, 1, MOST - 1), (1, 5, 3, 4, 0)],
)
def test_advance_and_lag_are_numbers_that_a_bigint_holds(
    previous: int, new: int, high: int, advance: int, lag: int | None
) -> None:
    [hour] = progress_by_hour([change(1, previous, new)], [QueueEnd(2, 0, high)])
    assert (hour.advance, hour.lag) == (advance, lag)


def test_no_changes_have_no_hours() -> None:
    assert progress_by_hour([], [QueueEnd(1, 0, 5)]) == []
