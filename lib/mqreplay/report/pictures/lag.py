"""Lag of consumer groups over the night: messages between the end of the queues and what the group committed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from mqreplay.report.pictures.drawing import TEXTS, Drawing, Picture, at, drawn
from mqreplay.report.pictures.night import PictureData
from mqreplay.report.pictures.scales import LEFT, ValueScale, path_through, round_up, short
from mqreplay.words.keys import GROUP_TOPIC

if TYPE_CHECKING:
    from mqreplay.moment.night_states import NightStates

END_HOLDS_MS = 60_000  # the end of a queue is not known for longer after it was last stated
HEIGHT = 46


def draw_lag(view: PictureData) -> Picture:
    """Draw a panel for each group and topic: those with findings first, then those with the greatest lag."""
    chosen, total = _chosen(view)
    lags = {pair: _lags(view.states, pair) for pair in chosen} if view.states else {}
    shown = [pair for pair in chosen if any(v is not None for v in lags.get(pair, []))]
    return drawn(view, "lag", shown, lambda drawing, pair: _panel(drawing, view, pair, lags[pair]), total - len(shown))


def _panel(drawing: Drawing, view: PictureData, pair: tuple[str, str], lags: list[int | None]) -> None:
    filled, states = drawing.words.filled, view.states
    assert states is not None
    findings = [f for f in view.findings_of(consumer_group=pair[0], topic=pair[1]) if f["consumer_group"] is not None]
    drawing.y += 5
    drawing.finding_strip(findings)
    top = drawing.y + 2
    most = max(v for v in lags if v is not None)
    scale = ValueScale(0, round_up(most), top, HEIGHT)
    peak = states.slot_start(lags.index(most))
    drawing.place("group", pair[0], 8, top + 10, "p-t p-strong", LEFT - 50)
    drawing.place("topic", pair[1], 8, top + 25, "p-t p-small p-dim", LEFT - 50)
    drawing.text(8, top + 40, filled("{lag} at {time}", lag=short(most), time=at(peak)), "p-t p-small", LEFT - 50)
    drawing.scale(top, HEIGHT, 0, short(scale.high))
    x = [drawing.times.x(states.slot_start(slot)) for slot in range(len(lags))]
    points = [None if lag is None else (x[slot], scale.y(lag)) for slot, lag in enumerate(lags)]
    for run in _runs(points):
        area = f"{path_through(list(run))}V{top + HEIGHT:g}H{run[0][0]:g}Z"
        drawing.path(area, "p-area")
    text = "{group} on {topic}: at most {lag} messages at {time}"
    words = filled(text, group=pair[0], topic=pair[1], lag=f"{most:,.0f}", time=at(peak))
    drawing.path(path_through(points), "p-line", words)
    drawing.y = top + HEIGHT + 6


def _runs(points: list[tuple[float, float] | None]) -> list[list[tuple[float, float]]]:
    runs: list[list[tuple[float, float]]] = [[]]
    for point in points:
        if point is None:
            runs.append([])
        else:
            runs[-1].append(point)
    return [run for run in runs if len(run) > 1]


def _chosen(view: PictureData) -> tuple[list[tuple[str, str]], int]:
    """Return the groups and topics to draw, the worst first, and how many there are."""
    worst = (
        view.spans("gold.group_status")
        .group_by(GROUP_TOPIC)
        .agg(pl.col("lag").max())
        .filter(~pl.col("topic").str.starts_with("%"))
        .sort(-pl.col("lag").fill_null(-1), *GROUP_TOPIC)
        .collect()
    )
    known = {(g, t): None for g, t, _ in worst.iter_rows()}
    of_group: dict[str, list[tuple[str, str]]] = {}
    for pair in known:
        of_group.setdefault(pair[0], []).append(pair)
    first: dict[tuple[str, str], None] = {}
    for finding in view.findings:
        for pair in of_group.get(finding["consumer_group"] or "", []):
            if finding["severity"] != "info" and finding["topic"] in (None, pair[1]):
                first[pair] = None
    return list({**first, **known})[: TEXTS["lag"].most], len(known)


def _lags(states: NightStates, pair: tuple[str, str]) -> list[int | None]:
    """Return the lag at each slot; None where it is not known, or where no end was stated lately."""
    group, topic = pair
    lags = states.groups[group].lag.get(topic, []) if group in states.groups else []
    held = max(END_HOLDS_MS // states.slot, 1)
    stated = states.ends.filter(pl.col("topic") == topic).group_by("broker_name", "queue_id").agg("slot")["slot"]
    for slots in stated:
        known = {slot + more for slot in slots for more in range(held + 1)}
        since = min(known)
        lags = [lag if slot in known or slot < since else None for slot, lag in enumerate(lags)]
    return lags
