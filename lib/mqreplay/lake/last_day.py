"""Rows that are stored for several days, reduced to the last."""

from __future__ import annotations

import polars as pl


def of_last_day(rows: pl.LazyFrame, *key: str) -> pl.LazyFrame:
    """Return, of rows that share a key, the row of the last day: an event that spans midnight is stored for each day.

    The row of the last day covers all of the event.
    """
    return rows.sort("day").unique(list(key), keep="last", maintain_order=True)
