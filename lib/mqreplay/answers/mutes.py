"""The table gold.mute: findings that nobody wants messages about, until an instant and for a reason."""

from __future__ import annotations

import datetime as dt
import getpass
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from fnmatch import fnmatchcase
from hashlib import sha256
from typing import Any, Final

from mqreplay.answers.alert import Alert, instant, of_night
from mqreplay.lake.journal import Journal
from mqreplay.lake.lock import warehouse_lock
from mqreplay.lake.row_filter import RowFilter
from mqreplay.lake.warehouse import Warehouse
from mqreplay.words.printable import printable

MUTE_TABLE: Final = "gold.mute"
PATTERNS: Final = ("consumer_group", "topic", "broker_name")
MARKS: Final = ("muted_until_ts", "muted_by", "muted_reason")  # of a finding that is muted; else null


@dataclass(frozen=True)
class Mute:
    """What is muted: one finding, or findings by patterns (``*``, ``?``, ``[...]``) of kind and names; None: all."""

    mute_id: str
    finding_id: str | None
    kind: str | None
    consumer_group: str | None
    topic: str | None
    broker_name: str | None
    from_ts: dt.datetime
    until_ts: dt.datetime
    reason: str
    by_user: str

    def holds(self, now: dt.datetime) -> bool:
        """Return whether it holds at an instant."""
        return self.from_ts <= now < self.until_ts

    def covers(self, alert: Alert) -> bool:
        """Return whether it is about a finding. A pattern matches no finding that has no such name."""
        if self.finding_id is not None:
            return alert.finding_id == self.finding_id
        named = {"kind": alert.kind, **{name: alert.names.get(name) for name in PATTERNS}}
        return all(
            pattern is None or (value is not None and fnmatchcase(str(value), pattern))
            for name, value in named.items()
            for pattern in [getattr(self, name)]
        )


MUTE_COLUMNS: Final = [field.name for field in fields(Mute)]


def new_mute(wanted: dict[str, str | None], now: dt.datetime, until: dt.datetime, reason: str) -> Mute:
    """Return a mute from now on. ``wanted``: finding_id, or patterns by column."""
    text = "|".join(f"{name}={value}" for name, value in sorted(wanted.items()) if value is not None)
    mute_id = sha256(f"{text}|{now.isoformat()}".encode()).hexdigest()[:8]
    values = dict.fromkeys(("finding_id", "kind", *PATTERNS)) | wanted
    return Mute(mute_id, **values, from_ts=now, until_ts=until, reason=reason, by_user=_user())


def read_mutes(warehouse: Warehouse, cluster: str) -> list[Mute]:
    """Return the mutes of a cluster, also those that have expired."""
    rows = warehouse.read(MUTE_TABLE, RowFilter(cluster)).select(MUTE_COLUMNS).sort("from_ts", "mute_id").collect()
    return [Mute(**row) for row in rows.iter_rows(named=True)]


def muting(mutes: Iterable[Mute], alert: Alert, now: dt.datetime) -> Mute | None:
    """Return what mutes a finding at an instant, the one that lasts longest."""
    return _longest((mute for mute in mutes if mute.holds(now)), alert)


def _longest(mutes: Iterable[Mute], alert: Alert) -> Mute | None:
    return max((mute for mute in mutes if mute.covers(alert)), key=lambda mute: mute.until_ts, default=None)


def valid_mutes(warehouse: Warehouse, cluster: str, now: dt.datetime) -> list[Mute]:
    """Return the mutes of a cluster that hold at an instant."""
    return [mute for mute in read_mutes(warehouse, cluster) if mute.holds(now)]


def marked(findings: Sequence[Mapping[str, Any]], mutes: Sequence[Mute]) -> list[dict[str, Any]]:
    """Return rows of gold.finding with MARKS, which say until when, by whom and why one of the mutes covers them."""
    alerts = of_night(findings, None, {}) if mutes else []
    by_id = {alert.finding_id: _longest(mutes, alert) for alert in alerts}
    rows = []
    for finding in findings:
        mute = by_id.get(finding["finding_id"])
        values = (None, None, None) if mute is None else (mute.until_ts, mute.by_user, mute.reason)
        rows.append({**finding, **dict(zip(MARKS, values, strict=True))})
    return rows


def mark_text(row: Mapping[str, Any]) -> str:
    """Return what the marks of a row say, in English; empty for a finding that is not muted."""
    until = instant(row.get("muted_until_ts"))
    if until is None:
        return ""
    return f"Muted until {until:%Y-%m-%d %H:%M} UTC by {row['muted_by']}: {printable(row['muted_reason'])}."


def write_mutes(warehouse: Warehouse, cluster: str, mutes: Sequence[Mute]) -> None:
    """Replace the mutes of a cluster, under the warehouse's lock."""
    with warehouse_lock(warehouse.root):
        Journal(warehouse).recover(lambda _: None)
        rows = [(cluster, *(getattr(mute, name) for name in MUTE_COLUMNS)) for mute in mutes]
        warehouse.replace_rows(MUTE_TABLE, rows, RowFilter(cluster) if warehouse.exists(MUTE_TABLE) else None)


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container may have no name for its user
        return "unknown"
