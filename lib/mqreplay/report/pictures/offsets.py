"""Committed offsets of queues over the night, with rewinds, jumps and other breaks marked."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field

import polars as pl

from mqreplay.report.data import Row
from mqreplay.report.pictures.drawing import TEXTS, Drawing, Picture, at, drawn
from mqreplay.report.pictures.night import PictureData
from mqreplay.report.pictures.scales import LEFT, ValueScale, path_through, short
from mqreplay.report.text import number
from mqreplay.words.keys import GROUP_QUEUE

ABOUT = TEXTS["offsets"]
MOST_OF_A_TOPIC = 2  # queues of one group and topic with the same kinds of breaks
MOST_BREAKS = 12  # marks in one panel
SLOTS = 240
HEIGHT = 62
Queue = tuple[str, str, str, int]
DOWN, UP, ROUND = "M-6 -5H6L0 6Z", "M0 -6L6 5H-6Z", "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0 -10 0Z"


@dataclass
class _Curve:
    queue: Queue
    points: list[tuple[dt.datetime, int]] = field(default_factory=list)
    ends: list[tuple[dt.datetime, int]] = field(default_factory=list)
    breaks: list[Row] = field(default_factory=list)


def draw_offsets(view: PictureData) -> Picture:
    """Draw a panel for each queue: those with breaks first, then those without progress, then the busiest."""
    breaks = view.rows("gold.offset_continuity", "to_ts").sort("from_ts", *GROUP_QUEUE, "broker_id", "kind").collect()
    chosen, broken = _chosen(view, breaks)
    curves = _curves(view, chosen, breaks)
    left_out = broken - sum(bool(curve.breaks) for curve in curves)
    return drawn(view, "offsets", curves, lambda drawing, curve: _panel(drawing, view, curve), left_out)


def _chosen(view: PictureData, breaks: pl.DataFrame) -> tuple[list[Queue], int]:
    """Return the queues to draw, and how many have breaks. Queues that share a fate are drawn twice at most."""
    kinds: dict[Queue, dict[str, None]] = {}
    for row in breaks.sort(pl.col("broker_id") != 0, "from_ts", *GROUP_QUEUE, maintain_order=True).iter_rows(
        named=True
    ):
        kinds.setdefault(_queue(row), {})[row["kind"]] = None
    marked = {group: i for i, group in enumerate(f["consumer_group"] for f in reversed(view.findings_of(ABOUT.kinds)))}
    by_worst = sorted(kinds, key=lambda q: (-len(kinds[q]), -marked.get(q[0], -1), q))
    drawn: dict[tuple[str, ...], int] = {}
    chosen: dict[Queue, None] = {}
    for queue in by_worst:
        fate = (*queue[:2], *sorted(kinds[queue]))
        drawn[fate] = drawn.get(fate, 0) + 1
        if drawn[fate] <= MOST_OF_A_TOPIC:
            chosen[queue] = None
    stuck = [f for f in view.findings_of(ABOUT.kinds) if f["consumer_group"] and f["topic"]]
    busy = (
        view.rows("silver.offset_change", "to_ts")
        .filter(~pl.col("topic").str.starts_with("%"), pl.col("client_id").is_null())
        .group_by(GROUP_QUEUE)
        .agg(pl.len())
        .sort(-pl.col("len").cast(pl.Int64), *GROUP_QUEUE)
        .head(2_000)
        .collect()
    )
    others = [_queue(row) for row in busy.iter_rows(named=True)]
    for finding in stuck[: ABOUT.most]:
        chosen |= dict.fromkeys([q for q in others if _concerns(finding, q)][:1])
    chosen |= dict.fromkeys(others[:2])
    return list(chosen)[: ABOUT.most], len(kinds)


def _queue(row: Row) -> Queue:
    return (row["consumer_group"], row["topic"], row["broker_name"], row["queue_id"])


def _concerns(finding: Row, queue: Queue) -> bool:
    place = zip(GROUP_QUEUE, queue, strict=True)
    return finding["consumer_group"] is not None and all(finding[k] is None or finding[k] == v for k, v in place)


def _curves(view: PictureData, chosen: list[Queue], breaks: pl.DataFrame) -> list[_Curve]:
    if not chosen:
        return []
    curves = {queue: _Curve(queue) for queue in chosen}
    wanted = pl.LazyFrame(
        chosen, schema=dict(zip(GROUP_QUEUE, (pl.String, pl.String, pl.String, pl.Int32), strict=True)), orient="row"
    )
    changes = (
        view.rows("silver.offset_change", "to_ts")
        .join(wanted, on=GROUP_QUEUE, how="semi")
        .filter(pl.col("client_id").is_null(), pl.col("new_offset").is_not_null())
    )
    # The master's copies; a slave's only where the master's are missing.
    of_best = changes.filter(pl.col("broker_id") == pl.col("broker_id").min().over(GROUP_QUEUE))
    # The last change of a slot, and its least and greatest: a short excursion stays visible.
    slot = view.bucket("to_ts", SLOTS)
    change, greatest = pl.col("to_ts", "new_offset"), of_best.sort("new_offset", "to_ts")
    picked = ((of_best.sort("to_ts"), change.last()), (greatest, change.first()), (greatest, change.last()))
    ends = pl.concat(rows.group_by(*GROUP_QUEUE, slot=slot).agg(one) for rows, one in picked)
    for *queue, _, ts, offset in ends.unique().sort(*GROUP_QUEUE, "to_ts").collect().iter_rows():
        curves[tuple(queue)].points.append((ts, offset))
    if (states := view.states) is not None:
        for curve in curves.values():
            of_queue = states.ends.filter(**dict(zip(GROUP_QUEUE[1:], curve.queue[1:], strict=True))).sort("slot")
            curve.ends += [(states.slot_start(slot), end) for slot, end in of_queue.select("slot", "offset").rows()]
    of_copy = breaks.filter(pl.col("broker_id") == pl.col("broker_id").min().over(GROUP_QUEUE))
    for row in of_copy.iter_rows(named=True):
        if _queue(row) in curves:
            curves[_queue(row)].breaks.append(row)
    return [curve for curve in curves.values() if curve.points]


def _panel(drawing: Drawing, view: PictureData, curve: _Curve) -> None:
    group, topic, broker, queue_id = curve.queue
    findings = [f for f in view.findings_of(ABOUT.kinds) if _concerns(f, curve.queue)]
    drawing.y += 5
    drawing.finding_strip(findings)
    top = drawing.y + 6
    low, high = _range(curve)
    scale = ValueScale(low, high, top, HEIGHT)
    drawing.place("group", group, 8, top + 10, "p-t p-strong", LEFT - 60)
    drawing.place("topic", topic, 8, top + 26, "p-t p-small p-dim", LEFT - 60)
    filled = drawing.words.filled
    queue = filled("{broker} queue {queue_id}", broker=broker, queue_id=queue_id)
    drawing.text(8, top + 42, queue, "p-t p-small p-dim", LEFT - 60)
    drawing.scale(top, HEIGHT, short(low), short(high))
    places = [(drawing.times.x(ts), scale.y(end)) for ts, end in curve.ends]
    drawing.path(path_through(list(places)), "p-end")
    steps: list[str] = []
    for ts, offset in curve.points:
        x, y = drawing.times.x(ts), scale.y(offset)
        steps.append(f"H{x:g}V{y:g}" if steps else f"M{x:g} {y:g}")
    first, last = curve.points[0][1], curve.points[-1][1]
    text = "{group} on {topic}, {queue}: from {first} to {last}"
    words = filled(text, group=group, topic=topic, queue=queue, first=number(first), last=number(last))
    drawing.path("".join(steps) + f"H{drawing.times.x(view.night.last):g}", "p-line", words)
    for row in curve.breaks[:MOST_BREAKS]:
        _mark(drawing, row, scale, findings)
    drawing.y = top + HEIGHT + 8


def _range(curve: _Curve) -> tuple[int, int]:
    """Return the offsets at the bottom and the top. An offset far past the end of its queue is cut off."""
    offsets = [offset for _, offset in curve.points]
    low, high = min(offsets), max([*offsets, *(end for _, end in curve.ends)])
    if curve.ends:
        end = max(end for _, end in curve.ends)
        high = min(high, max(end + (end - min(low, end)) // 8, low + 1))
    return (low, max(high, low + 1))


def _mark(drawing: Drawing, row: Row, scale: ValueScale, findings: list[Row]) -> None:
    before, after = row["previous_offset"], row["new_offset"]
    shape = ROUND if before is None or after is None else DOWN if after < before else UP
    words = drawing.words.filled(
        "{kind}: {before} → {after}, between {begin} and {end}, cause: {cause}",
        kind=row["kind"],
        before=number(before),
        after=number(after),
        begin=at(row["from_ts"]),
        end=at(row["to_ts"]),
        cause=row["cause"],
    )
    value = next((offset for offset in (after, before) if offset is not None), int(scale.low))
    x, y = drawing.times.x(row["to_ts"]), scale.y(value)
    finding = next((f for f in findings if _at_the_time(f, row)), None)
    mark = '<path class="p-break" transform="translate({x} {y})" d="{d}"><title>{words}</title></path>'
    if finding is not None:
        drawing.open_link(finding, words)
    drawing.add(mark, x=x, y=y, d=shape, words=words)
    if value > scale.high:
        drawing.text(x + 9, y + 10, f"↑ {number(value)}", "p-t p-small")
    if finding is not None:
        drawing.close_link()


def _at_the_time(finding: Row, row: Row) -> bool:
    begin, end = finding["from_ts"], finding["to_ts"]
    return (begin is None or begin <= row["to_ts"]) and (end is None or end >= row["from_ts"])
