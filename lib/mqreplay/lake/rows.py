"""Selection of rows of a table, to read or to replace."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Any

import polars as pl

from mqreplay.lake.delta_files import may_hold, may_lack

COUNTED = ("cluster", "day", "source_digest")  # columns by which whole files are replaced


@dataclass(frozen=True)
class Rows:
    """A selection of rows of one cluster, and of the given days, digests or condition.

    ``days``: of one of these days; ``between``: from one day to the other; ``undated``: or without a day; ``digests``:
    with one of these source_digest. Files are skipped by Delta's bounds of these columns. ``wanted``: rows for which
    the expression is true.
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

    def may_be_in(self, files: pl.DataFrame) -> pl.DataFrame:
        """Return the files of a snapshot that may hold selected rows."""
        wanted = may_hold(files, "cluster", self.cluster, self.cluster)
        for column, ends in (("day", self.between), ("day", _ends(self.days)), ("source_digest", _ends(self.digests))):
            if ends is not None:
                held = may_hold(files, column, *ends) if ends else pl.lit(False)
                wanted &= held | may_lack(files, column) if column == "day" and self.undated else held
        return files.filter(wanted)

    def are_all_of(self, file: dict[str, Any]) -> bool:
        """Return which files of a snapshot hold only selected rows, by Delta's bounds."""
        if self.wanted is not None:
            return False
        # Bounds do not count nulls: a file may hold rows of one day and rows without a day.
        full = [c for c in COUNTED if file.get(f"null_count.{c}") == 0]
        one = {c: file[f"min.{c}"] for c in full if file.get(f"min.{c}") == file.get(f"max.{c}")}
        in_days = self.days is None or one.get("day") in self.days
        if self.between is not None:
            first, last = self.between
            in_days &= "day" in full and first <= file["min.day"] and file["max.day"] <= last
        return (
            one.get("cluster") == self.cluster
            and in_days
            and (self.digests is None or one.get("source_digest") in self.digests)
        )


def _ends(values: frozenset[Any] | None) -> tuple[Any, ...] | None:
    """Return the least and greatest value; empty for no values, None without a restriction."""
    return None if values is None else (min(values), max(values)) if values else ()
