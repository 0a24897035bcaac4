"""Epochs: the stretches of a recording between its gaps.

What a client learned in one epoch is no evidence in the next: answers in between may be missing.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection

import polars as pl

INSTANT = pl.Datetime("us", "UTC")


def with_epoch(frame: pl.DataFrame, ts: str, starts: Collection[dt.datetime]) -> pl.DataFrame:
    """Return the frame with ``epoch``, the last of the starts at or before ``ts``.

    Rows before all starts belong to the first one. Without any start the epoch is null.
    """
    ordered = sorted(map(utc, starts))
    epoch = pl.lit(ordered[0] if ordered else None, INSTANT)
    for start in ordered[1:]:
        epoch = pl.when(pl.col(ts) >= start).then(pl.lit(start, INSTANT)).otherwise(epoch)
    return frame.with_columns(epoch.alias("epoch"))


def utc(instant: dt.datetime) -> dt.datetime:
    """Return the instant with its time zone; one without a zone is in UTC."""
    return instant if instant.tzinfo is not None else instant.replace(tzinfo=dt.UTC)
