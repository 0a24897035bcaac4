"""Standstills of an offset: with commits and without, at their bounds, and with offsets that a client set."""

from __future__ import annotations

import itertools

import pytest

from oracles.offset_evidence import OffsetChange, QueueEnd
from oracles.standstill import OffsetStatement, Standstill, changed_statements, least_standstill_ms, standstills

S = 1_000_000
MOST = 2**63 - 1
STUCK_MS = 30_000


def stated(second: float, offset: int, client_id: str = "c") -> OffsetStatement:
    return OffsetStatement(int(second * S), offset, client_id)


def end(second: float, max_offset: int | None) -> QueueEnd:
    return QueueEnd(int(second * S), 0, max_offset)


def of_commits(*commits: OffsetStatement, ends: list[QueueEnd], changes: list[OffsetChange] | None = None) -> list:
    return standstills(commits, [], changes or [], ends, STUCK_MS)


def test_an_offset_lasts_until_it_moves_and_messages_wait_from_the_first_end_on() -> None:
    ends = [end(-1, 9), end(5, 5), end(10, 7), end(20, 9), end(60, 8), end(61, 99)]
    found = of_commits(stated(0, 5), stated(60, 6), ends=ends)
    assert found == [Standstill(5, 0, 10 * S, 60 * S, 4, 2)]


def test_the_last_offset_stands_still_until_the_last_end_behind_which_messages_wait() -> None:
    assert of_commits(stated(0, 5), ends=[end(10, 6), end(40, 8)]) == [Standstill(5, 0, 10 * S, 40 * S, 3, 2)]
    assert of_commits(stated(0, 5), ends=[end(10, 6), end(30, 8), end(40, 5)]) == []


@pytest.mark.parametrize("ends", [[], [end(1, 5)], [end(1, 4)], [end(1, None)], [end(61, 9)]])
def test_where_nothing_waits_behind_an_offset_it_does_not_stand_still(ends: list[QueueEnd]) -> None:
    assert of_commits(stated(0, 5), stated(60, 6), ends=ends) == []


@pytest.mark.parametrize(("until", "stuck"), [(29.999_999, False), (30, True)])
def test_a_standstill_takes_stuck_ms_and_longer(until: float, stuck: bool) -> None:
    assert bool(of_commits(stated(0, 5), stated(until, 6), ends=[end(0, 9)])) is stuck
    # The offset lasts long enough; messages must wait for as long.
    assert bool(of_commits(stated(-9, 5), stated(until, 6), ends=[end(0, 9)])) is stuck


def test_a_negative_offset_counts_as_the_first_message() -> None:
    (found,) = of_commits(stated(0, -7955368551255983524), ends=[end(0, 9), end(60, 12)])
    assert (found.offset, found.waiting) == (-7955368551255983524, 12)
    assert of_commits(stated(0, -1), ends=[end(0, 0), end(60, 0)]) == []


def test_a_length_counts_in_whole_milliseconds() -> None:
    commits = [OffsetStatement(999, 5, "c"), OffsetStatement(30 * S, 6, "c")]
    assert standstills(commits, [], [], [QueueEnd(999, 0, 9)], STUCK_MS)


