"""Rows that several days have, each once."""

from __future__ import annotations

import datetime as dt

import polars as pl

from mqreplay.lake.row_filter import of_last_day


def test_of_rows_that_two_days_have_the_last_days_remains() -> None:
    first, last = dt.date(2026, 11, 20), dt.date(2026, 11, 21)
    rows = pl.LazyFrame(
        [
            ("c", "both", last, "for 99 s", [{"key": "a"}]),
            ("c", "both", first, "for 9 s", [{"key": "b"}]),
            ("d", "both", first, "for 1 s", None),
            ("c", "once", first, None, []),
        ],
        schema=["cluster", "finding_id", "day", "summary", "evidence"],
        orient="row",
    )
    found = of_last_day(rows, "cluster", "finding_id").sort("cluster", "finding_id").collect()
    assert found.columns == rows.collect_schema().names()
    assert found.rows() == [
        ("c", "both", last, "for 99 s", [{"key": "a"}]),
        ("c", "once", first, None, []),
        ("d", "both", first, "for 1 s", None),
    ]
