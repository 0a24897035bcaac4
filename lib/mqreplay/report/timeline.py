"""Findings over the night, as bars of an inline SVG: one lane a finding, worst on top."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

WIDTH = 1000.0  # units of the drawing; the page scales it
LANE = 22.0
TICKS = 6


@dataclass(frozen=True)
class Bar:
    """A finding's place in the drawing."""

    x: float
    y: float
    width: float
    severity: str
    label: str
    finding_id: str


@dataclass(frozen=True)
class Timeline:
    """The drawing: bars, and ticks as (x, text)."""

    height: float
    bars: list[Bar]
    ticks: list[tuple[float, str]]


def timeline(findings: list[dict[str, object]], first: object, last: object) -> Timeline | None:
    """Places findings between the first and last instant of the recording; None where there is nothing to place."""
    if not isinstance(first, dt.datetime) or not isinstance(last, dt.datetime) or not findings:
        return None
    span = max((last - first).total_seconds(), 1.0)

    def at(instant: object) -> float:
        assert isinstance(instant, dt.datetime)
        return min(max((instant - first).total_seconds() / span, 0.0), 1.0) * WIDTH

    bars = []
    for lane, finding in enumerate(findings):
        begin = at(finding["from_ts"] or first)
        end = at(finding["to_ts"] or last)
        bars.append(
            Bar(
                round(begin, 1),
                lane * LANE,
                round(max(end - begin, 4.0), 1),
                str(finding["severity"]),
                str(finding["kind"]),
                str(finding["finding_id"]),
            )
        )
    form = "%H:%M:%S" if span < 6 * 3600 else "%d %H:%M"
    ticks = [
        (round(i * WIDTH / TICKS, 1), (first + dt.timedelta(seconds=span * i / TICKS)).strftime(form))
        for i in range(TICKS + 1)
    ]
    return Timeline(len(bars) * LANE, bars, ticks)
