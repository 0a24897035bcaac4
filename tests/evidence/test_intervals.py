"""The verbs of intervals, against plain loops."""

from __future__ import annotations

import datetime as dt

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from mqreplay.evidence.intervals import (
    INSTANT,
    count_spans,
    intersect,
    merge,
    subtract,
    with_nearest_row,
    with_run,
    with_state,
)

BEGIN = dt.datetime(2026, 7, 1, tzinfo=dt.UTC)
Spans = list[tuple[str, int, int]]
SPAN = {"key": pl.String, "from_ts": INSTANT, "to_ts": INSTANT}
# Spans in whole seconds: [from, to) has at least one second.
SPANS = st.lists(
    st.tuples(st.sampled_from("ab"), st.integers(0, 20), st.integers(1, 8)).map(lambda s: (s[0], s[1], s[1] + s[2])),
    max_size=8,
)


def at(second: int) -> dt.datetime:
    return BEGIN + dt.timedelta(seconds=second)


def frame(spans: Spans) -> pl.DataFrame:
    return pl.DataFrame([(key, at(start), at(end)) for key, start, end in spans], SPAN, orient="row")


def seconds(spans: pl.DataFrame) -> list[tuple[str, int]]:
    """Return each second of each span."""
    return [
        (key, second)
        for key, start, end in spans.select("key", "from_ts", "to_ts").rows()
        for second in range(int((start - BEGIN).total_seconds()), int((end - BEGIN).total_seconds()))
    ]


def covered(spans: Spans) -> set[tuple[str, int]]:
    return {(key, second) for key, start, end in spans for second in range(start, end)}


@given(SPANS)
def test_merged_spans_cover_the_same_time_once_and_do_not_touch(spans: Spans) -> None:
    merged = merge(frame(spans), ["key"])
    assert sorted(seconds(merged)) == sorted(covered(spans))
    ordered = merged.sort("key", "from_ts").with_columns(pl.col("to_ts").shift(1).over("key").alias("before"))
    assert ordered.filter(pl.col("before") >= pl.col("from_ts")).is_empty()


@given(SPANS, SPANS)
def test_intersected_spans_cover_what_both_cover(one: Spans, other: Spans) -> None:
    both = intersect(frame(one), frame(other), ["key"])
    assert set(seconds(both)) == covered(one) & covered(other)
    assert (both["to_ts"] > both["from_ts"]).all()


@given(SPANS, SPANS)
def test_subtracted_spans_cover_the_rest(spans: Spans, cuts: Spans) -> None:
    assert sorted(seconds(subtract(frame(spans), frame(cuts), ["key"]))) == sorted(covered(spans) - covered(cuts))


@given(SPANS)
def test_counts_of_spans_are_those_of_each_second(spans: Spans) -> None:
    counted = count_spans({"spans": frame(spans)}, ["key"])
    for key, start, end, count in counted.select("key", "from_ts", "to_ts", "spans").rows():
        second = int((start - BEGIN).total_seconds())
        assert end > start
        assert count == sum(each == key and a <= second < b for each, a, b in spans)


def test_instants_merge_over_a_gap_with_their_aggregates() -> None:
    rows = pl.DataFrame({"key": ["a"] * 4, "ts": [at(n) for n in (0, 5, 11, 40)], "n": [1, 2, 3, 4]})
    merged = merge(rows, ["key"], pl.col("n").sum(), at="ts", gap_s=6).sort("from_ts")
    assert merged.rows() == [("a", at(0), at(11), 6), ("a", at(40), at(40), 4)]


def test_a_run_begins_where_it_is_true_or_not_known() -> None:
    rows = pl.DataFrame({"key": ["a", "a", "b", "a"], "begins": [None, False, True, True]})
    assert with_run(rows, pl.col("begins"), ["key"])["run"].to_list() == [1, 1, 1, 2]


def test_a_state_is_the_last_of_its_key_at_or_before_the_instant() -> None:
    rows = pl.DataFrame({"key": ["a", "a", "b"], "ts": [at(5), at(1), at(9)]})
    states = pl.DataFrame({"key": ["a", "a"], "since": [at(5), at(2)], "value": [2, 1]})
    assert with_state(rows, states, "key", "ts", "since").select("ts", "value").rows() == [
        *((at(1), None), (at(5), 2), (at(9), None)),
    ]
    assert with_state(rows, states, "key", "ts", "since", exact=False)["value"].to_list() == [None, 1, None]
    assert with_state(rows, states, "key", "ts", "since", after=True)["value"].to_list() == [1, 2, None]
    assert with_state(rows, states.drop("key"), (), "ts", "since", within="4s")["value"].to_list() == [None, 2, 2]


def test_the_nearest_row_is_the_one_before_else_the_one_after() -> None:
    rows = pl.DataFrame({"key": ["a", "a"], "ts": [at(1), at(9)]})
    known = pl.DataFrame({"key": ["a", "a"], "at": [at(3), at(8)], "value": [1, None], "name": ["x", "y"]})
    near = with_nearest_row(rows, known, ["key"], "ts", "at", ["value", "name"])
    assert near.select("value", "name").rows() == [(1, "x"), (None, "y")]
