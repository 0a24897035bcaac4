"""The text of a message about a finding: what, where, since when, why, the page, and the command that shows more.

A message is in the language of the reports.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mqreplay.findings.shape import place_text
from mqreplay.language.language import Language, in_english
from mqreplay.night.notify.alert import Alert
from mqreplay.night.notify.due import CLOSED, WORSENED, Notice
from mqreplay.printable import printable
from mqreplay.report.next_step import advice_parts, names_of

MOST = 2_000  # characters of a text; the chats cut longer ones


@dataclass(frozen=True)
class Source:
    """Where the findings of a message are, and its language. ``page`` is the address of the page, if there is one."""

    cluster: str
    warehouse: str
    page: str | None
    causes: Mapping[str, Alert]
    words: Language = field(default_factory=in_english)

    def link(self, alert: Alert) -> str | None:
        """Return the address of the finding on the page."""
        return None if self.page is None else f"{self.page}#f-{alert.finding_id}"

    def explain(self, alert: Alert) -> str:
        """Return the command that shows the evidence."""
        return f"mqreplay explain {alert.finding_id[:8]} --warehouse {shlex.quote(self.warehouse)}"


def title(notice: Notice, source: Source) -> str:
    """Return the first line: "critical: broker_down of broker-a opened (DefaultCluster)"."""
    alert, words = notice.alert, source.words
    place = place_text(alert.place)
    values = {"severity": words.text(alert.severity), "kind": alert.kind, "place": place, "cluster": source.cluster}
    what = words.text(f"worsened from {notice.was}" if notice.what == WORSENED else notice.what)
    form = "{severity}: {kind} of {place} {what} ({cluster})" if place else "{severity}: {kind} {what} ({cluster})"
    return printable(words.filled(form, what=what, **values))


def text(notice: Notice, source: Source) -> str:
    """Return the lines after the title."""
    alert, words = notice.alert, source.words
    lines = [words.text(alert.summary), words.filled("When: {time}", time=words.text(_when(notice)))]
    cause = source.causes.get(alert.cause or "")
    if cause is not None:
        which = {"kind": cause.kind, "id": cause.finding_id[:8], "summary": words.text(cause.summary)}
        lines.append(words.filled("Follows from: {kind} ({id}): {summary}", **which))
    if notice.effects:
        lines.append(words.filled("Followed by: {kinds}", kinds=_counted(notice.effects)))
    if notice.what != CLOSED:
        row = {"consumer_group": None, "topic": None, "client_id": None, **alert.names, "finding_id": alert.finding_id}
        advice = "".join(advice_parts(words.text(alert.advice), names_of(row)))
        lines.append(words.filled("Next: {advice}", advice=advice))
    link = source.link(alert)
    lines += [words.filled("Page: {link}", link=link)] if link is not None else []
    lines.append(words.filled("Evidence: {command}", command=source.explain(alert)))
    return "\n".join(printable(line) for line in lines)[:MOST]


def rest_title(rest: Sequence[Notice], source: Source) -> str:
    """Return the first line of the message about those beyond the limit."""
    return printable(source.words.filled("{n} more messages ({cluster})", n=len(rest), cluster=source.cluster))


def rest_text(rest: Sequence[Notice], source: Source) -> str:
    """Return the lines of the message about those beyond the limit."""
    words = source.words
    named = Counter((one.alert.severity, one.alert.kind, one.what) for one in rest)
    lines = [
        f"{count} {words.text(severity)} {kind} {words.text(what)}"
        for (severity, kind, what), count in named.most_common(20)
    ]
    command = f"mqreplay findings --warehouse {shlex.quote(source.warehouse)} --cluster {source.cluster}"
    lines.append(words.filled("All: {command}", command=command))
    return "\n".join(printable(line) for line in lines)


def _when(notice: Notice) -> str:
    alert = notice.alert
    begin, end = f"{alert.from_ts:%Y-%m-%d %H:%M:%S}", alert.to_ts
    if end is None or (alert.is_open and end <= alert.from_ts):
        return f"since {begin} UTC"
    until = f"{end:%Y-%m-%d %H:%M:%S} UTC"
    return f"since {begin} UTC, last evidence {until}" if alert.is_open else f"{begin} to {until}"


def _counted(effects: Sequence[Alert]) -> str:
    counts = Counter(one.kind for one in effects)
    return ", ".join(f"{count} {kind}" for kind, count in counts.most_common())
