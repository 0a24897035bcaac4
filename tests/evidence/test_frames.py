"""Frames in the types of a schema, by cases, and by laws that are asked once for each case."""

from __future__ import annotations

import datetime as dt

import polars as pl
import pytest

from mqreplay.evidence.frames import columns, filled, first_of, instant_of, ms, typed, valued, with_law
from mqreplay.evidence.intervals import INSTANT

ROWS = pl.DataFrame({"a": [1, 2], "b": ["x", None]})
SCHEMA: dict[str, pl.DataType] = {"b": pl.String(), "a": pl.Int32(), "c": pl.Float64()}


def test_the_type_of_a_column_follows_from_its_name() -> None:
    assert columns("day", "ts", "from_ts", "queue_id", "broker_id", "next_queue_id", "new_offset", "is_there") == {
        **{"day": pl.Date(), "ts": INSTANT, "from_ts": INSTANT, "queue_id": pl.Int32(), "broker_id": pl.Int64()},
        **{"next_queue_id": pl.Int32(), "new_offset": pl.Int64(), "is_there": pl.Boolean()},
    }
    with pytest.raises(KeyError, match="no type follows from the name colour"):
        columns("topic", "colour")


def test_a_typed_frame_has_the_columns_of_the_schema_in_their_order() -> None:
    rows = typed(ROWS, SCHEMA, c=pl.col("a") / 2)
    assert dict(rows.schema) == SCHEMA
    assert rows.rows() == [("x", 1, 0.5), (None, 2, 1.0)]


def test_a_typed_frame_lacks_no_column() -> None:
    with pytest.raises(pl.exceptions.ColumnNotFoundError):
        typed(ROWS, SCHEMA)


def test_a_filled_frame_is_null_where_the_rows_lack_a_column() -> None:
    assert filled(ROWS, SCHEMA).rows() == [("x", 1, None), (None, 2, None)]
    assert filled(ROWS, SCHEMA, c=pl.lit(3)).rows() == [("x", 1, 3.0), (None, 2, 3.0)]
    assert dict(filled(ROWS, SCHEMA).schema) == SCHEMA


def test_a_valued_frame_has_the_values_alone() -> None:
    assert valued(ROWS, SCHEMA, a=pl.col("a") + 1).rows() == [(None, 2, None), (None, 3, None)]


def test_the_first_case_counts_and_null_is_not_true() -> None:
    rows = pl.DataFrame({"a": [True, False, None], "b": [True, True, None]})
    assert rows.select(first_of(("a", "one"), (pl.col("b"), "two"))).to_series().to_list() == ["one", "two", None]
    assert rows.select(first_of(("a", 1.5), otherwise=2)).to_series().to_list() == [1.5, 2.0, 2.0]


def test_a_law_is_asked_once_for_each_case() -> None:
    asked: list[tuple[int, str | None]] = []

    def law(number: int, text: str | None) -> tuple[str | None, int]:
        asked.append((number, text))
        return text, number * 2

    rows = pl.DataFrame({"a": [1, 2, 1, 2], "b": ["x", None, "x", None]})
    results = {"text": pl.String(), "double": pl.Int64()}
    assert with_law(rows, ["a", "b"], results, law).select("text", "double").rows() == [("x", 2), (None, 4)] * 2
    assert sorted(asked, key=repr) == [(1, "x"), (2, None)]
    assert with_law(rows, ["a"], {"more": pl.Int64()}, lambda a: a + 1)["more"].to_list() == [2, 3, 2, 3]
    assert with_law(rows.clear(), ["a", "b"], results, law).columns == ["a", "b", "text", "double"]


def test_epoch_milliseconds_and_instants_are_inverse() -> None:
    instant = dt.datetime(2026, 7, 1, 12, 30, 0, 123_000, dt.UTC)
    rows = pl.DataFrame({"ts": [instant]})
    number = rows.select(ms("ts")).item()
    assert number == int(instant.timestamp() * 1000)
    assert pl.DataFrame({"number": [number]}).select(instant_of("number")).item() == instant
