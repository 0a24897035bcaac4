"""Send what is due about the findings of a cluster, and note it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import polars as pl

from mqreplay.answers.alert import Alert
from mqreplay.answers.mutes import muting, valid_mutes
from mqreplay.findings.shape import PLACE
from mqreplay.lake.journal import Journal
from mqreplay.lake.lock import warehouse_lock
from mqreplay.lake.row_filter import RowFilter
from mqreplay.lake.warehouse import Warehouse
from mqreplay.language.language import Language, in_english
from mqreplay.night.overview import LastRuns
from mqreplay.night.reported import Reported
from mqreplay.notices.channel import Channel, channels_of
from mqreplay.notices.due import OPENED, Notice, Sent, due
from mqreplay.notices.message import Source
from mqreplay.settings import NotifySettings
from mqreplay.words.severity import SEVERITIES

NOTIFICATION_TABLE: Final = "gold.notification"
NOTIFICATIONS_KEPT: Final = dt.timedelta(days=366)  # the report, whose findings are sent, has no more days
STATE: Final = ("kind", "severity", "from_ts", "to_ts", "is_open", "what", "sent_ts")


@dataclass(frozen=True)
class Notified:
    """What a run sent: messages that channels took, those that are due again, and the lines that say why."""

    messages: int
    failed: tuple[str, ...]


def opened_channels(settings: NotifySettings, urls: Sequence[str]) -> list[Channel]:
    """Return the channels of a run: those of the command, else of the settings. Raises InputError."""
    if urls:
        files = [url[1:] for url in urls if url.startswith("@")]
        return channels_of([url for url in urls if not url.startswith("@")], files)
    return channels_of(settings.urls, [settings.file] if settings.file else [])


def notify(
    root: str,
    settings: NotifySettings,
    channels: Sequence[Channel],
    cluster: str,
    alerts: Sequence[Alert],
    page: str | None,
    known_since: dt.datetime | None = None,
    opening: Collection[str] | None = None,
    words: Language | None = None,
    until: dt.datetime | None = None,
) -> Notified:
    """Send what is due to each channel, under the warehouse's lock, so that no message is sent twice.

    A message that a channel does not take is due again in the next run. ``known_since`` and ``opening``: see due().
    ``words``: the language of the messages; ``until``: the end of what is recorded. Raises WarehouseLocked.
    """
    warehouse = Warehouse(root)
    source = Source(cluster, root, page, {alert.finding_id: alert for alert in alerts}, words or in_english(), until)
    now = dt.datetime.now(dt.UTC)
    messages, failed = 0, []
    with warehouse_lock(root):
        Journal(warehouse).recover(lambda _: None)
        mutes = valid_mutes(warehouse, cluster, now)
        runs, unsent = LastRuns.of(root), set[str]()
        reported = runs.reported.get(cluster, Reported())
        opening = None if opening is None else {*opening, *reported.unsent}
        least = SEVERITIES.index(settings.severity)

        def is_quiet(alert: Alert) -> bool:
            return alert.rank < least or muting(mutes, alert, now) is not None

        for channel in channels:
            found = due(alerts, read_sent(warehouse, cluster, channel.name), is_quiet, known_since, opening)
            taken, why = _send(channel, found, source, settings.messages)
            if taken:
                write_sent(warehouse, cluster, channel.name, taken, now)
            messages += len(taken)
            if why is not None:
                left = (one for one in found[len(taken) :] if one.what == OPENED)
                unsent.update(alert.finding_id for one in left for alert in one.alerts)
                count = len(found) - len(taken)
                failed.append(f"{cluster}: {count} messages to {channel.name} are due again in the next run: {why}")
        if opening is not None and unsent != reported.unsent:
            reported.unsent = frozenset(unsent)
            runs.write(root)
    return Notified(messages, tuple(failed))


def _send(channel: Channel, found: Sequence[Notice], source: Source, most: int) -> tuple[list[Notice], str | None]:
    """Send messages, those beyond the limit as one. Return those that were taken, and why the others were not."""
    taken: list[Notice] = []
    for notice in found[:most]:
        why = channel.send(notice, source)
        if why is not None:
            return taken, why  # the channel would not take the others either, each after its own tries
        taken.append(notice)
    rest = found[most:]
    if rest:
        why = channel.send_rest(rest, source)
        return ([*taken, *rest], None) if why is None else (taken, why)
    return taken, None


def read_sent(warehouse: Warehouse, cluster: str, channel: str) -> list[Sent]:
    """Return what a channel got about the findings of a cluster."""
    rows = warehouse.read(NOTIFICATION_TABLE, RowFilter(cluster)).filter(pl.col("channel") == channel).collect()
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
    names = [column.name for column in warehouse.contracts[NOTIFICATION_TABLE].columns]
    kept: list[dict[str, Any]] = []
    if warehouse.exists(NOTIFICATION_TABLE):
        recent = warehouse.read(NOTIFICATION_TABLE, RowFilter(cluster)).filter(
            pl.col("sent_ts") >= sent_ts - NOTIFICATIONS_KEPT
        )
        kept = recent.collect().to_dicts()
    head = {"cluster": cluster, "channel": channel, "sent_ts": sent_ts}
    rows = [tuple(row.get(name) for name in names) for row in (*kept, *({**head, **one} for one in _rows(notices)))]
    warehouse.replace_rows(NOTIFICATION_TABLE, rows, RowFilter(cluster) if kept else None)


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
