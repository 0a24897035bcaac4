"""Suspects: each reason alone, its bounds, and statements of one instant."""

from __future__ import annotations

import pytest

from oracles.offset_evidence import OffsetChange, QueueEnd
from oracles.offset_suspect import suspect_reasons

MOST = 2**63 - 1
CHANGE = OffsetChange(10, 20, 5, 9)


@pytest.mark.parametrize(
    ("previous", "new", "reasons"),
    [
        (5, 9, set()),
        (5, 5, set()),
        (None, 0, set()),
        (5, 4, {"fell"}),
        (5, None, {"vanished"}),
        (None, None, {"vanished"}),
        (MOST, -MOST, {"fell"}),
    ],
)
def test_an_offset_falls_or_vanishes(previous: int | None, new: int | None, reasons: set[str]) -> None:
    assert suspect_reasons([OffsetChange(10, 20, previous, new)], []) == reasons


@pytest.mark.parametrize(
    ("ends", "suspect"),
    [
        ([QueueEnd(20, None, 8)], True),
        ([QueueEnd(20, None, 9)], False),
        ([QueueEnd(19, None, 8)], False),  # it may have risen since
        ([QueueEnd(99, None, 8)], True),
        ([QueueEnd(21, None, 9), QueueEnd(22, None, 8)], False),  # only the first statement after the copy counts
        ([QueueEnd(21, None, None), QueueEnd(22, None, 8)], True),
        ([QueueEnd(21, None, 9), QueueEnd(21, None, 8)], True),
        ([QueueEnd(34, None, 8, 19)], False),  # the end may be as old as the request
        ([QueueEnd(34, None, 8, 20), QueueEnd(22, None, 9, 21)], True),
    ],
)
def test_an_offset_is_above_the_end_stated_next(ends: list[QueueEnd], suspect: bool) -> None:
    assert suspect_reasons([CHANGE], ends) == suspect_reasons([CHANGE], ends[::-1])
    assert suspect_reasons([CHANGE], ends) == ({"above max_offset"} if suspect else set())


@pytest.mark.parametrize(
    ("ends", "suspect"),
    [
        ([QueueEnd(10, 10, None)], True),
        ([QueueEnd(10, 9, None)], False),
        ([QueueEnd(11, 10, None)], False),  # the change may have been made before
        ([QueueEnd(1, 10, None)], True),
        ([QueueEnd(1, 10, None), QueueEnd(2, 9, None)], False),
        ([QueueEnd(1, 10, None), QueueEnd(2, None, None)], True),
        ([QueueEnd(2, 10, None), QueueEnd(2, 9, None)], True),
    ],
)
def test_an_offset_is_below_the_beginning_stated_last(ends: list[QueueEnd], suspect: bool) -> None:
    assert suspect_reasons([CHANGE], ends) == suspect_reasons([CHANGE], ends[::-1])
    assert suspect_reasons([CHANGE], ends) == ({"below min_offset"} if suspect else set())


def test_the_first_copy_of_a_file_was_made_at_its_own_instant() -> None:
    first = OffsetChange(None, 20, None, 9)
    assert suspect_reasons([first], [QueueEnd(20, 10, None)]) == {"below min_offset"}
    assert suspect_reasons([first], [QueueEnd(21, 10, None)]) == set()


def test_every_reason_counts_once() -> None:
    ends = [QueueEnd(1, 8, 20), QueueEnd(50, 8, 20)]
    changes = [OffsetChange(10, 20, 9, 7), OffsetChange(20, 30, 7, MOST), OffsetChange(30, 40, MOST, None), CHANGE]
    assert suspect_reasons(changes, ends) == {"fell", "below min_offset", "above max_offset", "vanished"}
    assert suspect_reasons([], ends) == set()
