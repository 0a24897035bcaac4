"""Which days are validated again: only days that changed are read.

A chain of offsets continues from the day before, so a day is validated again when that day changes. Tables without a
day column are small, and are validated whole.
"""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property
from typing import Any

from mqreplay import __version__
from mqreplay.lake.files import files_of, joined
from mqreplay.lake.row_filter import RowFilter
from mqreplay.lake.ticker import Ticker, pace
from mqreplay.lake.warehouse import Warehouse
from mqreplay.night.retention import first_judged
from mqreplay.night.steps import Span, Steps, digests
from mqreplay.quality import UNDATED, Scope
from mqreplay.settings import Settings
from mqreplay.words.time_span import ONE_DAY

VALIDATION_TABLE = "gold.validation_result"


class Validation:
    """The expectations of one cluster's tables, by day."""

    def __init__(
        self,
        warehouse: Warehouse,
        cluster: str,
        found: list[Span],
        settings: Settings,
        kept: Mapping[str, dt.date] | None = None,
    ) -> None:
        """Take ``found``, the spans of the cluster's files, and the first ``kept`` days. Nothing is read yet."""
        self.warehouse, self.cluster, self.found, self.settings = warehouse, cluster, found, settings
        self.kept = kept or {}

    @cached_property
    def wanted(self) -> dict[str, str]:
        """Return scope (a day, or UNDATED) -> digest of the inputs of its validation."""
        text = "\n".join([__version__, self.settings.digest(), *sorted(map(str, self.found))])
        by_day = digests(self.found, self.settings.digest(), ONE_DAY // dt.timedelta(minutes=1))
        return {str(day): digest for day, digest in by_day.items()} | {UNDATED: _digest(text)}

    def todo(self) -> list[str]:
        """Return the scopes of ``wanted`` that changed since they were validated, and of which rows are kept."""
        first = str(first_judged(self.kept, self.settings.replay.lookback_minutes))
        changed = Steps(self.warehouse, self.cluster).todo("validate", self.wanted)
        return [scope for scope in changed if scope >= first]  # UNDATED comes after every day

    def run(self, todo: Sequence[str], results_dir: str, say: Callable[[str], None] = lambda text: None) -> int:
        """Run the expectations of ``wanted`` and replace the rows of earlier runs. Return the number of rows.

        ``say`` is called with progress lines.
        """
        asked = [name for scope in todo for name in self._names(dated=scope != UNDATED)]
        size_of = cache(lambda name: self.warehouse.file_bytes(name, RowFilter(self.cluster)))
        done: list[str] = []

        def line(seconds: float) -> str:
            return f"{self.cluster}: validated {pace(sum(map(size_of, done)), sum(map(size_of, asked)), seconds)}"

        with Ticker(say, line):
            return self._run(todo, results_dir, done.append)

    def _run(self, todo: Sequence[str], results_dir: str, judged_one: Callable[[str], None]) -> int:
        # Great Expectations takes seconds to import.
        from mqreplay.quality.evidence import silver_rows
        from mqreplay.quality.run import validate
        from mqreplay.quality.tables import Tables

        days = [dt.date.fromisoformat(scope) for scope in todo if scope != UNDATED]
        rows: list[tuple[Any, ...]] = []  # of quality/result.py, ValidationRow
        counts: dict[str, int] = {}
        for day in days:
            rows += validate(self.warehouse, self.cluster, self._scope(day), results_dir, counts, judged_one)
        if UNDATED in todo:
            if len(days) + 1 < len(self.wanted):
                with Tables(self.warehouse, self.cluster) as tables:
                    for name, count in silver_rows(tables, days).items():
                        counts[name] = counts.get(name, 0) + count
            rows += validate(self.warehouse, self.cluster, self._scope(None), results_dir, counts, judged_one)
        self.warehouse.replace_rows(VALIDATION_TABLE, rows, self._rows_of(days, undated=UNDATED in todo))
        files, first = files_of(results_dir), str(self.kept.get("gold", dt.date.min))
        for name in files.names(results_dir):
            scope = name.removesuffix(".json")
            if scope != name and (scope not in self.wanted or scope < first):
                files.remove(joined(results_dir, name))
        return len(rows)

    def _rows_of(self, days: Sequence[dt.date], *, undated: bool) -> RowFilter:
        """Return the rows of results of these days, and of those without a day."""
        return RowFilter(self.cluster, frozenset(days), undated=undated)

    def _scope(self, day: dt.date | None) -> Scope:
        names = self._names(dated=day is not None)
        title = UNDATED if day is None else str(day)
        # Days may have the same files, and are still separate runs.
        run_id = _digest(f"{title} {self.wanted[title]}")
        goes_on = day is not None and (str(day) > min(self.wanted) or "silver" in self.kept)
        return Scope(run_id, day, names, goes_on)

    def _names(self, *, dated: bool) -> tuple[str, ...]:
        return tuple(c.name for c in self.warehouse.contracts.values() if c.is_dated == dated)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
