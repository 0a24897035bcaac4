"""Records that two files share: found only where the files overlap, and the right one stays."""

from __future__ import annotations

import datetime as dt

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from mqreplay.ingest.to_silver import MOST_SPANS, Reach, copies, shared_spans, within

BEGAN = dt.datetime(2026, 11, 20, tzinfo=dt.UTC)


def at(minute):
    return BEGAN + dt.timedelta(minutes=minute)


REACHES = st.lists(
    st.tuples(st.integers(0, 20), st.integers(0, 20), st.booleans()).map(
        lambda r: Reach(at(min(r[:2])), at(max(r[:2])), r[2])
    ),
    max_size=8,
)


@given(REACHES)
def test_every_moment_that_a_new_file_shares_is_in_a_stretch(files):
    spans = shared_spans(files)
    for minute in range(21):
        there = [f for f in files if f.first_ts <= at(minute) <= f.last_ts]
        shared = len(there) > 1 and any(f.new for f in there)
        covered = any(first <= at(minute) <= last for first, last in spans)
        assert covered or not shared


def test_files_that_do_not_meet_share_nothing():
    assert shared_spans([Reach(at(0), at(5), True), Reach(at(6), at(9), True)]) == []


def test_many_spans_become_one():
    files = [Reach(at(10 * i), at(10 * i + 5), True) for i in range(MOST_SPANS + 2)] * 2
    assert shared_spans(files) == [(at(0), files[-1].last_ts)]


def test_the_file_with_the_smallest_digest_keeps_the_record():
    rows = [("r1", "c"), ("r1", "b"), ("r2", "b"), ("r2", "a"), ("r3", "a")]
    found = copies(pl.LazyFrame(rows, ["record_id", "source_digest"], orient="row"))
    assert found.columns == ["record_id", "source_digest"]
    assert sorted(found.rows()) == [("r1", "c"), ("r2", "b")]


def test_an_instant_lies_within():
    frame = pl.DataFrame({"ts": [at(m) for m in range(8)]})
    spans = [(at(1), at(2)), (at(5), at(5))]
    assert frame.filter(within(spans, "ts"))["ts"].to_list() == [at(1), at(2), at(5)]
