"""Pieces of SQL: values quoted so that no name in a recording can end a string, and conditions as Delta takes them."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import Column
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


def holds(condition: str) -> Column:
    """Whether a CHECK's condition is true of a row; as in Delta, one that is null does not hold."""
    return F.coalesce(F.expr(condition), F.lit(False))
