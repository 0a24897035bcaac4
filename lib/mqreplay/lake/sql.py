"""Pieces of SQL text: values quoted so that no name in a recording can end a string."""

from __future__ import annotations

from collections.abc import Iterable


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
