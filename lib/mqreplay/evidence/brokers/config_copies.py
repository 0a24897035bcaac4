"""What the copies of a broker's file of topics or groups say at an instant.

A file is copied at intervals: what changed between two copies may have been either at an instant between them.
"""

from __future__ import annotations

import datetime as dt
from typing import Any, Final

import polars as pl

PLACE: Final = ("broker_name", "broker_id")
Entry = dict[str, Any]


class ConfigCopies:
    """What the copies of one file say of its entries at an instant. restricted: entries that once forbade to read."""

    def __init__(self, rows: pl.DataFrame, key: str, forbids: pl.Expr) -> None:
        """Take rows of silver.topic_config or silver.subscription_group; ``key`` is the column that names an entry."""
        self.restricted = rows.filter(forbids | (pl.col("change") == "removed")).select(*PLACE, key).unique()
        self._first = {row[:2]: row[2] for row in rows.group_by(PLACE).agg(pl.col("ts").min()).iter_rows()}
        self._entries: dict[tuple[Any, ...], list[Entry]] = {}
        for row in rows.sort("ts").iter_rows(named=True):
            self._entries.setdefault((row["broker_name"], row["broker_id"], row[key]), []).append(row)

    def has(self, place: tuple[str, int]) -> bool:
        """Return whether a copy of this broker's file was recorded."""
        return place in self._first

    def possible(self, place: tuple[str, int], name: str, at: dt.datetime) -> list[Entry | None]:
        """Return the entry in the copy before ``at`` and in the one after it; None for no entry.

        Nothing is known of a broker without a copy.
        """
        if place not in self._first:
            return []
        rows = self._entries.get((*place, name), [])
        before = [row for row in rows if row["ts"] <= at]
        after = [row for row in rows if row["ts"] > at]
        known = [_entry(before[-1]) if before else None] if before or self._first[place] <= at else []
        return known + [_entry(row) for row in after[:1]] or [None]


def _entry(row: Entry) -> Entry | None:
    return None if row["change"] == "removed" else row
