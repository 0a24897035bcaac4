"""Time spans: epochs of a recording, and sessions of rows that are close in time."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Sequence

import polars as pl

INSTANT = pl.Datetime("us", "UTC")


def with_epoch(frame: pl.DataFrame, ts: str, starts: Collection[dt.datetime]) -> pl.DataFrame:
    """Return the frame with ``epoch``, the last start at or before ``ts``.

    An epoch is a part of a recording between two gaps. A client's state in one epoch is no evidence in the next,
    because answers in between may be missing. Rows before all starts belong to the first epoch. Without starts the
    epoch is null.
    """
    ordered = sorted(map(utc, starts))
    epoch = pl.lit(ordered[0] if ordered else None, INSTANT)
    for start in ordered[1:]:
        epoch = pl.when(pl.col(ts) >= start).then(pl.lit(start, INSTANT)).otherwise(epoch)
    return frame.with_columns(epoch.alias("epoch"))


def utc(instant: dt.datetime) -> dt.datetime:
    """Return the instant with a time zone; UTC if it has none."""
    return instant if instant.tzinfo is not None else instant.replace(tzinfo=dt.UTC)


def with_session(rows: pl.DataFrame, by: Sequence[str], from_ts: str, to_ts: str, gap_s: int) -> pl.DataFrame:
    """Return the rows with ``session``: within ``by``, rows less than ``gap_s`` seconds apart share a number.

    A row's span is [from_ts, to_ts]. A session continues while the next row starts at most ``gap_s`` seconds after the
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
