"""Instants of a night as milliseconds since it began, rows of the night, and counts that change.

A night is a Recorded from its first to its last instant.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable

import polars as pl

from mqreplay.lake.row_filter import RowFilter
from mqreplay.moment.instant import Recorded

Steps = list[int | None]  # instant, value, instant, value, ...; a value holds until the next instant


def rows_of(night: Recorded, table: str, ts: str, reach: dt.timedelta = dt.timedelta()) -> pl.LazyFrame:
    """Return the rows of a table whose ``ts`` lies in the night, or within ``reach`` before it."""
    days = ((night.first - reach).date(), night.last.date())
    rows = night.warehouse.read(table, RowFilter(night.cluster, between=days, undated=True))
    return rows.filter(pl.col(ts).is_between(night.first - reach, night.last))


def spans_of(night: Recorded, table: str) -> pl.LazyFrame:
    """Return the rows of a table from ``from_ts`` to ``to_ts`` that lie in the night, at least in part."""
    days = (night.first.date(), night.last.date())
    rows = night.warehouse.read(table, RowFilter(night.cluster, between=days))
    return rows.filter(pl.col("from_ts") <= night.last, pl.col("to_ts") >= night.first)


def first_ms(column: str, night: Recorded) -> pl.Expr:
    """Return the first whole millisecond of the night that is not before an instant."""
    return -((pl.lit(night.first) - pl.col(column)).dt.total_microseconds() // 1_000)


def last_ms(column: str, night: Recorded) -> pl.Expr:
    """Return the last whole millisecond of the night that is not after an instant."""
    return (pl.col(column) - pl.lit(night.first)).dt.total_microseconds() // 1_000


def ms_between(first: dt.datetime, other: dt.datetime) -> int:
    """Return whole milliseconds from one instant to another.

    >>> at = dt.datetime(2026, 11, 21)
    >>> ms_between(at, at + dt.timedelta(seconds=2, microseconds=3_900))
    2003
    """
    return (other - first) // dt.timedelta(milliseconds=1)


def counted_steps(changes: Iterable[tuple[int, int]], last: int) -> Steps:
    """Return the count after each change, from 0 to ``last``. What changes before 0 counts from 0 on.

    >>> counted_steps([(5, 1), (-9, 1), (5, 1), (7, -2), (99, 1)], 20)
    [0, 1, 5, 3, 7, 1]
    """
    by_instant: dict[int, int] = {0: 0}
    for instant, change in changes:
        if instant <= last:
            by_instant[max(instant, 0)] = by_instant.get(max(instant, 0), 0) + change
    count, steps = 0, Steps()
    for instant in sorted(by_instant):
        count += by_instant[instant]
        if not steps or steps[-1] != count:
            steps += [instant, count]
    return steps


def value_steps(values: Iterable[tuple[int, int | None]], last: int) -> Steps:
    """Return the values without repetition, from instant 0 to ``last``; None before the first one.

    >>> value_steps([(-3, 1), (2, 1), (4, None), (4, 0), (6, None), (30, 1)], 20)
    [0, 1, 4, 0, 6, None]
    >>> value_steps([(2, 1)], 20)
    [0, None, 2, 1]
    """
    by_instant: dict[int, int | None] = {0: None}
    for instant, value in values:
        if instant <= last:
            by_instant[max(instant, 0)] = value
    steps = Steps()
    for instant in sorted(by_instant):
        if not steps or steps[-1] != by_instant[instant]:
            steps += [instant, by_instant[instant]]
    return steps


def value_at(steps: Steps, instant: int) -> int | None:
    """Return the value at an instant.

    >>> value_at([0, 7, 5, 8], 4), value_at([0, 7, 5, 8], 5)
    (7, 8)
    """
    value = None
    for index in range(0, len(steps), 2):
        if (steps[index] or 0) > instant:
            break
        value = steps[index + 1]
    return value
