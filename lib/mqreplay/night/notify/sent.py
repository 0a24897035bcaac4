"""The table gold.notification: what each channel got."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from typing import Any, Final

import polars as pl

from mqreplay.findings.shape import PLACE
from mqreplay.lake.row_filter import RowFilter
from mqreplay.lake.warehouse import Warehouse
from mqreplay.night.notify.due import Notice, Sent

TABLE: Final = "gold.notification"
KEPT: Final = dt.timedelta(days=366)  # the report, whose findings are sent, has no more days
STATE: Final = ("kind", "severity", "from_ts", "to_ts", "is_open", "what", "sent_ts")


def read_sent(warehouse: Warehouse, cluster: str, channel: str) -> list[Sent]:
    """Return what a channel got about the findings of a cluster."""
    rows = warehouse.read(TABLE, RowFilter(cluster)).filter(pl.col("channel") == channel).collect()
    return [
        Sent(
            finding_id=row["finding_id"],
            place=tuple(row[name] for name in PLACE),
            **{name: row[name] for name in STATE},
        )
        for row in rows.iter_rows(named=True)
    ]


def write_sent(
    warehouse: Warehouse, cluster: str, channel: str, notices: Sequence[Notice], sent_ts: dt.datetime
) -> None:
    """Add what a channel took. Hold the warehouse's lock."""
    names = [column.name for column in warehouse.contracts[TABLE].columns]
    kept: list[dict[str, Any]] = []
    if warehouse.exists(TABLE):
        recent = warehouse.read(TABLE, RowFilter(cluster)).filter(pl.col("sent_ts") >= sent_ts - KEPT)
        kept = recent.collect().to_dicts()
    head = {"cluster": cluster, "channel": channel, "sent_ts": sent_ts}
    rows = [tuple(row.get(name) for name in names) for row in (*kept, *({**head, **one} for one in _rows(notices)))]
    warehouse.replace_rows(TABLE, rows, RowFilter(cluster) if kept else None)


def _rows(notices: Iterable[Notice]) -> Iterable[dict[str, Any]]:
    for notice in notices:
        for alert in notice.alerts:
            own = alert is notice.alert
            yield {
                "finding_id": alert.finding_id,
                "what": notice.what if own else "opened",
                "in_message_of": None if own else notice.alert.finding_id,
                "kind": alert.kind,
                "severity": alert.severity,
                **dict(zip(PLACE, alert.place, strict=True)),
                "from_ts": alert.from_ts,
                "to_ts": alert.to_ts,
                "is_open": alert.is_open,
            }
