"""Samples of a client's clock: which of its offsets counts, and what leaves a sample unsure."""

from __future__ import annotations

import pytest

from mqreplay.core.clock_span import ClockSample
from oracles.client_clock import ClientOffset, clock_samples
from oracles.offset_evidence import OffsetChange

S = 1_000_000
MOST = 2**63 - 1
FIRST = ClientOffset(0, 5)


def stated(second: float, offset: int, is_pull: bool = False) -> ClientOffset:
    return ClientOffset(int(second * S), offset, is_pull)


def rise(from_s: int | None, to_s: int, previous: int | None, new: int | None) -> OffsetChange:
    return OffsetChange(None if from_s is None else from_s * S, to_s * S, previous, new)


def test_the_highest_offset_of_the_rise_counts_when_it_is_first_stated() -> None:
    offsets = [FIRST, stated(1, 7), stated(2, 8), stated(3, 8), stated(4, 12)]
    assert clock_samples(offsets, [rise(0, 5, 5, 9)]) == [ClockSample(2_000, 5_000, -3_000, 0)]
    assert clock_samples(offsets[::-1], [rise(0, 5, 5, 9)]) == [ClockSample(2_000, 5_000, -3_000, 0)]


def test_each_rise_gives_a_sample() -> None:
    found = clock_samples([FIRST, stated(1, 7), stated(6, 9)], [rise(0, 5, 5, 7), rise(5, 10, 7, 9)])
    assert [(sample.stated_ms, sample.shown_ms) for sample in found] == [(1_000, 5_000), (6_000, 10_000)]


@pytest.mark.parametrize(("offset", "counts"), [(5, False), (6, True), (9, True), (10, False)])
def test_a_rise_contains_its_upper_end_only(offset: int, counts: bool) -> None:
    assert bool(clock_samples([stated(0, 1), stated(1, offset)], [rise(0, 5, 5, 9)])) is counts


def test_the_first_statement_may_repeat_what_is_long_past() -> None:
    assert clock_samples([stated(1, 7)], [rise(0, 5, 5, 9)]) == []
    assert clock_samples([stated(1, 7), stated(2, 7)], [rise(0, 5, 5, 9)]) == []


def test_a_pull_repeats_what_was_committed_since_the_statement_before() -> None:
    commit = clock_samples([FIRST, stated(11, 7)], [rise(10, 15, 5, 9)])
    pull = clock_samples([FIRST, stated(11, 7, is_pull=True)], [rise(10, 15, 5, 9)])
    assert commit == [ClockSample(11_000, 15_000, -4_000, 0)]
    assert pull == [ClockSample(11_000, 15_000, -7_000, 3_000)]  # half of the 6 s that are more than usual
    # Of one instant the commit comes first.
    both = clock_samples([FIRST, stated(11, 8, is_pull=True), stated(11, 7)], [rise(10, 15, 5, 9)])
    assert both == [ClockSample(11_000, 15_000, -4_000, 0)]


@pytest.mark.parametrize(("from_s", "off", "unsure"), [(10, -4_000, 0), (9, -3_500, 500), (None, -4_000, 0)])
def test_copies_far_from_each_other_leave_open_when_the_commit_was_stored(
    from_s: int | None, off: int, unsure: int
) -> None:
    found = clock_samples([FIRST, stated(11, 7)], [rise(from_s, 15, 5, 9)])
    assert found == [ClockSample(11_000, 15_000, off, unsure)]


@pytest.mark.parametrize(
    ("other", "counts"),
    [
        (rise(5, 10, 9, 12), True),
        (rise(5, 10, 9, 9), False),  # the same offset again
        (rise(5, 10, 9, 8), False),  # a reset into the rise
        (rise(5, 10, 12, 10), True),
        (rise(5, 10, None, 8), False),  # an entry that is not there is as good as 0
        (rise(None, 10, None, 8), True),  # the first copy: nothing is known to have passed
        (rise(5, 10, 9, None), True),
    ],
)
def test_offsets_that_the_file_passes_twice_do_not_count(other: OffsetChange, counts: bool) -> None:
    found = clock_samples([FIRST, stated(1, 7)], [rise(0, 5, 5, 9), other])
    assert (ClockSample(1_000, 5_000, -4_000, 0) in found) is counts


def test_a_fall_gives_no_sample() -> None:
    assert clock_samples([FIRST, stated(1, 7)], [rise(0, 5, 9, 7)]) == []


def test_offsets_of_long_max_value_and_of_0() -> None:
    assert clock_samples([FIRST, stated(1, MOST)], [rise(0, 5, 5, MOST)]) == [ClockSample(1_000, 5_000, -4_000, 0)]
    assert clock_samples([FIRST, stated(1, MOST)], [rise(0, 5, 5, MOST - 1)]) == []
    # An offset of 0 is none: the 7 is the client's first.
    assert clock_samples([stated(0, 0), stated(1, 7)], [rise(0, 5, 5, 9)]) == []
