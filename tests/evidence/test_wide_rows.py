"""Rows with long lists in slices, and numbers of rows' values."""

from __future__ import annotations

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from mqreplay.evidence.arrays.distinct import distinct_values, value_numbers
from mqreplay.evidence.arrays.frame_arrays import slices

LISTS = st.lists(st.integers(0, 2), max_size=4) | st.none()
ROWS = st.lists(st.tuples(st.sampled_from("ab"), LISTS, LISTS), max_size=20)


def frame(listed: list[tuple]) -> pl.DataFrame:
    return pl.DataFrame(listed, {"name": pl.String, "a": pl.List(pl.Int64), "b": pl.List(pl.Int64)}, orient="row")


@given(ROWS, st.integers(1, 20))
def test_each_row_is_in_one_slice_and_slices_are_small(listed, most_items):
    parts = [part.tolist() for part in slices(frame(listed), ["a", "b"], ["name"], most_items)]
    in_order = [row for part in parts for row in part]
    assert sorted(in_order) == list(range(len(listed)))
    assert [listed[row][0] for row in in_order] == sorted(name for name, _, _ in listed)
    sizes = [sum(len(listed[row][1] or ()) + len(listed[row][2] or ()) for row in part) for part in parts]
    assert all(size <= most_items or len(part) == 1 for size, part in zip(sizes, parts, strict=True))


def test_a_night_of_short_lists_is_one_slice():
    assert [len(part) for part in slices(frame([("a", [1], [2])] * 100), ["a", "b"], ["name"])] == [100]


@given(ROWS)
def test_numbers_are_equal_where_the_values_are(listed):
    rows = frame(listed)
    values, numbers = distinct_values(rows, ["name", "a", "b"])
    assert [values.rows()[number] for number in numbers] == listed
    assert len(values) == len({str(row) for row in listed})
    assert value_numbers(rows, ["name", "a", "b"], "number").n_unique() == len(values)
