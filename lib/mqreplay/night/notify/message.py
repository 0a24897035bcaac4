"""The text of a message about a finding: what, where, since when, why, the page, and the command that shows more."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mqreplay.findings.shape import place_text
from mqreplay.night.notify.alert import Alert
from mqreplay.night.notify.due import CLOSED, WORSENED, Notice
from mqreplay.printable import printable
from mqreplay.report.next_step import advice_parts, names_of

MOST = 2_000  # characters of a text; the chats cut longer ones


@dataclass(frozen=True)
class Source:
    """Where the findings of a message are: the cluster, the warehouse, and the address of the page, if there is one."""

    cluster: str
    warehouse: str
    page: str | None
    causes: Mapping[str, Alert]

    def link(self, alert: Alert) -> str | None:
        """Return the address of the finding on the page."""
        return None if self.page is None else f"{self.page}#f-{alert.finding_id}"

    def explain(self, alert: Alert) -> str:
        """Return the command that shows the evidence."""
        return f"mqreplay explain {alert.finding_id[:8]} --warehouse {shlex.quote(self.warehouse)}"


def title(notice: Notice, cluster: str) -> str:
    """Return the first line: "critical: broker_down of broker-a opened (DefaultCluster)"."""
    alert = notice.alert
    place = place_text(alert.place)
    of = f" of {place}" if place else ""
    what = f"worsened from {notice.was}" if notice.what == WORSENED else notice.what
    return printable(f"{alert.severity}: {alert.kind}{of} {what} ({cluster})")


def text(notice: Notice, source: Source) -> str:
    """Return the lines after the title."""
    alert = notice.alert
    lines = [alert.summary, f"When: {_when(notice)}"]
    cause = source.causes.get(alert.cause or "")
    if cause is not None:
        lines.append(f"Follows from: {cause.kind} ({cause.finding_id[:8]}): {cause.summary}")
    if notice.effects:
        lines.append(f"Followed by: {_counted(notice.effects)}")
    if notice.what != CLOSED:
        row = {"consumer_group": None, "topic": None, "client_id": None, **alert.names, "finding_id": alert.finding_id}
        lines.append(f"Next: {''.join(advice_parts(alert.advice, names_of(row)))}")
    link = source.link(alert)
    lines += [f"Page: {link}"] if link is not None else []
    lines.append(f"Evidence: {source.explain(alert)}")
    return "\n".join(printable(line) for line in lines)[:MOST]


def rest_title(rest: Sequence[Notice], cluster: str) -> str:
    """Return the first line of the message about those beyond the limit."""
    return printable(f"{len(rest)} more messages ({cluster})")


def rest_text(rest: Sequence[Notice], source: Source) -> str:
    """Return the lines of the message about those beyond the limit."""
    named = Counter(f"{one.alert.severity} {one.alert.kind} {one.what}" for one in rest)
    lines = [f"{count} {words}" for words, count in named.most_common(20)]
    lines.append(f"All: mqreplay findings --warehouse {shlex.quote(source.warehouse)} --cluster {source.cluster}")
    return "\n".join(printable(line) for line in lines)


def _when(notice: Notice) -> str:
    alert = notice.alert
    begin, end = f"{alert.from_ts:%Y-%m-%d %H:%M:%S}", alert.to_ts
    if alert.is_open or end is None:
        return f"since {begin} UTC"
    return f"{begin} to {end:%Y-%m-%d %H:%M:%S} UTC"


def _counted(effects: Sequence[Alert]) -> str:
    counts = Counter(one.kind for one in effects)
    return ", ".join(f"{count} {kind}" for kind, count in counts.most_common())
