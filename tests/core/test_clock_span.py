"""Time spans of a clock: wrong clocks, jumps, and differences with other reasons."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from mqreplay.core.clock_span import SURE_MS, WRITE_MS, ClockSample, ClockSpan, clock_spans
from oracles.client_clock import recorders_ms

MOST_MS, HOUR, COPY_MS = 60_000, 3_600_000, 5_000


def samples(*offs: tuple[int, int], unsure: int = 0) -> list[ClockSample]:
    """One sample a copy; ``offs``: by how many ms the clock is ahead, and in how many copies, one after the other."""
    each = [off for off, copies in offs for _ in range(copies)]
    return [
        ClockSample(copy * COPY_MS + off - 3_000, copy * COPY_MS, off - 3_000, unsure) for copy, off in enumerate(each)
    ]


def skews(samples: list[ClockSample]) -> list[int]:
    return [span.skew_ms for span in clock_spans(samples, MOST_MS)]


def test_a_clock_is_off_by_more_than_the_most_in_three_samples() -> None:
    assert skews(samples((60_000, 20))) == []
    assert skews(samples((60_001, 20))) == [60_001]
    assert skews(samples((-60_001, 3))) == [-60_001]
    assert skews(samples((HOUR, 2))) == []
    assert skews(samples((60_500, 20), unsure=500)) == []
    assert skews(samples((60_501, 20), unsure=500)) == [60_501]


def test_a_clock_that_jumps_ahead() -> None:
    before, after = clock_spans(samples((0, 10), (HOUR, 10)), MOST_MS)
    last, first = 9 * COPY_MS - 3_000, 10 * COPY_MS + HOUR - 3_000
    assert before == ClockSpan((last + first) // 2, None, 9 * COPY_MS, 0, 10)
    assert after == ClockSpan(None, 10 * COPY_MS, None, HOUR, 10)


def test_a_clock_that_goes_back_states_some_instants_twice() -> None:
    before, after = clock_spans(samples((HOUR, 10), (0, 10)), MOST_MS)
    assert before.stated_until_ms == 9 * COPY_MS + HOUR - 3_000 + 1
    assert (before.skew_ms, after.skew_ms) == (HOUR, 0)


@pytest.mark.parametrize(("copies", "found"), [(4, []), (5, [0, HOUR, 0])])
def test_a_span_among_others_lasts_20_s(copies: int, found: list[int]) -> None:
    assert skews(samples((0, 20), (HOUR, copies), (0, 20))) == found


def test_one_wrong_copy_ends_no_span() -> None:
    assert skews(samples((HOUR, 10), (0, 1), (HOUR, 10))) == [HOUR]
    [span] = clock_spans(samples((HOUR, 10), (0, 1), (HOUR, 10)), MOST_MS)
    assert span.matches == 20


@pytest.mark.parametrize(("by", "found"), [(15_000, [77_500]), (15_001, [70_000, 85_001])])
def test_spans_differ_by_more_than_15_s(by: int, found: list[int]) -> None:
    assert skews(samples((70_000, 20), (70_000 + by, 20))) == found


def test_samples_less_sure_than_usual_show_nothing() -> None:
    jump = samples((0, 10), (HOUR, 10))
    unsure = [sample._replace(unsure_ms=HOUR) if 8 <= n < 12 else sample for n, sample in enumerate(jump)]
    assert [span.matches for span in clock_spans(unsure, MOST_MS)] == [8, 8]


def test_the_order_of_samples_does_not_matter() -> None:
    jump = samples((0, 10), (HOUR, 10))
    found = clock_spans(jump, MOST_MS)
    for seed in range(10):
        assert clock_spans(Random(seed).sample(jump, len(jump)), MOST_MS) == found


def test_without_samples_there_is_no_span() -> None:
    assert clock_spans([], MOST_MS) == []


@pytest.mark.parametrize(("stated", "right"), [(99, 99), (100, 90), (199, 189), (200, 179), (10**15, 10**15 - 21)])
def test_an_instant_belongs_to_the_first_span_that_ends_after_it(stated: int, right: int) -> None:
    bounds = [(100, 0), (200, 10), (150, 20), (None, 21)]
    assert recorders_ms(stated, [ClockSpan(until, None, None, skew, 9) for until, skew in bounds]) == right


# Clocks over 100 copies, by a function of the copy's number.


def clock(off: Callable[[int], int], copies: int = 100, unsure: int = 0) -> list[ClockSample]:
    """One sample a copy, of a clock that is ``off(number)`` ms ahead at the moment of the copy."""
    found = []
    for number in range(copies):
        shown_ms, off_ms = number * COPY_MS + 1_000_000, off(number) - WRITE_MS
        found.append(ClockSample(shown_ms + off_ms, shown_ms, off_ms, unsure))
    return found


def test_a_clock_that_is_right_or_nearly_so_has_no_spans() -> None:
    assert skews(clock(lambda n: 0)) == []
    assert skews(clock(lambda n: 59_000)) == []
    assert skews(clock(lambda n: 100_000, unsure=50_000)) == []


def test_a_clock_that_is_off_all_night_has_one_span() -> None:
    assert clock_spans(clock(lambda n: HOUR), MOST_MS) == [ClockSpan(None, None, None, HOUR, 100)]
    assert skews(clock(lambda n: HOUR, copies=3)) == [HOUR]
    assert skews(clock(lambda n: HOUR, copies=2)) == []


@pytest.mark.parametrize("since", [6, 50, 94])
@pytest.mark.parametrize("by", [HOUR, -HOUR, 65_000])
def test_a_clock_that_jumps_has_a_span_before_and_one_after(since: int, by: int) -> None:
    jump = clock(lambda n: by if n >= since else 0)
    before, after = clock_spans(jump, MOST_MS)
    assert (before.skew_ms, after.skew_ms) == (0, by)
    assert before.matches + after.matches == 100
    assert before.stated_until_ms is not None
    if by > 0:
        assert jump[since - 1].stated_ms < before.stated_until_ms <= jump[since].stated_ms
    else:
        assert before.stated_until_ms == jump[since - 1].stated_ms + 1
    assert (before.shown_until_ms, after.shown_from_ms) == (jump[since - 1].shown_ms, jump[since].shown_ms)


def test_a_clock_that_is_set_right_again_has_three_spans() -> None:
    assert skews(clock(lambda n: HOUR if 40 <= n < 60 else 0)) == [0, HOUR, 0]


def test_a_short_error_is_no_span() -> None:
    least = SURE_MS // COPY_MS
    assert skews(clock(lambda n: HOUR if 40 <= n < 40 + least else 0)) == []
    assert skews(clock(lambda n: HOUR if 40 <= n <= 40 + least else 0)) == [0, HOUR, 0]
    assert skews(clock(lambda n: HOUR if n >= 100 - least else 0)) == []


def test_single_samples_that_differ_end_no_span() -> None:
    wrong = {10, 11, 30, 50, 70, 71}
    assert skews(clock(lambda n: 0 if n in wrong else HOUR)) == [HOUR]
    assert skews(clock(lambda n: HOUR if n in wrong else 0)) == []


def test_commits_that_a_broker_lost_while_it_was_down_are_no_clock() -> None:
    """The first copy after its return shows the commits of ten minutes, of one queue or of many."""
    usual = clock(lambda n: 0)
    back = usual[50].shown_ms
    lost = [ClockSample(back - ago, back, -ago, 0) for ago in range(0, 600_000, 3_000)]
    assert skews([*usual, *lost]) == []


def test_a_sample_that_is_unsure_by_the_jump_itself_joins_no_spans() -> None:
    usual = clock(lambda n: HOUR if n >= 50 else 0)
    unsure = [sample._replace(unsure_ms=HOUR // 2) if n in (49, 50) else sample for n, sample in enumerate(usual)]
    assert skews(unsure) == [0, HOUR]


def test_the_order_of_many_samples_does_not_matter() -> None:
    jump = clock(lambda n: HOUR if n >= 50 else 0)
    found = clock_spans(jump, MOST_MS)
    for seed in range(20):
        assert clock_spans(Random(seed).sample(jump, len(jump)), MOST_MS) == found
