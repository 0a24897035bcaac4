"""Skips: a pull begins behind all messages of the queue that the group received."""

from __future__ import annotations

import itertools

import pytest

from oracles.skip import Pull, Skip, skips

MOST = 2**63 - 1


def test_a_pull_that_goes_on_where_one_ended_skips_nothing() -> None:
    assert skips([Pull(1, 10, 14, 90), Pull(2, 14, 20, 90), Pull(3, 14, 20, 90), Pull(4, 20, 20, 90)]) == []


def test_a_skip_is_from_all_that_was_reached_whoever_pulled_it() -> None:
    pulls = [Pull(1, 10, 14, 90, client_id="a"), Pull(2, 5, 6, 90, client_id="b"), Pull(3, 15, 20, 90, client_id="b")]
    assert skips(pulls) == [Skip(14, 15, 3)]


def test_the_first_pull_skips_nothing() -> None:
    assert skips([Pull(1, 50, 60, 90)]) == []
    assert skips([Pull(1, None, None, 90), Pull(2, 50, 60, 90)]) == []


def test_a_pull_that_was_not_answered_reached_where_it_begins() -> None:
    assert skips([Pull(1, 10), Pull(2, 11, 20, 90)]) == [Skip(10, 11, 2)]
    assert skips([Pull(1, None, 12), Pull(2, 13, 20, 90)]) == [Skip(12, 13, 2)]


@pytest.mark.parametrize(("end", "is_skip"), [(49, False), (50, True), (None, False)])
def test_a_pull_behind_the_end_is_corrected(end: int | None, is_skip: bool) -> None:
    assert bool(skips([Pull(1, 10, 14, 90), Pull(2, 50, 14, end)])) is is_skip


def test_a_skipping_pull_reaches_its_own_offset_even_if_it_is_corrected() -> None:
    assert skips([Pull(1, 10, 14, 90), Pull(2, 99, 20, 90), Pull(3, 30, 40, 90)]) == []


def test_pulls_of_one_instant_go_by_opaque_then_by_client() -> None:
    pulls = [
        Pull(5, 1, 2, 90, None, "z"),
        Pull(5, 4, 5, 90, 0, "z"),
        Pull(5, 7, 8, 90, 1, "a"),
        Pull(5, 9, 9, 90, 1, "b"),
    ]
    expected = [Skip(2, 4, 5), Skip(5, 7, 5), Skip(8, 9, 5)]
    assert all(skips(order) == expected for order in itertools.permutations(pulls))


def test_offsets_of_long_max_value() -> None:
    assert skips([Pull(1, 0, 5, MOST), Pull(2, MOST, MOST, MOST)]) == [Skip(5, MOST, 2)]
    assert skips([Pull(1, MOST, None, 5), Pull(2, 20, 30, 90)]) == []
