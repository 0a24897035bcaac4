"""Rows close in time, numbered together: what one cause did."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl


def with_session(rows: pl.DataFrame, by: Sequence[str], from_ts: str, to_ts: str, gap_s: int) -> pl.DataFrame:
    """Return the rows with ``session``: within ``by``, rows less than ``gap_s`` seconds apart share a number.

    A row's span is [from_ts, to_ts]. A session goes on while the next row begins at most ``gap_s`` seconds after the
    latest end so far.
    """
    reached = pl.col(to_ts).cum_max().forward_fill().shift(1).over(by)
    gap_ms = pl.col(from_ts).dt.epoch("ms") - reached.dt.epoch("ms")
    begins = gap_ms.is_null() | (gap_ms > gap_s * 1000)
    return (
        rows.sort(from_ts, to_ts)
        .with_columns(begins.alias("_begins"))
        .with_columns(pl.col("_begins").cum_sum().over(by).alias("session"))
        .drop("_begins")
    )
