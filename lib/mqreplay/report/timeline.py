"""Findings over the night: lanes for each kind, worst on top, and in them a bar for each finding.

Bars that overlap lie in lanes of their own: none hides another.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

from mqreplay.report.data import Row
from mqreplay.report.text import span

WIDTH = 1000.0  # units across; the page stretches it
LEAST = 5.0  # a bar that can still be seen and clicked
MOST_TICKS = 7
STEPS_S = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400)


@dataclass(frozen=True)
class Bar:
    """A finding's place in its lane, in units of WIDTH."""

    x: float
    width: float
    severity: str
    label: str
    finding_id: str


@dataclass(frozen=True)
class Tick:
    """An instant on the axis; ``x`` in units of WIDTH."""

    x: float
    label: str


@dataclass(frozen=True)
class Timeline:
    """Lanes by kind of finding, and the axis below them."""

    lanes: dict[str, list[list[Bar]]]
    ticks: list[Tick]


def timeline(findings: list[Row], first: dt.datetime | None, last: dt.datetime | None) -> Timeline | None:
    """Places findings, given worst first, within the recording; None where there is nothing to place."""
    if first is None or last is None or not findings:
        return None
    seconds = max((last - first).total_seconds(), 1.0)

    def at(moment: dt.datetime) -> float:
        return min(max((moment - first).total_seconds() / seconds, 0.0), 1.0) * WIDTH

    kinds: dict[str, list[Bar]] = {}
    for finding in findings:
        begin, end = at(finding["from_ts"] or first), at(finding["to_ts"] or last)
        width = max(end - begin, LEAST)
        label = f"{finding['severity']}: {finding['summary']} {span(finding['from_ts'], finding['to_ts'])} UTC"
        bar = Bar(min(begin, WIDTH - width), width, finding["severity"], label, finding["finding_id"])
        kinds.setdefault(finding["kind"], []).append(bar)
    return Timeline({kind: _apart(bars) for kind, bars in kinds.items()}, ticks(first, seconds))


def _apart(bars: list[Bar]) -> list[list[Bar]]:
    lanes: list[list[Bar]] = []
    for bar in sorted(bars, key=lambda b: (b.x, b.finding_id)):
        free = next((lane for lane in lanes if lane[-1].x + lane[-1].width <= bar.x), None)
        if free is None:
            lanes.append([bar])
        else:
            free.append(bar)
    return lanes


def ticks(first: dt.datetime, seconds: float) -> list[Tick]:
    """Round instants of the day, at most MOST_TICKS of them.

    >>> [t.label for t in ticks(dt.datetime(2026, 11, 21, 2, 39, 52), 1110)]
    ['02:40', '02:45', '02:50', '02:55']
    """
    longest = STEPS_S[-1]
    step = next((s for s in STEPS_S if seconds / s <= MOST_TICKS), longest * -int(-seconds // (MOST_TICKS * longest)))
    midnight = first.replace(hour=0, minute=0, second=0, microsecond=0)
    since_midnight = (first - midnight).total_seconds()
    form = "%m-%d" if step >= longest else "%H:%M" if step >= 60 else "%H:%M:%S"
    found = []
    second = -int(-since_midnight // step) * step
    while second <= since_midnight + seconds:
        label = (midnight + dt.timedelta(seconds=second)).strftime(form)
        found.append(Tick(round((second - since_midnight) / seconds * WIDTH, 1), label))
        second += step
    return found
