"""Expectations of the contracts, counted in SQL and run by Great Expectations; and the scope of a run."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

UNDATED = "undated"  # replaces the day for tables without one


@dataclass(frozen=True)
class Scope:
    """``day``: of each table that day's rows; None: all rows. ``names``: tables; None: all.

    ``run_id`` is a digest of the inputs of the rows. ``goes_on``: there may be rows of earlier days.
    """

    run_id: str
    day: dt.date | None = None
    names: tuple[str, ...] | None = None
    goes_on: bool = False

    @property
    def title(self) -> str:
        """Return the day, or the replacement for none."""
        return UNDATED if self.day is None else str(self.day)
