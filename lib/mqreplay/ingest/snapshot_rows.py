"""Rows of silver.snapshot and of the tables of brokers' configurations from snapshots."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterable
from typing import Any

Row = dict[str, Any]
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
KEY_MARK = "@"  # between the parts of a key, which names of topics and groups cannot have
# Kind of file -> its table, and the columns of the entries' key.
CONFIGS = {
    "topics": ("silver.topic_config", ("topic",)),
    "subscription_groups": ("silver.subscription_group", ("consumer_group",)),
    "message_request_modes": ("silver.message_request_mode", ("topic", "consumer_group")),
    "pop_orders": ("silver.pop_order", ("topic", "consumer_group", "queue_id")),
    "delay_offset": ("silver.delay_offset", ("delay_level",)),
}
NUMBERS = ("queue_id", "delay_level")  # parts of a key that are whole numbers
SNAPSHOT = "silver.snapshot"


def beside_rows(rows: Iterable[Row], cluster: str) -> dict[str, list[Row]]:
    """Return by table rows by column name; ``rows`` are the rows of a source's reading other than changes."""
    tables: dict[str, list[Row]] = {SNAPSHOT: [], **{table: [] for table, _ in CONFIGS.values()}}
    for row in rows:
        if row["out"] == "snapshot":
            own = {"data_version_counter": row["counter"]}
            tables[SNAPSHOT].append(_dated(row, cluster) | own)
        elif row["out"] == "config":
            table, columns = CONFIGS[row["kind"]]
            values = {} if row["payload"] is None else json.loads(row["payload"])
            key: Row = dict(zip(columns, row["topic"].rsplit(KEY_MARK, len(columns) - 1), strict=True))
            key |= {name: int(key[name]) for name in NUMBERS if name in key}
            tables[table].append(_dated(row, cluster) | key | values)
    return tables


def _dated(row: Row, cluster: str) -> Row:
    ts = instant(row["ts"] * 1000)
    return row | {"cluster": cluster, "ts": ts, "day": ts.date(), "source_digest": row["digest"]}


def instant(micros: int) -> dt.datetime:
    """Return epoch microseconds as an instant."""
    return EPOCH + dt.timedelta(microseconds=micros)
