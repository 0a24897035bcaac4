"""The days of each table that the replay of a time reads."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping

from mqreplay.lake.row_filter import Days, RowFilter
from mqreplay.lake.warehouse import Warehouse
from mqreplay.replay.day import CHECKPOINT, DESCRIPTIONS, INSTANTS
from mqreplay.words.time_span import ONE_DAY

DAY_TABLES = ["bronze.quarantine", *(f"silver.{name}" for name in (*INSTANTS, *DESCRIPTIONS))]
GOLD_BEFORE = ("gold.allocation", "gold.pull_route", "gold.offset_continuity", "gold.finding")
ALL_DAYS = ("silver.topic_config", "silver.broker", "silver.subscription_group")


def days_read(warehouse: Warehouse, cluster: str, day: dt.date, since: dt.datetime) -> Mapping[str, Days]:
    """Return by table the days that a replay of the time from ``since`` to the end of ``day`` reads."""
    around, any_day = Days(since.date() - ONE_DAY, day + ONE_DAY), Days()
    days = {name: around if _is_dated(warehouse, name) else any_day for name in DAY_TABLES}
    days |= dict.fromkeys(GOLD_BEFORE, Days(min(since.date(), day - ONE_DAY), day - ONE_DAY))  # not what is replaced
    # Without the checkpoint of the midnight after ``since``, an earlier one and the changes since then are needed.
    midnight = since.date() + ONE_DAY
    at_midnight = Days(midnight, midnight)
    if warehouse.read(CHECKPOINT, RowFilter(cluster, between=(midnight, midnight))).limit(1).collect().is_empty():
        return days | {CHECKPOINT: Days(last=midnight), "silver.offset_change": Days(last=day + ONE_DAY)}
    return days | {CHECKPOINT: at_midnight}


def _is_dated(warehouse: Warehouse, name: str) -> bool:
    return warehouse.contracts[name].has_day_column and name not in ALL_DAYS
