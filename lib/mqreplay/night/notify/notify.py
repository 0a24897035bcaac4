"""Send what is due about the findings of a cluster, and note it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from mqreplay.lake.journal import Journal
from mqreplay.lake.lock import warehouse_lock
from mqreplay.lake.warehouse import Warehouse
from mqreplay.language.language import Language, in_english
from mqreplay.night.notify.alert import Alert
from mqreplay.night.notify.channel import Channel, channels_of
from mqreplay.night.notify.due import OPENED, Notice, due
from mqreplay.night.notify.message import Source
from mqreplay.night.notify.mutes import muting, valid_mutes
from mqreplay.night.notify.sent import read_sent, write_sent
from mqreplay.night.overview import LastRuns
from mqreplay.night.reported import Reported
from mqreplay.settings import NotifySettings
from mqreplay.severity import SEVERITIES


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
) -> Notified:
    """Send what is due to each channel, under the warehouse's lock, so that no message is sent twice.

    A message that a channel does not take is due again in the next run. ``known_since`` and ``opening``: see due().
    ``words``: the language of the messages. Raises WarehouseLocked.
    """
    warehouse = Warehouse(root)
    source = Source(cluster, root, page, {alert.finding_id: alert for alert in alerts}, words or in_english())
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
