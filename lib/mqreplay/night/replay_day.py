"""Replay one day of one cluster from silver into gold: run the passes of replay/plan.py, and commit their rows."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import polars as pl

from mqreplay.decode.kinds import KINDS
from mqreplay.engines.engine import Engine
from mqreplay.engines.passes import PassRunner
from mqreplay.ingest.recording import SNAPSHOT_KINDS
from mqreplay.ingest.run import WRITERS
from mqreplay.lake.row_filter import RowFilter
from mqreplay.lake.ticker import Ticker
from mqreplay.lake.warehouse import Warehouse
from mqreplay.night.steps import Span, kinds_of, reach_of, recorded_until, sure_starts
from mqreplay.replay.context import Recorded
from mqreplay.replay.day import NO_TIME, Day
from mqreplay.replay.days_read import days_read
from mqreplay.replay.plan import Replay
from mqreplay.settings import Settings
from mqreplay.words.time_span import ONE_DAY

Progress = Callable[[str], None]
OTHER_KINDS = ("brokers", *SNAPSHOT_KINDS)  # not JSONL, so not in KINDS


@dataclass(frozen=True)
class JudgedDay:
    """The gold rows of one day of a cluster: ``tables`` in memory, and those that tasks of the ``runner`` made."""

    warehouse: Warehouse
    cluster: str
    tables: Mapping[str, pl.DataFrame]
    runner: PassRunner
    progress: Progress

    def commit(self, replaced: RowFilter | None) -> None:
        """Replace the rows ``replaced`` of all gold tables by those of the day."""

        def commit(name: str) -> None:
            writer = self.warehouse.writer(name, {"cluster": self.cluster})
            self.warehouse.commit_files(name, writer.write_rows(self.tables[name]), replaced)

        with Ticker(self.progress, lambda _: f"{self.cluster}: writing the tables"):
            self.runner.commit(replaced)
            with ThreadPoolExecutor(WRITERS) as pool:
                list(pool.map(commit, self.tables))


def judge_day(
    warehouse: Warehouse,
    engine: Engine,
    cluster: str,
    day: dt.date,
    found: list[Span],
    settings: Settings,
    progress: Progress,
    *,
    is_first: bool,
) -> JudgedDay:
    """Make the rows of all gold tables of the day; no table is changed. ``found`` are the spans of the cluster's files.

    ``is_first``: nothing was recorded before this day.
    """
    since = dt.datetime.combine(day, dt.time(), dt.UTC) - dt.timedelta(minutes=settings.replay.lookback_minutes)
    bounds = Day(cluster, day, since, is_first)
    runner = engine.pass_runner(warehouse, cluster, day, days_read(warehouse, cluster, day, since))
    replay = Replay(bounds, settings, recorded_of(found, bounds), runner, progress)
    with Ticker(progress, lambda _: f"{cluster}: replaying {day}: {engine.progress()}"):
        return JudgedDay(warehouse, cluster, replay.run(), runner, progress)


def recorded_of(found: list[Span], day: Day) -> Recorded:
    """Return the coverage of the recordings that ``found`` lists."""
    first, last = reach_of(found, day.day)
    kinds = {*KINDS, *OTHER_KINDS}
    return Recorded(
        sorted(kinds - kinds_of(found, day.day)),
        recorded_until(found),
        partial(sure_starts, found),
        max(min(max(day.since - first, last - day.end), ONE_DAY), NO_TIME),
    )
