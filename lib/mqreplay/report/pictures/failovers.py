"""The steps of each failover on a time axis of its own, with the times that RocketMQ's intervals allow."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any

from mqreplay.report.data import Row
from mqreplay.report.failover_words import STEP_TEXTS, step_words
from mqreplay.report.pictures.drawing import TEXTS, Drawing, Picture, at, drawn
from mqreplay.report.pictures.night import NightSpan, PictureData
from mqreplay.report.pictures.scales import LEFT, TimeScale
from mqreplay.report.text import lasting

ABOUT = TEXTS["failovers"]
LANE, BAR = 19, 11
MARGIN_SHARE = 0.05  # of the time axis, before the first step and after the last one
CSS = {"agree": "p-on-time", "differ": "p-late", "undetermined": "p-not-judged", None: "p-broker"}
Failover = tuple[dt.datetime, str, int]


def draw_failovers(view: PictureData) -> Picture:
    """Draw a panel for each failover: those with late steps first, then the longest."""
    rows = view.rows("gold.failover_step", "ts").sort("ts", "step_id").collect().to_dicts()
    panels: dict[Failover, list[Row]] = {}
    for row in rows:
        panels.setdefault((row["outage_ts"], row["broker_name"], row["broker_id"]), []).append(row)
    chosen = sorted(sorted(panels, key=lambda each: _rank(each, panels[each]))[: ABOUT.most])

    def panel(drawing: Drawing, failover: Failover) -> None:
        _panel(drawing, failover, panels[failover], _findings(view, failover, panels[failover]))

    return drawn(view, "failovers", chosen, panel, len(panels) - len(chosen))


def _rank(failover: Failover, rows: Sequence[Mapping[str, Any]]) -> tuple[bool, int, dt.datetime, str]:
    late = any(row["judgement"] == "differ" for row in rows)
    return not late, -len(rows), failover[0], failover[1]


def _findings(view: PictureData, failover: Failover, rows: Sequence[Row]) -> list[Row]:
    begin, end = failover[0], max(row["ts"] for row in rows)
    found = view.findings_of(ABOUT.kinds, broker_name=failover[1], broker_id=failover[2])
    return [each for each in found if each["from_ts"] is not None and begin <= each["from_ts"] <= end]


def _panel(drawing: Drawing, failover: Failover, rows: list[Row], findings: list[Row]) -> None:
    _, name, broker_id = failover
    night = drawing.times
    # The stop may be in the night before.
    stops = [min(row["before_ts"] or row["ts"], row["ts"]) for row in rows if row["step"] == "stopped_answering"]
    first = min([failover[0], *stops])
    last = max(row["ts"] for row in rows)
    margin = (last - first) * MARGIN_SHARE + dt.timedelta(seconds=1)
    drawing.times = TimeScale(NightSpan(first - margin, last + margin))
    role = drawing.words.filled("master" if broker_id == 0 else "slave, id {broker_id}", broker_id=broker_id)
    drawing.y += 6
    drawing.place("broker", name, 8, drawing.y + 11, "p-t p-strong", LEFT - 20)
    drawing.text(LEFT, drawing.y + 11, role, "p-t p-dim", 200)
    drawing.y += 18
    drawing.finding_strip(findings)
    top = drawing.y
    for step in STEP_TEXTS:
        of_step = [row for row in rows if row["step"] == step]
        if of_step:
            _lane(drawing, step, of_step)
    drawing.time_axis(top)
    drawing.rule()
    drawing.times = night


def _lane(drawing: Drawing, step: str, rows: list[Row]) -> None:
    y = drawing.y + 3
    filled = drawing.words.filled
    drawing.text(8, y + 10, filled(step.replace("_", " ")), "p-t p-small", LEFT - 20)
    dues = [(row["expected_from"], row["expected_to"]) for row in rows if row["expected_to"] is not None]
    if dues:
        begin, end = min(each[0] for each in dues), max(each[1] for each in dues)
        x, right = drawing.times.x(begin), drawing.times.x(end)
        lasted = lasting(begin, end, drawing.words)
        words = filled("allowed from {begin} to {end}, {lasted}", begin=at(begin), end=at(end), lasted=lasted)
        drawing.rect(x, y, max(right - x, 2), BAR, "p-allowed", words)
    # Marks of clients at one place are one mark.
    places: dict[tuple[float, str], list[Row]] = {}
    for row in rows:
        css = CSS[row["judgement"]]
        if row["happened"] or row["judgement"] == "differ":
            places.setdefault((drawing.times.x(row["ts"]), css), []).append(row)
    for (x, css), here in places.items():
        text = step_words(step, len(here), drawing.words, happened=here[0]["happened"])
        reason = drawing.words.text(here[0]["reason"])
        words = filled("{time}: {step}; {reason}", time=at(here[0]["ts"]), step=text, reason=reason)
        drawing.rect(x - 3, y, 6, BAR, css, words)
    drawing.y += LANE
