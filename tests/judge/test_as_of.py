"""The nearest row before and after, against a plain search."""

from __future__ import annotations

import datetime as dt
import random

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from mqreplay.judge.as_of import as_of
from silver_moments import at


def nearest(known, key, moment, after):
    found = [(t, v) for k, t, v in known if k == key and (t >= moment if after else t <= moment)]
    return (min(found) if after else max(found))[1] if found else None


@pytest.mark.parametrize("after", [False, True])
def test_both_ways_as_a_plain_search(after):
    rng = random.Random(7)
    known = [(rng.choice("ab"), rng.randrange(40), f"v{rng.randrange(9)}") for _ in range(60)]
    asked = [(i, rng.choice("abc"), rng.randrange(40)) for i in range(120)]
    left = pl.DataFrame(asked, ["i", "k", "at"], orient="row")
    right = pl.DataFrame(known, ["k", "at", "v"], orient="row")
    expected = left.with_columns(pl.Series("found", [nearest(known, k, t, after) for _, k, t in asked], pl.String))
    assert expected["found"].null_count() not in (0, len(asked))
    assert_frame_equal(as_of(left, right, ["k"], "at", {"found": "v"}, after=after), expected)
    assert_frame_equal(as_of(left, right.reverse(), ["k"], "at", {"found": "v"}, after=after), expected)


@pytest.mark.parametrize(("after", "value"), [(False, 9), (True, 3)])
def test_of_several_at_one_instant_the_greatest_before_and_the_least_after(after, value):
    left = pl.DataFrame({"k": ["a"], "at": [5]})
    right = pl.DataFrame({"k": ["a"] * 3, "at": [5] * 3, "v": [7, 9, 3]})
    assert as_of(left, right, ["k"], "at", {"found": "v"}, after=after)["found"].to_list() == [value]


@pytest.mark.parametrize("after", [False, True])
def test_null_instants_are_not_asked_and_null_values_are_no_answer(after):
    right = pl.DataFrame({"k": ["a", "a", "b"], "at": [1, None, 0], "v": [None, "x", "y"]})
    left = pl.DataFrame({"i": [1, 2, 3], "k": ["a", "a", "b"], "at": [1, None, None]})
    assert as_of(left, right, ["k"], "at", {"found": "v"}, after=after)["found"].to_list() == [None] * 3


def test_each_value_is_looked_up_by_itself():
    left = pl.DataFrame({"k": ["a"], "since": [at(9)]})
    right = pl.DataFrame({"k": ["a", "a"], "ts": [at(1), at(2)], "low": [1, None], "seen": [at(1), at(2)]})
    found = as_of(left, right, ["k"], "since", {"low": "low", "last": "seen"}, right_at="ts")
    assert found.columns == ["k", "since", "low", "last"]
    assert found.rows() == [("a", at(9), 1, at(2))]
    assert found.schema["last"] == left.schema["since"]


def test_both_sides_may_come_from_one_frame():
    whole = pl.DataFrame({"k": ["a"] * 9, "at": range(9), "v": range(0, 90, 10), "kind": [i % 3 for i in range(9)]})
    asked, known = whole.filter(pl.col("kind") == 1), whole.filter(pl.col("kind") != 1)
    found = as_of(asked, known, ["k"], "at", {"found": "v"})
    assert found.rows() == [("a", 1, 10, 1, 0), ("a", 4, 40, 1, 30), ("a", 7, 70, 1, 60)]


def test_instants_too_far_from_each_other_for_one_number():
    early, late = dt.datetime(1, 1, 1, tzinfo=dt.UTC), dt.datetime(9999, 12, 31, tzinfo=dt.UTC)
    left = pl.DataFrame({"k": ["a", "b"], "at": [late, early]})
    right = pl.DataFrame({"k": ["a", "b"], "at": [early, early], "v": [1, 2]})
    assert as_of(left, right, ["k"], "at", {"found": "v"})["found"].to_list() == [1, 2]


@pytest.mark.parametrize("empty", ["left", "right", "both"])
def test_empty_frames(empty):
    left, right = pl.DataFrame({"k": ["a"], "at": [5]}), pl.DataFrame({"k": ["a"], "at": [5], "v": ["x"]})
    left = left.clear() if empty != "right" else left
    right = right.clear() if empty != "left" else right
    found = as_of(left, right, ["k"], "at", {"found": "v"})
    assert found.schema == left.schema | {"found": pl.String}
    assert found["found"].to_list() == [None] * len(left)
