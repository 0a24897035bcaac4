"""`--notify`: messages about the findings of a night, or of a round of watch."""

from __future__ import annotations

import argparse
import datetime as dt
import sys
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from mqreplay.errors import InputError, WarehouseLocked
from mqreplay.language.language import language
from mqreplay.printable import printable

if TYPE_CHECKING:
    from mqreplay.night.notify.alert import Alert
    from mqreplay.night.notify.channel import Channel
    from mqreplay.night.outcome import Outcome
    from mqreplay.night.watch import RoundDone
    from mqreplay.settings import Settings

NO_OTHERS = dt.datetime.max.replace(tzinfo=dt.UTC)


def add(command: argparse.ArgumentParser) -> None:
    """Add the option."""
    text = (
        "send a message when a finding opens, gets worse or closes: an address of apprise, alertmanager://HOST:9093, "
        "or @FILE with one a line; repeatable (default: those of [notify])"
    )
    command.add_argument("--notify", action="append", default=[], metavar="URL", help=text)


class Notifier:
    """The channels of a run. Made before the run, so that a wrong address is an error at once."""

    def __init__(self, args: argparse.Namespace, settings: Settings) -> None:
        """Open the channels of the command or of the settings. Raises InputError."""
        self._root, self._settings = args.warehouse, settings
        self._channels: list[Channel] = []
        self._failed_before = False
        if args.notify or settings.notify.urls or settings.notify.file:
            from mqreplay.night.notify.notify import opened_channels

            if args.catalog is not None:
                raise InputError("messages are noted in a table by its path: leave --notify out with --catalog")
            self._channels = opened_channels(settings.notify, args.notify)

    def of_night(self, outcomes: Sequence[Outcome]) -> None:
        """Send what is due after a night."""
        if not self._channels:
            return
        from mqreplay.night.notify.alert import instant, of_night
        from mqreplay.night.open_findings import seconds_until_closed

        limits = seconds_until_closed(self._settings)
        for outcome in outcomes:
            alerts = of_night((*outcome.findings, *outcome.others), instant(outcome.last_ts), limits)
            opening = {str(row["finding_id"]) for row in outcome.findings}
            self._send(outcome.cluster, alerts, self._page(outcome.report), instant(outcome.since), opening)

    def of_round(self, done: RoundDone) -> None:
        """Send what is due after a round of watch: the findings of gold.open_finding, and those of a night."""
        if not self._channels:
            return
        from mqreplay.lake.warehouse import Warehouse
        from mqreplay.night.notify.alert import of_watch
        from mqreplay.night.open_findings import read_findings

        for one in done.clusters:
            if one.changes or self._failed_before or done.number == 1:
                alerts = of_watch(read_findings(Warehouse(self._root), one.cluster))
                self._send(one.cluster, alerts, None, NO_OTHERS)
        self.of_night(done.nights)

    def _send(
        self,
        cluster: str,
        alerts: Sequence[Alert],
        page: str | None,
        known_since: dt.datetime | None,
        opening: Collection[str] | None = None,
    ) -> None:
        from mqreplay.night.notify.notify import notify

        try:
            done = notify(
                self._root,
                self._settings.notify,
                self._channels,
                cluster,
                alerts,
                page,
                known_since=known_since,
                opening=opening,
                words=language(self._settings.report.language),
            )
        except WarehouseLocked:
            self._failed_before = True
            self._say(f"{cluster}: the warehouse is in use by another run; messages are sent by the next one")
            return
        self._failed_before = bool(done.failed)
        for line in done.failed:
            self._say(line)
        if done.messages:
            self._say(f"{cluster}: {done.messages} message{'' if done.messages == 1 else 's'} sent")

    def _page(self, report: str | None) -> str | None:
        base = self._settings.notify.page.rstrip("/")
        return report if report is None or not base else f"{base}/{report.rpartition('/')[2]}"

    def _say(self, line: str) -> None:
        print(f"mqreplay: {printable(line)}", file=sys.stderr, flush=True)
