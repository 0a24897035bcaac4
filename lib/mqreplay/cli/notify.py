"""`--notify`: messages about the findings of a night, or of a round of watch."""

from __future__ import annotations

import argparse
import datetime as dt
import sys
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from mqreplay.language.language import language
from mqreplay.words.errors import InputError, WarehouseLocked
from mqreplay.words.printable import printable

if TYPE_CHECKING:
    from mqreplay.answers.alert import Alert
    from mqreplay.answers.outcome import Outcome
    from mqreplay.notices.channel import Channel
    from mqreplay.notices.watch import RoundDone
    from mqreplay.settings import Settings

NO_OTHERS = dt.datetime.max.replace(tzinfo=dt.UTC)


class Notifier:
    """The channels of a run. Made before the run, so that a wrong address is an error at once."""

    def __init__(self, args: argparse.Namespace, settings: Settings) -> None:
        """Open the channels of the command or of the settings. Raises InputError."""
        self._root, self._settings = args.warehouse, settings
        self._channels: list[Channel] = []
        self._failed_before = False
        if args.notify or settings.notify.urls or settings.notify.file:
            from mqreplay.notices.notify import opened_channels

            if args.catalog is not None:
                raise InputError("messages are noted in a table by its path: leave --notify out with --catalog")
            self._channels = opened_channels(settings.notify, args.notify)

    def of_night(self, outcomes: Sequence[Outcome]) -> None:
        """Send what is due after a night."""
        if not self._channels:
            return
        from mqreplay.answers.alert import instant, of_night
        from mqreplay.answers.open_findings import seconds_until_closed

        limits = seconds_until_closed(self._settings)
        for outcome in outcomes:
            alerts = of_night((*outcome.findings, *outcome.others), instant(outcome.last_ts), limits)
            opening = {str(row["finding_id"]) for row in outcome.findings}
            page, since, until = self._page(outcome.report), instant(outcome.since), instant(outcome.last_ts)
            self._send(outcome.cluster, alerts, page, since, opening, until=until)

    def of_round(self, done: RoundDone) -> None:
        """Send what is due after a round of watch: the findings of gold.open_finding, and those of a night."""
        if not self._channels:
            return
        from mqreplay.answers.alert import of_watch
        from mqreplay.answers.open_findings import read_findings
        from mqreplay.lake.warehouse import Warehouse

        for one in done.clusters:
            if one.changes or self._failed_before or done.number == 1:
                alerts = of_watch(read_findings(Warehouse(self._root), one.cluster))
                self._send(one.cluster, alerts, self._watch_page(one.cluster), NO_OTHERS, until=one.recorded_until)
        self.of_night(done.nights)

    def _send(
        self,
        cluster: str,
        alerts: Sequence[Alert],
        page: str | None,
        known_since: dt.datetime | None,
        opening: Collection[str] | None = None,
        *,
        until: dt.datetime | None = None,
    ) -> None:
        from mqreplay.notices.notify import notify

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
                until=until,
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

    def _watch_page(self, cluster: str) -> str:
        from mqreplay.answers.page_path import watch_path

        path, base = watch_path(self._root, cluster), self._settings.notify.page.rstrip("/")
        return f"{base}/{'/'.join(path.split('/')[-2:])}" if base else path

    def _page(self, report: str | None) -> str | None:
        base = self._settings.notify.page.rstrip("/")
        return report if report is None or not base else f"{base}/{report.rpartition('/')[2]}"

    def _say(self, line: str) -> None:
        print(f"mqreplay: {printable(line)}", file=sys.stderr, flush=True)
