"""The text of a message about a finding: what, where, since when, why, the page, and the command that shows more.

A message is in the language of the reports.
"""

from __future__ import annotations

import datetime as dt
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mqreplay.answers.alert import Alert
from mqreplay.findings.shape import place_text
from mqreplay.findings.texts import advice_of, summary_of, texts_of
from mqreplay.language.language import Language, in_english
from mqreplay.notices.due import CLOSED, OPENED, WORSENED, Notice
from mqreplay.report.next_step import advice_parts, names_of
from mqreplay.report.text import lasting
from mqreplay.report.verdict import clause_of
from mqreplay.words.printable import printable

LONGEST_TEXT = 2_000  # characters of a text; the chats cut longer ones


@dataclass(frozen=True)
class Source:
    """Where the findings of a message are, and its language. ``page`` is the address of the page, if there is one.

    ``until``: the last recorded instant.
    """

    cluster: str
    warehouse: str
    page: str | None
    causes: Mapping[str, Alert]
    words: Language = field(default_factory=in_english)
    until: dt.datetime | None = None

    def link(self, alert: Alert) -> str | None:
        """Return the address of the finding on the page."""
        return None if self.page is None else f"{self.page}#f-{alert.finding_id}"

    def explain(self, alert: Alert) -> str:
        """Return the command that shows the evidence."""
        return f"mqreplay explain {alert.finding_id[:8]} --warehouse {shlex.quote(self.warehouse)}"


def title(notice: Notice, source: Source) -> str:
    """Return the first line: "critical: the master of broker-a did not answer for 88 s from 02:51:31 (prod)"."""
    alert, words = notice.alert, source.words
    place = place_text(alert.place)
    if alert.is_withdrawn:
        sentence = words.filled("{kind} of {place}", kind=alert.kind, place=place) if place else alert.kind
    else:
        times = {"from_ts": alert.from_ts, "to_ts": None if alert.is_open else alert.to_ts}
        sentence = clause_of({**alert.row, **times}, None if source.until is None else source.until.date(), words)
    values = {"severity": words.text(alert.severity), "sentence": sentence, "cluster": source.cluster}
    if notice.what == OPENED:
        return printable(words.filled("{severity}: {sentence} ({cluster})", **values))
    what = words.text(f"worsened from {notice.was}" if notice.what == WORSENED else notice.what)
    return printable(words.filled("{severity}, {what}: {sentence} ({cluster})", what=what, **values))


def text(notice: Notice, source: Source) -> str:
    """Return the lines after the title."""
    alert, words = notice.alert, source.words
    times = {"time": words.text(_when(notice)), "state": state_now(alert, source.until, words)}
    when = words.filled("When: {time}; {state}" if times["state"] else "When: {time}", **times)
    lines = [summary_of(alert.row, words), when]
    cause = source.causes.get(alert.cause or "")
    if cause is not None:
        which = {"kind": cause.kind, "id": cause.finding_id[:8], "summary": summary_of(cause.row, words)}
        lines.append(words.filled("Follows from: {kind} ({id}): {summary}", **which))
    if notice.effects:
        lines.append(words.filled("Followed by: {kinds}", kinds=_counted(notice.effects)))
    if notice.what != CLOSED:
        advice = "".join(advice_parts(advice_of(alert.row, words), names_of(alert.row)))
        lines.append(words.filled("Next: {advice}", advice=advice))
    link = source.link(alert)
    lines += [words.filled("Page: {link}", link=link)] if link is not None else []
    lines.append(words.filled("Evidence: {command}", command=source.explain(alert)))
    return "\n".join(printable(line) for line in lines)[:LONGEST_TEXT]


def state_now(alert: Alert, until: dt.datetime | None, words: Language | None = None) -> str:
    """Return how a finding is at the last recorded instant: "still down", "answered again 89 s ago"; empty: not known.

    A kind may have words of its own, ``[now]`` and ``[ended]`` of its texts.
    """
    if until is None or (alert.to_ts is None and not alert.is_open):
        return ""
    words = words or in_english()
    own = texts_of(alert.kind)
    if alert.is_open or alert.to_ts is None:
        state = own.text("now", words.name) or words.filled("still going on")
        return words.filled("{state} at {time} UTC", state=state, time=f"{until:%H:%M:%S}")
    ended = own.text("ended", words.name) or words.filled("ended")
    ago = lasting(alert.to_ts, max(until, alert.to_ts), words)
    return words.filled("{state} {time} ago", state=ended, time=ago)


def rest_title(rest: Sequence[Notice], source: Source) -> str:
    """Return the first line of the message about those beyond the limit: how many, and the worst."""
    return printable(source.words.filled("{n} more messages; {worst}", n=len(rest), worst=title(rest[0], source)))


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
