"""Selection of rows of a table, to read or to replace, and rows as plain values."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Any

import polars as pl

from mqreplay.lake.sql import literal


@dataclass(frozen=True)
class RowFilter:
    """A selection of rows of one cluster, and of some days, digests or a condition.

    ``days``: of one of these days; ``between``: from one day to the other; ``undated``: or without a day; ``digests``:
    with one of these source_digest. ``wanted``: rows for which the expression is true.
    """

    cluster: str
    days: frozenset[dt.date] | None = None
    between: tuple[dt.date, dt.date] | None = None
    undated: bool = False
    digests: frozenset[str] | None = None
    wanted: pl.Expr | None = None

    @property
    def condition(self) -> pl.Expr:
        """Return the expression that is true for the selected rows."""
        parts = [pl.col("cluster") == self.cluster]
        if self.days is not None:
            parts.append(self._of_day(pl.col("day").is_in(sorted(self.days))))
        if self.between is not None:
            parts.append(self._of_day(pl.col("day").is_between(*self.between)))
        if self.digests is not None:
            parts.append(pl.col("source_digest").is_in(sorted(self.digests)))
        if self.wanted is not None:
            parts.append(self.wanted)
        return pl.all_horizontal(parts).fill_null(False)

    def _of_day(self, condition: pl.Expr) -> pl.Expr:
        return condition | pl.col("day").is_null() if self.undated else condition

    def days_sql(self, is_dated: bool) -> str:
        """Return the condition, in Spark SQL, of the rows of the cluster and, in a table whose rows have one, the days.

        >>> RowFilter("c", frozenset({dt.date(2026, 11, 21)})).days_sql(is_dated=True)
        "cluster = 'c' AND day IN (DATE '2026-11-21')"
        """
        parts = [f"cluster = {literal(self.cluster)}"]
        if is_dated and self.days is not None:
            parts.append(f"day IN ({', '.join(_date(day) for day in sorted(self.days)) or 'NULL'})")
        if is_dated and self.between is not None:
            first, last = map(_date, self.between)
            parts.append(f"day >= {first} AND day <= {last}")
        return " AND ".join(parts)

    def has_whole_days(self, is_dated: bool) -> bool:
        """Return whether all rows of `days_sql` are selected."""
        conditions = [self.digests, self.wanted] if is_dated else [self.digests, self.wanted, self.days, self.between]
        return all(condition is None for condition in conditions)

    def may_have(self, cluster: str, first: dt.date | None, last: dt.date | None) -> bool:
        """Return whether a file may have selected rows, by its cluster and its first and last day; None: unknown."""
        if cluster != self.cluster:
            return False
        if first is None or last is None:
            return True
        if self.between is not None and not (self.between[0] <= last and first <= self.between[1]):
            return False
        return self.days is None or first in self.days or any(first < day <= last for day in self.days)

    def has_all(self, first: dt.date | None, last: dt.date | None) -> bool:
        """Return whether all rows of a file of the cluster are selected, by its first and last day; None: unknown."""
        if not self.has_whole_days(is_dated=True):
            return False
        if first is None or last is None:
            return self.days is None and self.between is None
        if self.between is not None and not (self.between[0] <= first and last <= self.between[1]):
            return False
        return self.days is None or (first == last and first in self.days)


@dataclass(frozen=True)
class Days:
    """The days from ``first`` to ``last``, both included; a missing end has no limit."""

    first: dt.date | None = None
    last: dt.date | None = None

    @property
    def condition(self) -> pl.Expr:
        """Return whether a row is of these days."""
        between = self._between
        return pl.lit(True) if between is None else pl.col("day").is_between(*between)

    def of_cluster(self, cluster: str) -> RowFilter:
        """Return the selection of a cluster's rows of these days."""
        return RowFilter(cluster, between=self._between)

    @property
    def _between(self) -> tuple[dt.date, dt.date] | None:
        if self == Days():
            return None
        return self.first or dt.date.min, self.last or dt.date.max


def _date(day: dt.date) -> str:
    return f"DATE '{day}'"


def of_last_day(rows: pl.LazyFrame, *key: str) -> pl.LazyFrame:
    """Return, of rows that share a key, the row of the last day: an event that spans midnight is stored for each day.

    The row of the last day covers all of the event.
    """
    return rows.sort("day").unique(list(key), keep="last", maintain_order=True)


def plain_rows(rows: pl.DataFrame) -> list[dict[str, Any]]:
    """Return each row by column name. Instants are datetimes in UTC without a time zone; bytes are bytearrays.

    Maps and structs are dicts, arrays are lists.
    """
    return [{name: _plain(value) for name, value in row.items()} for row in rows.iter_rows(named=True)]


def _plain(value: Any) -> Any:
    if isinstance(value, dt.datetime):
        return value.replace(tzinfo=None)
    if isinstance(value, bytes):
        return bytearray(value)
    if isinstance(value, dict):
        return {_plain(key): _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list) else value
