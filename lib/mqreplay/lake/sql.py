"""Pieces of SQL: values quoted so that no name in a recording can end a string, conditions as Delta takes them, and
rows of several days as one."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F


def quoted(value: str) -> str:
    """A string literal of Spark SQL.

    >>> quoted("it's")
    "'it\\\\'s'"
    """
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def among(column: str, values: Iterable[str]) -> str:
    """A predicate: the column is one of the values; of no values it is false.

    >>> among("day", ["a"])
    "day IN ('a')"
    >>> among("day", [])
    'false'
    """
    listed = ", ".join(quoted(v) for v in values)
    return f"{column} IN ({listed})" if listed else "false"


def of_last_day(rows: DataFrame, *key: str) -> DataFrame:
    """Of rows that share a key, that of the last day: what goes on over midnight is told on both, on the last whole."""
    newest = F.max_by(F.struct(*rows.columns), "day").alias("row")
    return rows.groupBy(*key).agg(newest).select("row.*")


def holds(condition: str) -> Column:
    """Whether a CHECK's condition is true of a row; as in Delta, one that is null does not hold."""
    return F.coalesce(F.expr(condition), F.lit(False))
