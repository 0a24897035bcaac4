"""The table gold.open_finding: what nightly --watch knows about each cluster's findings."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from dataclasses import fields

from mqreplay.findings.every import KINDS
from mqreplay.findings.opened import OpenFinding
from mqreplay.lake.journal import Journal
from mqreplay.lake.lock import warehouse_lock
from mqreplay.lake.row_filter import RowFilter
from mqreplay.lake.warehouse import Warehouse
from mqreplay.settings import Settings

TABLE = "gold.open_finding"
WRITTEN_EVERY = dt.timedelta(minutes=5)  # last_seen_ts of open findings is written so often
KEPT = dt.timedelta(days=2)  # a closed finding is then in gold.finding
NAMES = [f.name for f in fields(OpenFinding)]


def read_findings(warehouse: Warehouse, cluster: str) -> list[OpenFinding]:
    """Return the cluster's rows. Needs no lock."""
    rows = warehouse.read(TABLE, RowFilter(cluster)).select(NAMES).collect()
    return [OpenFinding(**row) for row in rows.iter_rows(named=True)]


def write_findings(warehouse: Warehouse, cluster: str, findings: Sequence[OpenFinding]) -> None:
    """Replace the cluster's rows, under the warehouse's lock. Raises WarehouseLocked if another run holds it."""
    with warehouse_lock(warehouse.root):
        Journal(warehouse).recover(lambda _: None)
        rows = [(cluster, *(getattr(one, name) for name in NAMES)) for one in findings]
        warehouse.replace_rows(TABLE, rows, RowFilter(cluster) if warehouse.exists(TABLE) else None)


def without_old(findings: Iterable[OpenFinding], now: dt.datetime) -> list[OpenFinding]:
    """Return the findings that are open, or were closed not long ago."""
    return [one for one in findings if one.closed_ts is None or one.closed_ts >= now - KEPT]


def seconds_until_closed(settings: Settings) -> dict[str, int]:
    """Return after how many seconds without evidence a finding closes, by kind, but for kinds that need the day."""
    made: dict[str, int] = {}
    for kind in KINDS.values():
        if kind.ends_after is not None:
            section, key = kind.ends_after.split(".")
            made[kind.name] = getattr(getattr(settings, section), key)
    return made
