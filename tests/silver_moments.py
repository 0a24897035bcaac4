"""Instants of rows that tests make up."""

from __future__ import annotations

import datetime as dt

BEGAN = dt.datetime(2026, 11, 21, 2, 0, tzinfo=dt.UTC)


def at(seconds: float) -> dt.datetime:
    """An instant so many seconds into the recording."""
    return BEGAN + dt.timedelta(seconds=seconds)
