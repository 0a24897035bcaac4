"""Time spans of a clock: wrong clocks, jumps, and differences with other reasons."""

from __future__ import annotations

from random import Random

import pytest

from mqreplay.core.client_clock import ClockSample
from mqreplay.core.clock_stretch import ClockStretch, clock_stretches, recorders_ms

MOST_MS, HOUR, COPY_MS = 60_000, 3_600_000, 5_000


def samples(*offs: tuple[int, int], unsure: int = 0) -> list[ClockSample]:
    """One sample a copy: by how many ms the clock is ahead, and in how many copies, one stretch after the other."""
    each = [off for off, copies in offs for _ in range(copies)]
    return [
        ClockSample(copy * COPY_MS + off - 3_000, copy * COPY_MS, off - 3_000, unsure) for copy, off in enumerate(each)
    ]


def skews(given: list[ClockSample]) -> list[int]:
    return [stretch.skew_ms for stretch in clock_stretches(given, MOST_MS)]


def test_a_clock_is_off_by_more_than_the_most_in_three_samples() -> None:
    assert skews(samples((60_000, 20))) == []
    assert skews(samples((60_001, 20))) == [60_001]
    assert skews(samples((-60_001, 3))) == [-60_001]
    assert skews(samples((HOUR, 2))) == []
    assert skews(samples((60_500, 20), unsure=500)) == []
    assert skews(samples((60_501, 20), unsure=500)) == [60_501]


def test_a_clock_that_jumps_ahead() -> None:
    before, after = clock_stretches(samples((0, 10), (HOUR, 10)), MOST_MS)
    last, first = 9 * COPY_MS - 3_000, 10 * COPY_MS + HOUR - 3_000
    assert before == ClockStretch((last + first) // 2, None, 9 * COPY_MS, 0, 10)
    assert after == ClockStretch(None, 10 * COPY_MS, None, HOUR, 10)


def test_a_clock_that_goes_back_states_some_instants_twice() -> None:
    before, after = clock_stretches(samples((HOUR, 10), (0, 10)), MOST_MS)
    assert before.said_until_ms == 9 * COPY_MS + HOUR - 3_000 + 1
    assert (before.skew_ms, after.skew_ms) == (HOUR, 0)


@pytest.mark.parametrize(("copies", "found"), [(4, []), (5, [0, HOUR, 0])])
def test_a_stretch_among_others_lasts_20_s(copies: int, found: list[int]) -> None:
    assert skews(samples((0, 20), (HOUR, copies), (0, 20))) == found


def test_one_wrong_copy_ends_no_stretch() -> None:
    assert skews(samples((HOUR, 10), (0, 1), (HOUR, 10))) == [HOUR]
    [stretch] = clock_stretches(samples((HOUR, 10), (0, 1), (HOUR, 10)), MOST_MS)
    assert stretch.matches == 20


@pytest.mark.parametrize(("by", "found"), [(15_000, [77_500]), (15_001, [70_000, 85_001])])
def test_stretches_differ_by_more_than_15_s(by: int, found: list[int]) -> None:
    assert skews(samples((70_000, 20), (70_000 + by, 20))) == found


def test_samples_less_sure_than_usual_show_nothing() -> None:
    given = samples((0, 10), (HOUR, 10))
    unsure = [sample._replace(unsure_ms=HOUR) if 8 <= n < 12 else sample for n, sample in enumerate(given)]
    assert [stretch.matches for stretch in clock_stretches(unsure, MOST_MS)] == [8, 8]


def test_the_order_of_samples_does_not_matter() -> None:
    given = samples((0, 10), (HOUR, 10))
    found = clock_stretches(given, MOST_MS)
    for seed in range(10):
        assert clock_stretches(Random(seed).sample(given, len(given)), MOST_MS) == found


def test_without_samples_there_is_no_stretch() -> None:
    assert clock_stretches([], MOST_MS) == []


@pytest.mark.parametrize(("said", "right"), [(99, 99), (100, 90), (199, 189), (200, 179), (10**15, 10**15 - 21)])
def test_an_instant_belongs_to_the_first_stretch_that_ends_after_it(said: int, right: int) -> None:
    bounds = [(100, 0), (200, 10), (150, 20), (None, 21)]
    assert recorders_ms(said, [ClockStretch(until, None, None, skew, 9) for until, skew in bounds]) == right
