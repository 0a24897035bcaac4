"""The night that a run is about: the recorded time that no earlier run has reported."""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from mqreplay.ingest.recording import RECORDER_KINDS
from mqreplay.night.steps import Span, last_recorded

IDS: Final = ("known", "findings", "unsent")


@dataclass(frozen=True)
class Night:
    """The night of a run, of one cluster: what its ``recordings`` hold from ``first`` to ``last``.

    ``known`` are the ids of the findings that earlier nights had; None: it is not the last night, and they are not
    known. ``is_new``: no run has reported it yet.
    """

    first: dt.datetime
    last: dt.datetime
    recordings: frozenset[str]
    known: frozenset[str] | None
    is_new: bool

    def has(self, finding_id: str, from_ts: dt.datetime | None, to_ts: dt.datetime | None) -> bool:
        """Return whether a finding is of this night: it went on in its time, or only later evidence shows it."""
        begin = self.first if from_ts is None else from_ts
        is_within = begin <= self.last and (to_ts or begin) >= self.first
        return is_within or (self.known is not None and finding_id not in self.known)

    @property
    def until(self) -> dt.date | None:
        """Return its last day; None if it is the last night: a client's clock may be ahead."""
        return self.last.date() if self.known is None else None

    @property
    def state(self) -> str:
        """Return a text that differs from that of each other night."""
        known = "" if self.known is None else " ".join(sorted(self.known))
        return f"{self.first} {self.last} {hashlib.sha256(known.encode()).hexdigest()[:16]}"


@dataclass(frozen=True)
class Part:
    """The last time of a recording that a run reported, from when to when, and when that run ended."""

    first: dt.datetime
    last: dt.datetime
    run: dt.datetime


@dataclass
class Reported:
    """What runs have reported of a cluster: parts of recordings, and ids of findings.

    ``known`` are those that the nights before the last one had, ``findings`` those of all nights, ``unsent`` those
    whose first message a channel has not taken.
    """

    parts: dict[str, Part] = field(default_factory=dict)
    known: frozenset[str] = frozenset()
    findings: frozenset[str] = frozenset()
    unsent: frozenset[str] = frozenset()

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> Reported:
        """Return what as_dict has stored. Raises KeyError, TypeError and ValueError."""
        parts = {name: Part(*map(dt.datetime.fromisoformat, part)) for name, part in stored["parts"].items()}
        return cls(parts, *(frozenset(stored[name]) for name in IDS))

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        parts = {
            name: [ts.isoformat() for ts in (part.first, part.last, part.run)] for name, part in self.parts.items()
        }
        return {"parts": parts, **{name: sorted(getattr(self, name)) for name in IDS}}

    def night(self, found: Sequence[Span], recordings: Collection[str] | None) -> Night | None:
        """Return the night of a run that has these ``recordings``; None: all. There is none without recorded time.

        It is what they have recorded since it was reported last. If that is nothing, it is the last of their nights
        again: a run that is repeated has the same answer.
        """
        times = {name: each for name, each in _times(found).items() if recordings is None or name in recordings}
        parts = {name: self._part(name, last) for name, (_, last) in times.items()}
        old = {name: part for name, part in parts.items() if part is not None and part.last == times[name][1]}
        new = {name: _time_after(parts[name], *times[name]) for name in times.keys() - old.keys()}
        run = max((part.run for part in old.values()), default=None)
        night = new or {name: (part.first, part.last) for name, part in old.items() if part.run == run}
        if not night:
            return None
        is_last = bool(new) or run == max(part.run for part in self.parts.values())
        known = (self.findings if new else self.known) if is_last else None
        first, last = min(first for first, _ in night.values()), max(last for _, last in night.values())
        return Night(first, last, frozenset(night), known, bool(new))

    def add(self, night: Night, found: Sequence[Span], findings: Iterable[str], now: dt.datetime) -> None:
        """Note that a run that ends at ``now`` has reported a night; ``findings``: the ids of all that it has read."""
        times = _times(found)
        kept = {name: part for name, (_, last) in times.items() if (part := self._part(name, last)) is not None}
        if night.is_new:
            self.known = self.findings
            kept |= {name: Part(night.first, times[name][1], now) for name in night.recordings}
        self.parts, self.findings = kept, frozenset(findings)

    def _part(self, name: str, last: dt.datetime) -> Part | None:
        """Return what was reported of a recording that ends at ``last``; it may have got another name since."""
        return self.parts.get(name) or next((part for part in self.parts.values() if part.last == last), None)


def _times(found: Iterable[Span]) -> dict[str, tuple[dt.datetime, dt.datetime]]:
    """Return from when to when each recording is, by the recorder's clock if it has such files."""
    by_name: dict[str, list[Span]] = {}
    for span in found:
        if span.first_ts is not None:
            by_name.setdefault(span.recording, []).append(span)
    times = {}
    for name, spans in by_name.items():
        own = [span for span in spans if span.kind in RECORDER_KINDS] or spans
        first, last = min(filter(None, (span.first_ts for span in own))), last_recorded(own)
        if last is not None:
            times[name] = first, last
    return times


def _time_after(part: Part | None, first: dt.datetime, last: dt.datetime) -> tuple[dt.datetime, dt.datetime]:
    """Return the time of a recording after a part of it; all, if it ends before: then it is another recording."""
    return (first if part is None or part.last > last else max(first, part.last)), last
