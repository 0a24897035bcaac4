"""Findings as messages need them, from the nightly run and from watch."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from mqreplay.evidence.intervals import utc
from mqreplay.findings.opened import OpenFinding
from mqreplay.findings.shape import PLACE
from mqreplay.words.severity import SEVERITIES

Place = tuple[Any, ...]


@dataclass(frozen=True)
class Known:
    """What identifies a finding, and its state: ``place`` has the values of PLACE, ``to_ts`` its last evidence."""

    finding_id: str
    kind: str
    severity: str
    place: Place
    from_ts: dt.datetime
    to_ts: dt.datetime | None
    is_open: bool

    @property
    def rank(self) -> int:
        """Return the place of its severity, 0 for info."""
        return SEVERITIES.index(self.severity)


@dataclass(frozen=True)
class Alert(Known):
    """A finding, as its message has it. ``cause`` is the id of another one.

    ``is_withdrawn``: it is no longer found, so that only its kind and place are known.
    """

    summary: str
    advice: str
    cause: str | None = None
    values: str | None = None
    is_withdrawn: bool = False

    @property
    def row(self) -> dict[str, Any]:
        """Return it as the row that it was made of: what its sentences need."""
        fields = {"kind": self.kind, "summary": self.summary, "advice": self.advice, "values": self.values}
        return {**dict(zip(PLACE, self.place, strict=True)), **fields, "finding_id": self.finding_id}

    @property
    def names(self) -> dict[str, Any]:
        """Return the values of its place that are known, by their columns."""
        return {name: value for name, value in zip(PLACE, self.place, strict=True) if value is not None}


def of_night(
    findings: Iterable[Mapping[str, Any]], recorded_until: dt.datetime | None, limits: Mapping[str, int]
) -> list[Alert]:
    """Return the alerts of rows of gold.finding, as Outcome.findings has them: instants are text.

    A finding is open if its last evidence is not older, at the end of the recording, than its kind's limit in seconds.
    """
    found = []
    for row in findings:
        begin, end = instant(row["from_ts"]), instant(row["to_ts"])
        assert begin is not None
        limit = dt.timedelta(seconds=limits.get(row["kind"], 0))
        is_open = end is None or (recorded_until is not None and recorded_until - end <= limit)
        cause = row.get("follows_from")
        found.append(
            Alert(
                str(row["finding_id"]),
                str(row["kind"]),
                str(row["severity"]),
                tuple(row[name] for name in PLACE),
                begin,
                end,
                is_open,
                str(row["summary"]),
                str(row["advice"]),
                None if cause is None else str(cause),
                row.get("values"),
            )
        )
    return found


def of_watch(findings: Iterable[OpenFinding]) -> list[Alert]:
    """Return the alerts of what watch knows."""
    return [
        Alert(
            one.finding_id,
            one.kind,
            one.severity,
            one.place,
            one.opened_ts,
            one.last_seen_ts,
            one.is_open,
            one.summary,
            one.advice,
            values=one.values,
        )
        for one in findings
    ]


def instant(value: object) -> dt.datetime | None:
    """Return an instant of a row, which may be text in UTC, with its zone."""
    if value is None:
        return None
    return utc(value if isinstance(value, dt.datetime) else dt.datetime.fromisoformat(str(value)))
