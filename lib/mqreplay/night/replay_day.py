"""Replay one day of one cluster from silver into gold: find its files, run the passes of replay/plan.py, commit."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from mqreplay.decode.kinds import KINDS
from mqreplay.engines.engine import Engine
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


def replay_day(
    warehouse: Warehouse,
    engine: Engine,
    cluster: str,
    day: dt.date,
    found: list[Span],
    settings: Settings,
    progress: Progress,
    *,
    is_first: bool,
    afresh: bool,
) -> None:
    """Write all gold tables of the day. ``found`` are the spans of the cluster's files.

    ``is_first``: nothing was recorded before this day. ``afresh``: gold has no row of it.
    """
    since = dt.datetime.combine(day, dt.time(), dt.UTC) - dt.timedelta(minutes=settings.replay.lookback_minutes)
    bounds = Day(cluster, day, since, is_first)
    days = days_read(warehouse, cluster, day, since)
    runner = engine.pass_runner(warehouse, cluster, day, days)
    replay = Replay(bounds, settings, recorded_of(found, bounds), runner, progress)
    replaced = None if afresh else RowFilter(cluster, days=frozenset({day}))
    with Ticker(progress, lambda _: f"{cluster}: replaying {day}: {engine.progress()}"):
        tables = replay.run()
        runner.commit(replaced)

        def commit(name: str) -> None:
            writer = warehouse.writer(name, {"cluster": cluster})
            warehouse.commit_files(name, writer.write_rows(tables[name]), replaced)

        with ThreadPoolExecutor(WRITERS) as pool:
            list(pool.map(commit, tables))
    progress(f"{cluster}: {day} replayed")


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
