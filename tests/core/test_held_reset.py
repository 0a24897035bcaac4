"""Which pulls a broker answered with an offset that it was reset to."""

from __future__ import annotations

import pytest

from mqreplay.core.pull_answer import HeldReset, MovedPull, are_answered_by_resets

SKEW = 60


@pytest.mark.parametrize(
    ("resets", "pulls", "expected"),
    [
        ([], [(100, 7)], [False]),
        ([(10, 7)], [(100, 7)], [True]),
        ([(10, 7)], [(100, 8)], [False]),
        ([(10, None)], [(100, 8)], [True]),
        # Their clocks differ by up to SKEW.
        ([(160, 7)], [(100, 7)], [True]),
        ([(161, 7)], [(100, 7)], [False]),
        # One reset, one answer.
        ([(10, 7)], [(100, 7), (110, 7)], [True, False]),
        ([(10, None)], [(100, 7), (110, 7)], [True, False]),
        ([(90, 7), (120, 7)], [(100, 7), (121, 7)], [True, True]),
        ([(110, 7), (120, 7), (130, 7)], [(100, 7), (121, 7), (122, 7)], [True, True, True]),
        # A pull takes what waits, whatever its answer was.
        ([(10, 7)], [(100, 8), (110, 7)], [False, False]),
        ([(90, 7)], [(100, 8), (110, 7)], [False, True]),
        # The later of two replaces the first; where the clocks leave it open, either can be it.
        ([(10, 7), (20, 8)], [(100, 7)], [False]),
        ([(10, 7), (20, 8)], [(100, 8)], [True]),
        ([(10, 7), (90, 8)], [(100, 7)], [True]),
        ([(90, 8), (10, 7)], [(100, 8)], [True]),
        ([(10, 7), (20, None)], [(100, 7)], [True]),
        ([(10, 7), (20, 7)], [(100, 7), (200, 7)], [True, False]),
    ],
)
def test_answers(resets: list[tuple[int, int | None]], pulls: list[tuple[int, int]], expected: list[bool]) -> None:
    found = are_answered_by_resets([HeldReset(*each) for each in resets], [MovedPull(*each) for each in pulls], SKEW)
    assert found == expected


def test_the_same_clock_needs_no_slack() -> None:
    pulls = [MovedPull(100, 7)]
    assert are_answered_by_resets([HeldReset(100, 7)], pulls) == [True]
    assert are_answered_by_resets([HeldReset(101, 7)], pulls) == [False]
