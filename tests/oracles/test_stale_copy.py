"""Stale copies: offsets below all of the master's, watched time spans, and both together."""

from __future__ import annotations

import pytest

from oracles.offset_evidence import OffsetChange
from oracles.stale_copy import StalePeriod, StaleSpan, stale_periods, stale_spans, watched_spans

S = 1_000_000
REACH_MS = 30_000
MOST = 2**63 - 1


def change(second: float, previous: int | None, new: int | None, from_s: float | None = None) -> OffsetChange:
    return OffsetChange(None if from_s is None else int(from_s * S), int(second * S), previous, new)


MASTER = [change(0, None, 10), change(100, 10, 20), change(200, 20, 30)]


def spans(master: list[OffsetChange], slave: list[OffsetChange], last: float | None) -> list[tuple[int, ...]]:
    """Seconds since when, from, to; messages lacked, held by the master, and by the slave."""
    found = stale_spans(master, slave, None if last is None else int(last * S), REACH_MS)
    return [(*(ms // 1000 for ms in span[:3]), *span[3:]) for span in found]


def test_a_copy_is_stale_once_the_master_held_more_for_the_reach() -> None:
    # From 100 s on the master's file has more; before that it had 10, as the copy.
    assert spans(MASTER[:2], [change(50, None, 10)], 129) == []
    assert spans(MASTER[:2], [change(50, None, 10)], 130) == [(130, 130, 130, 10, 20, 10)]
    assert spans(MASTER[:2], [change(50, None, 10)], 150) == [(130, 130, 150, 10, 20, 10)]


def test_spans_go_on_from_each_other_until_the_copy_is_right() -> None:
    slave = [change(50, None, 10), change(300, 10, 30, from_s=250), change(400, 30, 31)]
    assert spans(MASTER, slave, 500) == [
        (130, 130, 200, 10, 20, 10),
        (130, 200, 250, 20, 30, 10),
    ]
    assert spans(MASTER[::-1], slave[::-1], 500) == spans(MASTER, slave, 500)


def test_after_a_copy_that_shows_a_change_nothing_is_known_until_that_change() -> None:
    # The copy at 90 s still shows 1; that at 300 s shows 2, since whenever.
    slave = [change(50, None, 1), change(300, 1, 2, from_s=90)]
    assert spans(MASTER, slave, None) == [(80, 80, 90, 9, 10, 1)]
    assert spans(MASTER, slave, 299) == [(80, 80, 90, 9, 10, 1)]
    assert spans(MASTER, slave, 329) == [(80, 80, 90, 9, 10, 1)]
    assert spans(MASTER, slave, 330)[-1] == (330, 330, 330, 28, 30, 2)


def test_a_copy_that_changed_within_reach_is_copied() -> None:
    # Both changes were below all that the master's file held, and only after the second it stays.
    slave = [change(50, None, 2), change(110, 2, 4, from_s=105), change(190, 4, 6, from_s=185)]
    assert spans(MASTER, slave, 219) == [(80, 80, 100, 8, 10, 2), (80, 100, 105, 18, 20, 2), (140, 140, 185, 16, 20, 4)]
    assert spans(MASTER, slave, 225)[-1] == (220, 220, 225, 24, 30, 6)


@pytest.mark.parametrize("before", [None, 10, 9])
def test_what_the_master_held_within_reach_must_be_known_and_higher(before: int | None) -> None:
    master = [MASTER[0], change(140, before, 20)]
    assert spans(master, [change(50, None, 10)], 150) == []
    assert spans(master, [change(50, None, 8)], 150)[-1:] == ([] if before is None else [(80, 140, 150, 12, 20, 8)])


def test_of_one_millisecond_the_masters_file_comes_first_and_the_last_copy_last() -> None:
    master = [change(0, None, 50), change(100.000_1, 50, 60)]
    assert spans(master, [change(60, None, 10)], 100.000_9) == [(90, 90, 100, 40, 50, 10), (90, 100, 100, 50, 60, 10)]


def test_without_an_offset_on_either_side_nothing_is_stale() -> None:
    assert spans([], [change(50, None, 1)], 500) == []
    assert spans(MASTER, [], 500) == []
    assert spans(MASTER, [change(50, None, None)], 500) == []
    assert spans([*MASTER, change(250, 30, None)], [change(205, None, 1)], 500) == [(235, 235, 250, 29, 30, 1)]


def test_messages_are_no_more_than_a_queue_holds() -> None:
    [span] = stale_spans([change(0, None, MOST)], [change(1, None, 1)], 90 * S, REACH_MS)
    assert (span.lacks, span.holds, span.has) == (2**53, MOST, 1)
    assert stale_spans([change(0, None, MOST)], [change(1, None, MOST)], 90 * S, REACH_MS) == []


# Watched.


@pytest.mark.parametrize(
    ("masters", "outages", "watched"),
    [
        ([91 * S], [], [(100_000, 100_000)]),
        ([90 * S], [], []),
        ([90 * S, 101 * S], [], []),
        ([90 * S, 100 * S], [], [(100_000, 100_000)]),
        ([], [], []),
        ([95 * S], [(80 * S, 90 * S)], [(100_000, 100_000)]),
        ([95 * S], [(80 * S, 90 * S + 1)], []),
        ([95 * S], [(100 * S, 120 * S)], []),
        ([95 * S], [(100 * S + 1, 120 * S)], [(100_000, 100_000)]),
        ([95 * S], [(10 * S, 99 * S), (20 * S, 30 * S)], []),
    ],
)
def test_a_copy_is_watched_if_the_master_was_copied_and_there(
    masters: list[int], outages: list[tuple[int, int]], watched: list[tuple[int, int]]
) -> None:
    assert watched_spans([100 * S], masters, outages, 10_000) == watched


@pytest.mark.parametrize(("other_ms", "spans_found"), [(110_000, 1), (110_001, 2)])
def test_copies_that_are_near_make_one_span(other_ms: int, spans_found: int) -> None:
    copies = [other_ms * 1000, 100 * S]
    assert len(watched_spans(copies, copies, [], 10_000)) == spans_found


def test_a_period_is_what_was_watched_of_spans_that_go_on() -> None:
    spans = [StaleSpan(100, 100, 200, 7, 9, 2), StaleSpan(100, 200, 400, 7, 11, 4), StaleSpan(100, 400, 500, 9, 12, 3)]
    assert stale_periods(spans, [(0, 399)], 30) == [StalePeriod(70, 399, 11, 4, 7)]
    assert stale_periods(spans, [(0, 400)], 30) == [StalePeriod(70, 400, 12, 3, 9)]
    assert stale_periods(spans, [(0, 150), (450, 900)], 30) == [StalePeriod(70, 500, 12, 3, 9)]
    assert stale_periods(spans, [(0, 99), (501, 900)], 30) == []
    assert stale_periods(spans, [], 30) == []


def test_each_beginning_is_a_period_of_its_own() -> None:
    spans = [StaleSpan(500, 500, 600, 1, 5, 4), StaleSpan(100, 100, 200, 7, 9, 2)]
    assert [period.from_ms for period in stale_periods(spans, [(0, 900)], 30)] == [70, 470]
