"""Lines that are in two files: a log was copied again, or two files overlap at the hour.

The record of the file with the smallest digest is kept, so the order of reading does not matter. Files are read
separately, so duplicates are searched afterwards, only in the time spans that two files share.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from typing import NamedTuple

import polars as pl

MOST_SPANS = 50  # above, one span for all: a condition with thousands of parts would be slower


class Reach(NamedTuple):
    """The time span of a file's records; ``new``: it was read in this run."""

    first_ts: dt.datetime
    last_ts: dt.datetime
    new: bool


Span = tuple[dt.datetime, dt.datetime]


def shared_spans(files: Iterable[Reach]) -> list[Span]:
    """Return the time spans, both ends included, in which a new file overlaps another file; they are disjoint.

    >>> hours = [dt.datetime(2026, 1, 1, h) for h in range(4)]
    >>> of = lambda first, last, new: Reach(hours[first], hours[last], new)
    >>> [(a.hour, b.hour) for a, b in shared_spans([of(0, 1, False), of(1, 3, True), of(2, 2, False)])]
    [(1, 1), (2, 2)]
    >>> shared_spans([of(0, 1, False), of(1, 2, False), of(3, 3, True)])
    []
    """
    listed = sorted(files)
    new = [f for f in listed if f.new]
    found: list[Span] = []
    reached: dt.datetime | None = None
    for file in listed:
        if reached is not None and file.first_ts <= reached:
            span = (file.first_ts, min(file.last_ts, reached))
            if any(n.first_ts <= span[1] and span[0] <= n.last_ts for n in new):
                found.append(span)
        reached = file.last_ts if reached is None else max(reached, file.last_ts)
    return _merged(found)


def _merged(spans: list[Span]) -> list[Span]:
    merged: list[Span] = []
    for first, last in sorted(spans):
        if merged and first <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
        else:
            merged.append((first, last))
    if len(merged) > MOST_SPANS:
        return [(merged[0][0], merged[-1][1])]
    return merged


def within(spans: Iterable[Span], when: str) -> pl.Expr:
    """Return whether an instant is in one of the spans."""
    return pl.any_horizontal([pl.col(when).is_between(pl.lit(first), pl.lit(last)) for first, last in spans])


def copies(rows: pl.LazyFrame) -> pl.DataFrame:
    """Return record_id and source_digest of the rows that are also in a file with a smaller digest."""
    first = pl.col("source_digest").min().over("record_id")
    return rows.select("record_id", "source_digest").filter(pl.col("source_digest") > first).collect()
