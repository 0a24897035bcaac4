"""Values as text and text as values, as Spark SQL casts them."""

from __future__ import annotations

import datetime as dt
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from mqreplay.cli.spark_text import has_text, spark_text

INSTANT = pl.Datetime("us", "UTC")
AT = dt.datetime(2026, 11, 21, 2, tzinfo=dt.UTC)
TEXTS: list[tuple[pl.DataType, Any, str, str]] = [
    (pl.String(), "a b", "a b", "'a b'"),
    (pl.Int32(), -7, "-7", "-7"),
    (pl.Int64(), -(2**63), "-9223372036854775808", "CAST('-9223372036854775808' AS BIGINT)"),
    (pl.Int64(), 2**63 - 1, "9223372036854775807", "9223372036854775807"),
    (pl.Boolean(), True, "true", "true"),
    (pl.Date(), AT.date(), "2026-11-21", "DATE'2026-11-21'"),
    (pl.Float64(), 1.0, "1.0", "1.0D"),
    (pl.Float64(), 1e10, "1.0E10", "1e10D"),
    (INSTANT, AT, "2026-11-21 02:00:00", "TIMESTAMP'2026-11-21 02:00:00Z'"),
    (INSTANT, AT.replace(microsecond=120_000), "2026-11-21 02:00:00.12", "TIMESTAMP'2026-11-21 02:00:00.12Z'"),
    (INSTANT, AT.replace(microsecond=7), "2026-11-21 02:00:00.000007", "TIMESTAMP'2026-11-21 02:00:00.000007Z'"),
    (INSTANT, AT.replace(year=1969), "1969-11-21 02:00:00", "TIMESTAMP'1969-11-21 02:00:00Z'"),
]
NOT_CANONICAL = [
    (pl.Int64(), 7, "07"),
    (pl.Int64(), 7, "+7"),
    (pl.Int64(), 7, "7.0"),
    (pl.Int64(), 0, "-0"),
    (pl.Int32(), 7, "9223372036854775808"),
    (pl.Int64(), 7, "9" * 5000),
    (pl.Boolean(), True, "True"),
    (INSTANT, AT, "2026-11-21 02:00:00.000"),
    (INSTANT, AT, "2026-11-21T02:00:00"),
    (INSTANT, AT, "2026-02-30 02:00:00"),
    (INSTANT, AT, "x"),
]


def texts_of(kind: pl.DataType, value: object) -> list[str | None]:
    rows = pl.DataFrame({"v": pl.Series([value, None], dtype=kind)})
    return rows.select(spark_text("v", kind)).to_series().to_list()


def holding(kind: pl.DataType, value: object, text: str) -> list[object]:
    rows = pl.LazyFrame({"v": pl.Series([None, value], dtype=kind)})
    return rows.filter(has_text("v", kind, text)).collect()["v"].to_list()


@pytest.mark.parametrize(("kind", "value", "text"), [each[:3] for each in TEXTS])
def test_a_value_has_its_text_and_no_other(kind: pl.DataType, value: object, text: str) -> None:
    assert texts_of(kind, value) == [text, None]
    assert holding(kind, value, text) == [value]
    assert holding(kind, value, f"{text}1") == []


@pytest.mark.parametrize(("kind", "value", "text"), NOT_CANONICAL)
def test_another_text_of_the_same_value_is_not_its_text(kind: pl.DataType, value: object, text: str) -> None:
    assert holding(kind, value, text) == []


@given(at=st.datetimes(dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31), timezones=st.just(dt.UTC)))
def test_every_instant_has_the_text_by_which_it_is_found(at: dt.datetime) -> None:
    [text, _] = texts_of(INSTANT, at)
    assert text is not None
    assert holding(INSTANT, at, text) == [at]


def test_spark_casts_values_to_the_same_text(spark: SparkSession) -> None:
    columns = ", ".join(f"CAST({literal} AS STRING) AS c{n}" for n, (*_, literal) in enumerate(TEXTS))
    [row] = spark.sql(f"SELECT {columns}").collect()
    assert list(row) == [text for _, _, text, _ in TEXTS]
