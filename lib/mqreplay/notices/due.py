"""Which messages are due on a channel: a finding is sent once when it opens, gets worse, or closes."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from mqreplay.answers.alert import Alert, Known

OPENED, WORSENED, CLOSED = "opened", "worsened", "closed"


@dataclass(frozen=True)
class Sent(Known):
    """What a channel got last about a finding; a row of gold.notification without its cluster and channel."""

    what: str
    sent_ts: dt.datetime


@dataclass(frozen=True)
class Notice:
    """A message that is due. ``was``: the severity that was sent before, ``effects``: findings that follow from it."""

    what: str
    alert: Alert
    was: str | None = None
    effects: tuple[Alert, ...] = ()

    @property
    def alerts(self) -> tuple[Alert, ...]:
        """Return the findings that the message is about."""
        return (self.alert, *self.effects)


def due(
    alerts: Sequence[Alert],
    sent: Iterable[Sent],
    is_quiet: Callable[[Alert], bool],
    known_since: dt.datetime | None = None,
    opening: Collection[str] | None = None,
) -> list[Notice]:
    """Return the messages that are due, the most severe first, then by time.

    ``sent`` is what the channel got before, ``is_quiet`` says which findings are muted or below the least severity.
    A finding that was sent as open and is no longer found is closed, if it began at ``known_since`` or later: what
    began before is not among ``alerts``. ``opening`` are the ids of findings that may have a first message, those of
    the night; None: all may. A finding that follows from one of the same run goes into its message, unless it is more
    severe.
    """
    last = _last(sent)
    matched = [(alert, _matching(alert, last)) for alert in alerts]
    found = [
        notice
        for alert, before in matched
        if not is_quiet(alert)
        and (before is not None or opening is None or alert.finding_id in opening)
        and (notice := _notice(alert, before)) is not None
    ]
    met = {before.finding_id for _, before in matched if before is not None}
    gone = [
        one
        for one in last
        if one.is_open and one.finding_id not in met and (known_since is None or one.from_ts >= known_since)
    ]
    found += [Notice(CLOSED, _gone(one)) for one in gone]
    return sorted(_with_effects(found), key=lambda one: (-one.alert.rank, one.alert.from_ts, one.alert.finding_id))


def _last(sent: Iterable[Sent]) -> list[Sent]:
    """Return the last row of each finding."""
    return list({one.finding_id: one for one in sorted(sent, key=lambda one: one.sent_ts)}.values())


def _matching(alert: Alert, last: Sequence[Sent]) -> Sent | None:
    """Return what was sent of the finding: of its id, or of its kind and place at that time.

    The nightly run may date the begin of what watch found differently, so that it has another id.
    """
    same = next((one for one in last if one.finding_id == alert.finding_id), None)
    return same or next((one for one in last if _is_same(alert, one)), None)


def _is_same(alert: Alert, one: Sent) -> bool:
    if (one.kind, one.place) != (alert.kind, alert.place):
        return False
    ends_before = alert.to_ts is not None and alert.to_ts < one.from_ts
    begins_after = not one.is_open and alert.from_ts > (one.to_ts or one.from_ts)
    return not ends_before and not begins_after


def _notice(alert: Alert, before: Sent | None) -> Notice | None:
    if before is None or (alert.is_open and not before.is_open):
        return Notice(OPENED, alert)
    if alert.rank > before.rank:
        return Notice(WORSENED, alert, before.severity)
    return Notice(CLOSED, alert) if before.is_open and not alert.is_open else None


def _gone(one: Sent) -> Alert:
    """Return the finding of a row, closed."""
    known = (one.finding_id, one.kind, one.severity, one.place, one.from_ts, one.to_ts, False)
    text = "It is no longer found: rows that came later, or other settings, show that it was none."
    return Alert(*known, text, "", is_withdrawn=True)


def _with_effects(found: Sequence[Notice]) -> list[Notice]:
    """Return the messages, with the findings that follow from another one in its message."""
    opened = {one.alert.finding_id: one for one in found if one.what != CLOSED}
    above = {name: opened[cause] for name, one in opened.items() if (cause := _cause_in(one, opened)) is not None}
    effects: dict[str, list[Alert]] = {}
    for name in above:
        root, seen = name, {name}
        while root in above and above[root].alert.finding_id not in seen:
            root = above[root].alert.finding_id
            seen.add(root)
        effects.setdefault(root, []).append(opened[name].alert)
    own = [one for one in found if one.what == CLOSED or one.alert.finding_id not in above]
    return [replace(one, effects=tuple(effects.get(one.alert.finding_id, ()))) for one in own]


def _cause_in(one: Notice, opened: Mapping[str, Notice]) -> str | None:
    """Return the id of its cause, if that has a message that can tell of it, too."""
    cause = opened.get(one.alert.cause or "")
    is_part = cause is not None and one.what == OPENED and one.alert.rank <= cause.alert.rank
    return one.alert.cause if is_part else None
