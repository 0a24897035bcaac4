"""What one run of expectations looks at. Light: Great Expectations takes seconds to import, and few commands run it."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

UNDATED = "undated"  # stands for a day where tables have none


@dataclass(frozen=True)
class Scope:
    """``day``: of each table that day's rows; None: all rows. ``names``: tables; None: all.

    ``run_id`` is a digest of what the rows were made from. ``goes_on``: days before it may have rows.
    """

    run_id: str
    day: dt.date | None = None
    names: tuple[str, ...] | None = None
    goes_on: bool = False

    @property
    def title(self) -> str:
        """The day, or what stands for none."""
        return UNDATED if self.day is None else str(self.day)
