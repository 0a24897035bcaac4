"""Nearest rows of arrays and frames, against a plain search."""

from __future__ import annotations

import datetime as dt
import random

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from mqreplay.evidence.arrays.distinct import common_codes
from mqreplay.evidence.arrays.frame_arrays import NOWHERE, ranks
from mqreplay.evidence.arrays.nearest import as_of, nearest
from silver_moments import at

ROWS = st.lists(st.tuples(st.integers(0, 3), st.sampled_from([-(2**62), -5, 0, 1, 2, 3, 7, 2**62])), max_size=12)


def plain(key, moment, known, side):
    meets = {
        "before": lambda t: t <= moment,
        "strictly_before": lambda t: t < moment,
        "after": lambda t: t >= moment,
    }[side]
    found = [(t, i if side != "after" else -i) for i, (k, t) in enumerate(known) if k == key and meets(t)]
    if not found:
        return NOWHERE
    return abs((min if side == "after" else max)(found, key=lambda f: (f[0], -f[1]) if side == "after" else f)[1])


@given(ROWS, ROWS, st.sampled_from(["before", "strictly_before", "after"]))
def test_as_a_plain_search(asked, known, side):
    columns = [np.array([row[i] for row in rows], np.int64) for rows in (asked, known) for i in (0, 1)]
    want = [plain(key, moment, known, side) for key, moment in asked]
    assert nearest(*columns, side=side).tolist() == want


@given(ROWS)
def test_ranks_are_the_order_of_pairs(rows):
    columns = [np.array([row[i] for row in rows], np.int64) for i in (0, 1)]
    order = sorted(set(rows))
    assert ranks(*columns).tolist() == [order.index(row) for row in rows]


def test_codes_are_equal_where_keys_are_null_among_them():
    left = [pa.array(["a", None, "b"]), pa.chunked_array([[1], [1, 2]])]
    right = [pa.array([None, "b", "c"]), pa.array([1, 2, 2])]
    of_left, of_right = common_codes(left, right)
    assert of_left[1] == of_right[0]
    assert of_left[2] == of_right[1]
    assert len({*of_left.tolist(), *of_right.tolist()}) == 4


def by_search(known, key, moment, after):
    found = [(t, v) for k, t, v in known if k == key and (t >= moment if after else t <= moment)]
    return (min(found) if after else max(found))[1] if found else None


@pytest.mark.parametrize("after", [False, True])
def test_both_ways_as_a_plain_search(after):
    rng = random.Random(7)
    known = [(rng.choice("ab"), rng.randrange(40), f"v{rng.randrange(9)}") for _ in range(60)]
    asked = [(i, rng.choice("abc"), rng.randrange(40)) for i in range(120)]
    left = pl.DataFrame(asked, ["i", "k", "at"], orient="row")
    right = pl.DataFrame(known, ["k", "at", "v"], orient="row")
    expected = left.with_columns(pl.Series("found", [by_search(known, k, t, after) for _, k, t in asked], pl.String))
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
