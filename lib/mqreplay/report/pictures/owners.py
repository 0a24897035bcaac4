"""Who held which queue, as a Gantt chart: gaps in which nobody did and overlaps in which several clients did."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass, field

import polars as pl
from markupsafe import Markup

from mqreplay.report.data import Row
from mqreplay.report.pictures.drawing import TEXTS, Drawing, Picture, at, drawn
from mqreplay.report.pictures.night import PictureData
from mqreplay.report.pictures.scales import LEFT
from mqreplay.report.pictures.spans import Pair, Queue, Span, orphaned_pairs, seconds, unowned_spans
from mqreplay.report.text import lasting

ABOUT = TEXTS["owners"]
MOST_QUEUES = 8  # of one group and topic
MOST_BARS = 60  # of one queue
BAR = 13
MOST_COLOURS = 7  # of clients, in pictures.css
BAD = dt.timedelta(seconds=1)  # shorter gaps and overlaps are ordinary moments of a rebalance


@dataclass
class _Lane:
    name: str
    bars: list[tuple[str, dt.datetime, dt.datetime]] = field(default_factory=list)
    gaps: list[Span] = field(default_factory=list)
    overlaps: list[Span] = field(default_factory=list)

    @property
    def bad_s(self) -> float:
        """Return the seconds in which the queue did not have exactly one owner."""
        return seconds(self.gaps) + seconds(self.overlaps)


def draw_owners(view: PictureData) -> Picture:
    """Draw a panel for each group and topic, those with findings first, and a row for each of its queues."""
    chosen, total = chosen_pairs(view, orphaned_pairs(view))
    spans = _spans(view, chosen) if chosen else {}
    return drawn(
        view, "owners", chosen, lambda drawing, pair: _panel(drawing, view, pair, spans[pair]), total - len(chosen)
    )


def chosen_pairs(view: PictureData, without_owner: Iterable[Pair] = ()) -> tuple[list[Pair], int]:
    """Return the groups and topics to draw, those with findings first, and how many there are.

    ``without_owner``: further ones, whose queues need not have had an owner.
    """
    owners = view.spans("gold.queue_owner").filter(~pl.col("topic").str.starts_with("%"))
    spans = (
        owners.group_by("consumer_group", "topic")
        .agg(pl.len())
        .sort(-pl.col("len").cast(pl.Int64), "consumer_group", "topic")
    )
    known: dict[Pair, None] = {(group, topic): None for group, topic, _ in spans.collect().iter_rows()}
    known |= dict.fromkeys(without_owner)
    by_group: dict[str, list[Pair]] = {}
    for pair in known:
        by_group.setdefault(pair[0], []).append(pair)
    first: dict[Pair, None] = {}
    for finding in sorted(view.findings_of(ABOUT.kinds), key=lambda f: ABOUT.kinds.index(f["kind"])):
        for pair in by_group.get(finding["consumer_group"] or "", []):
            if finding["topic"] in (None, pair[1]):
                first[pair] = None
    return list({**first, **known})[: ABOUT.most], len(known)


def _spans(view: PictureData, chosen: list[Pair]) -> dict[Pair, list[Row]]:
    pairs = pl.LazyFrame(chosen, schema=["consumer_group", "topic"], orient="row")
    owners = (
        view.spans("gold.queue_owner")
        .join(pairs, on=["consumer_group", "topic"], how="semi")
        .sort("broker_name", "queue_id", "from_ts", "client_id")
        .collect()
    )
    found: dict[Pair, list[Row]] = {pair: [] for pair in chosen}
    for row in owners.iter_rows(named=True):
        found[row["consumer_group"], row["topic"]].append(row)
    return found


def _lanes(view: PictureData, pair: Pair, rows: list[Row]) -> list[_Lane]:
    """Return the queues that were held, and those that should have been, in order."""
    lanes = _held_lanes(view, pair, rows)
    for queue, free in unowned_spans(view, pair, lanes).items():
        lanes[queue] = _Lane(_lane_name(*queue), gaps=free)
    return [lane for _, lane in sorted(lanes.items())]


def _lane_name(broker: str, queue: int) -> str:
    return f"{broker} / {queue}"


def _held_lanes(view: PictureData, pair: Pair, rows: list[Row]) -> dict[Queue, _Lane]:
    lanes: dict[Queue, _Lane] = {}
    for row in rows:
        queue = (row["broker_name"], row["queue_id"])
        lane = lanes.setdefault(queue, _Lane(_lane_name(*queue)))
        lane.bars.append((row["client_id"], row["from_ts"], row["to_ts"]))
    if view.states and not view.states.disputes.is_empty():
        of_pair = view.states.disputes.filter(consumer_group=pair[0], topic=pair[1]).sort("from_ts")
        for row in of_pair.filter(pl.col("to_ts") - pl.col("from_ts") >= BAD).iter_rows(named=True):
            lane = lanes[row["broker_name"], row["queue_id"]]
            spans = lane.overlaps if row["owners"] else lane.gaps
            spans.append((row["from_ts"], row["to_ts"]))
    return lanes


def _panel(drawing: Drawing, view: PictureData, pair: Pair, rows: list[Row]) -> int:
    """Draw the queues of a group and topic; return how many were left out."""
    lanes = _lanes(view, pair, rows)
    shown = sorted(lanes, key=lambda lane: -lane.bad_s)[:MOST_QUEUES]
    kept = {id(lane) for lane in shown}
    findings = [f for f in view.findings_of(ABOUT.kinds, consumer_group=pair[0], topic=pair[1]) if f["consumer_group"]]
    letters = client_letters(row["client_id"] for row in rows)
    drawing.y += 6
    drawing.pair(pair[0], pair[1], drawing.y + 11, LEFT + 150)
    drawing.y += 18
    drawing.finding_strip(findings)
    for lane in lanes:
        if id(lane) in kept:
            _draw_lane(drawing, lane, letters)
    drawing.y += 4
    drawing.parts.append(Markup('<g class="p-legend">'))
    _name_clients(drawing, letters)
    drawing.parts.append(Markup("</g>"))
    drawing.rule()
    return len(lanes) - len(shown)


def _draw_lane(drawing: Drawing, lane: _Lane, letters: dict[str, int]) -> None:
    y, filled = drawing.y + 2, drawing.words.filled

    def span(begin: dt.datetime, end: dt.datetime) -> str:
        lasted = lasting(begin, end, drawing.words)
        return filled("{begin} – {end}, {lasted}", begin=at(begin), end=at(end), lasted=lasted)

    drawing.text(24, y + 11, lane.name, "p-t p-small p-dim", LEFT - 30)
    for client, begin, end in lane.bars[:MOST_BARS]:
        x = drawing.times.x(begin)
        width = max(drawing.times.x(end) - x, 1.5)
        words = f"{lane.name}: {client}, {span(begin, end)}"
        drawing.rect(x, y, width, BAR, f"p-bar {client_css(letters[client])}", words)
        if width > 14:
            drawing.text(x + 4, y + 10.5, chr(ord("A") + letters[client] % 26), "p-t p-letter")
    for begin, end in lane.gaps:
        x = drawing.times.x(begin)
        width = max(drawing.times.x(end) - x, 2)
        words = filled("{queue}: nobody, {span}", queue=lane.name, span=span(begin, end))
        drawing.rect(x, y, width, BAR, "p-down", words)
        drawing.hatch(x, y, width, BAR, "p-hatch")
    for begin, end in lane.overlaps:
        x = drawing.times.x(begin)
        clients = ", ".join(sorted({c for c, a, b in lane.bars if a < end and b > begin}))
        text = "{queue}: held at once by {clients}, {span}"
        words = filled(text, queue=lane.name, clients=clients, span=span(begin, end))
        drawing.rect(x, y + BAR + 1, max(drawing.times.x(end) - x, 2), 4, "p-double", words)
    drawing.y = y + BAR + (6 if lane.overlaps else 1)


def _name_clients(drawing: Drawing, letters: dict[str, int]) -> None:
    shown = list(letters.items())[:MOST_COLOURS]
    for i, (client, letter) in enumerate(shown):
        x, y = LEFT + (i % 3) * 250, drawing.y + (i // 3) * 16
        drawing.rect(x, y + 1, 14, 11, f"p-bar {client_css(letter)}")
        drawing.text(x + 3.5, y + 10.5, chr(ord("A") + letter), "p-t p-letter")
        drawing.text(x + 20, y + 11, client, "p-t p-small p-dim", 220)
    drawing.y += (len(shown) + 2) // 3 * 16 + 4
    if len(letters) > len(shown):
        more = drawing.words.counted(len(letters) - len(shown), "more client shares", "more clients share")
        text = drawing.words.filled("{clients} these colours.", clients=more)
        drawing.text(LEFT, drawing.y + 8, text, "p-t p-small p-dim")
        drawing.y += 16


def client_letters(clients: Iterable[str]) -> dict[str, int]:
    """Return a number for each client, in the order of their first mention.

    >>> client_letters(["b", "a", "b"])
    {'b': 0, 'a': 1}
    """
    return {client: i for i, client in enumerate(dict.fromkeys(clients))}


def client_css(number: int) -> str:
    """Return the class of the client's colour in pictures.css."""
    return f"p-c{number % MOST_COLOURS}"