def test_the_file_and_each_client_move_the_offset_for_themselves() -> None:
    # The other client's 7 is a move; that the first states 5 again is none.
    moves = changed_statements(
        [stated(0, 5, "a"), stated(10, 7, "b"), stated(20, 5, "a"), stated(30, 5, "b"), stated(40, 7, "a")]
    )
    assert [(move.ts // S, move.offset) for move in moves] == [(0, 5), (10, 7), (30, 5), (40, 7)]
    of_file = [OffsetChange(None, 20 * S, None, 6), OffsetChange(20 * S, 25 * S, 6, None)]
    # The end stated at 0 s is none of the time in which 6 is the offset.
    ends = [end(0, 9), end(22, 9)]
    found = of_commits(stated(0, 5), stated(60, 6), ends=ends, changes=of_file)
    assert found == [Standstill(6, 20 * S, 22 * S, 60 * S, 3, 0)]


def test_statements_of_one_instant_go_by_their_offsets_in_whatever_order_they_come() -> None:
    statements = [stated(0, 5), stated(0, 3), stated(60, 5, "d"), stated(60, 4, "e")]
    ends = [end(0, 9), end(0, 6), end(60, 9), end(100, 9)]
    found = {
        tuple(standstills(order, [], [], [*order_of_ends], STUCK_MS))
        for order in itertools.permutations(statements)
        for order_of_ends in (ends, ends[::-1])
    }
    assert found == {(Standstill(5, 0, 0, 60 * S, 4, 3), Standstill(5, 60 * S, 60 * S, 100 * S, 4, 0))}


@pytest.mark.parametrize(
    ("offset", "high", "waiting"), [(-1, MOST, MOST), (0, MOST, MOST), (1, MOST, MOST - 1), (-MOST, MOST, MOST)]
)
def test_what_waits_is_a_number_that_a_bigint_holds(offset: int, high: int, waiting: int) -> None:
    assert [still.waiting for still in of_commits(stated(0, offset), ends=[end(0, high), end(60, high)])] == [waiting]


def test_behind_an_offset_of_long_max_value_nothing_waits() -> None:
    assert of_commits(stated(0, MOST), ends=[end(0, MOST), end(60, MOST)]) == []


# Without commits.


def test_without_commits_an_offset_lasts_as_long_as_copies_show_it() -> None:
    changes = [OffsetChange(None, 0, None, 5), OffsetChange(40 * S, 50 * S, 5, 6)]
    ends = [end(0, 9), end(90, 9)]
    assert standstills([], [], changes, ends, STUCK_MS) == [Standstill(5, 0, 0, 40 * S, 4, 0)]
    # Shown last at 29 s: what it was until 50 s is not known.
    assert standstills([], [], [changes[0], OffsetChange(29 * S, 50 * S, 5, 6)], ends, STUCK_MS) == []
    assert standstills([], [], [changes[0], OffsetChange(None, 50 * S, 5, 6)], ends, STUCK_MS) == []


def test_the_last_copy_shows_the_last_offset() -> None:
    changes, ends = [OffsetChange(None, 0, None, 5)], [end(0, 9), end(90, 9)]
    assert standstills([], [], changes, ends, STUCK_MS) == []
    assert standstills([], [], changes, ends, STUCK_MS, 29 * S) == []
    assert standstills([], [], changes, ends, STUCK_MS, 30 * S) == [Standstill(5, 0, 0, 30 * S, 4, 0)]
    assert standstills([stated(-99, 5)], [], changes, ends, STUCK_MS, 30 * S)[0].to_ts == 90 * S


def test_a_pull_shows_the_offset_and_its_usual_interval_is_no_standstill() -> None:
    ends = [end(0, 9), end(200, 9)]
    assert standstills([], [stated(t, 5) for t in (0, 20, 40)], [], ends, STUCK_MS) == []
    found = standstills([], [stated(t, 5) for t in (0, 20, 40, 60)], [], ends, STUCK_MS)
    assert found == [Standstill(5, 0, 0, 60 * S, 4, 0)]
    # A commit of the group shows that commits were recorded: then `stuck_ms` is enough.
    pulls = [stated(0, 5), stated(20, 5), stated(40, 5)]
    assert standstills([stated(41, 6)], pulls, [], ends[:1], STUCK_MS) == [Standstill(5, 0, 0, 41 * S, 4, 0)]


def test_the_usual_interval_is_the_lower_median_in_whole_milliseconds() -> None:
    assert least_standstill_ms([0, 10_000, 30_000], 1) == 30
    assert least_standstill_ms([60_000, 30_000, 0, 10_000], 1) == 60
    assert least_standstill_ms([999, 2_000], 1) == 6
    assert least_standstill_ms([], 7) == least_standstill_ms([5], 7) == least_standstill_ms([5, 5], 7) == 7


def test_nothing_was_stated() -> None:
    assert standstills([], [], [], [end(0, 9)], STUCK_MS) == []
    assert standstills([], [], [OffsetChange(0, 9, 5, None)], [end(0, 9)], STUCK_MS, 60 * S) == []
