"""Replay one day of one cluster from silver into gold: find its files, run the passes of replay/plan.py, commit."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import polars as pl

from mqreplay.decode.kinds import KINDS
from mqreplay.engines.engine import Engine
from mqreplay.ingest.recorder_kinds import OF_SNAPSHOTS
from mqreplay.lake.buckets import Key, key_of
from mqreplay.lake.row_filter import RowFilter
from mqreplay.lake.table_files import TableFiles, read_files
from mqreplay.lake.ticker import Ticker
from mqreplay.lake.warehouse import Warehouse
from mqreplay.night.steps import Span, kinds_of, reach_of, recorded_until, sure_starts
from mqreplay.replay.day import DAY, DESCRIPTIONS, INSTANTS, NO_TIME, Day
from mqreplay.replay.plan import Recorded, Replay
from mqreplay.settings import Settings

Progress = Callable[[str], None]
WRITERS = 3
OTHER_KINDS = ("brokers", *OF_SNAPSHOTS)  # not JSONL, so not in KINDS
CHECKPOINT = "silver.offset_checkpoint"
TABLES = [f"silver.{name}" for name in (*INSTANTS, *DESCRIPTIONS)]
TABLES += ["bronze.quarantine", "gold.allocation", "gold.pull_route", "gold.offset_continuity", "gold.finding"]
NOT_REPLAYED = ("gold.open_finding", "gold.validation_result")
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
    keys = keys_of(warehouse)
    night = Day(cluster, day, since, files_of(warehouse, cluster, day, since), keys, is_first)
    landings = {name: warehouse.writer(name, {"cluster": cluster}) for name in _gold(warehouse)}
    replay = Replay(night, settings, recorded_of(found, night), landings, engine, progress)
    with Ticker(progress, lambda _: f"{cluster}: replaying {day}: {engine.progress()}"):
        files = replay.run()
        replaced = None if afresh else RowFilter(cluster, days=frozenset({day}))

        def commit(name: str) -> None:
            warehouse.commit_files(name, files.get(name, []), replaced)

        with ThreadPoolExecutor(WRITERS) as pool:
            list(pool.map(commit, landings))
    progress(f"{cluster}: {day} replayed")


def _gold(warehouse: Warehouse) -> list[str]:
    """Return the gold tables that a replay writes; watch and validation write the others."""
    return [name for name in warehouse.contracts if name.startswith("gold.") and name not in NOT_REPLAYED]


def keys_of(warehouse: Warehouse) -> Mapping[str, Key]:
    """Return the shard key of each table that has one."""
    return {name: key_of(contract.shard_key) for name, contract in warehouse.contracts.items() if contract.shard_key}


def files_of(warehouse: Warehouse, cluster: str, day: dt.date, since: dt.datetime) -> Mapping[str, TableFiles]:
    """Return by table the files with the rows that a replay of the time from ``since`` to the end of ``day`` reads."""
    files = {name: _listed(warehouse, name, cluster, (since.date() - DAY, day + DAY)) for name in TABLES}
    # Without the checkpoint of the midnight after ``since``, an earlier one and the changes since then are needed.
    midnight = since.date() + DAY
    at_midnight = _listed(warehouse, CHECKPOINT, cluster, (midnight, midnight))
    if read_files(at_midnight, ["day"], (pl.col("cluster") == cluster) & (pl.col("day") == midnight)).is_empty():
        files[CHECKPOINT] = _listed(warehouse, CHECKPOINT, cluster, (dt.date.min, midnight))
        files["silver.offset_change"] = _listed(warehouse, "silver.offset_change", cluster, (dt.date.min, day + DAY))
    else:
        files[CHECKPOINT] = at_midnight
    return files


def _listed(warehouse: Warehouse, name: str, cluster: str, days: tuple[dt.date, dt.date]) -> TableFiles:
    return warehouse.files(name, RowFilter(cluster, between=None if name in ALL_DAYS else days))


def recorded_of(found: list[Span], night: Day) -> Recorded:
    """Return the coverage of the recordings that ``found`` lists."""
    first, last = reach_of(found, night.day)
    kinds = {*KINDS, *OTHER_KINDS}
    return Recorded(
        sorted(kinds - kinds_of(found, night.day)),
        recorded_until(found),
        partial(sure_starts, found),
        max(min(max(night.since - first, last - night.end), DAY), NO_TIME),
    )
