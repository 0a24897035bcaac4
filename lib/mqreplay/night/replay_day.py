"""Replay one day of one cluster from silver into gold: find its files, run the passes of replay/plan.py, commit."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from mqreplay.decode.kinds import KINDS
from mqreplay.engines.engine import Engine
from mqreplay.ingest.recorder_kinds import OF_SNAPSHOTS
from mqreplay.lake.row_filter import Days, RowFilter
from mqreplay.lake.ticker import Ticker
from mqreplay.lake.warehouse import Warehouse
from mqreplay.night.steps import Span, kinds_of, reach_of, recorded_until, sure_starts
from mqreplay.replay.day import CHECKPOINT, DAY, DESCRIPTIONS, INSTANTS, NO_TIME, Day
from mqreplay.replay.plan import Replay
from mqreplay.replay.recorded import Recorded
from mqreplay.settings import Settings

Progress = Callable[[str], None]
WRITERS = 3
OTHER_KINDS = ("brokers", *OF_SNAPSHOTS)  # not JSONL, so not in KINDS
TABLES = [f"silver.{name}" for name in (*INSTANTS, *DESCRIPTIONS)]
TABLES += ["bronze.quarantine", "gold.allocation", "gold.pull_route", "gold.offset_continuity", "gold.finding"]
ALL_DAYS = ("silver.topic_config", "silver.broker", "silver.subscription_group")


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


def days_read(warehouse: Warehouse, cluster: str, day: dt.date, since: dt.datetime) -> Mapping[str, Days]:
    """Return by table the days that a replay of the time from ``since`` to the end of ``day`` reads."""
    around, any_day = Days(since.date() - DAY, day + DAY), Days()
    days = {name: around if _is_dated(warehouse, name) else any_day for name in TABLES}
    # Without the checkpoint of the midnight after ``since``, an earlier one and the changes since then are needed.
    midnight = since.date() + DAY
    at_midnight = Days(midnight, midnight)
    if warehouse.read(CHECKPOINT, RowFilter(cluster, between=(midnight, midnight))).limit(1).collect().is_empty():
        return days | {CHECKPOINT: Days(last=midnight), "silver.offset_change": Days(last=day + DAY)}
    return days | {CHECKPOINT: at_midnight}


def _is_dated(warehouse: Warehouse, name: str) -> bool:
    return warehouse.contracts[name].has_day and name not in ALL_DAYS


def recorded_of(found: list[Span], day: Day) -> Recorded:
    """Return the coverage of the recordings that ``found`` lists."""
    first, last = reach_of(found, day.day)
    kinds = {*KINDS, *OTHER_KINDS}
    return Recorded(
        sorted(kinds - kinds_of(found, day.day)),
        recorded_until(found),
        partial(sure_starts, found),
        max(min(max(day.since - first, last - day.end), DAY), NO_TIME),
    )
