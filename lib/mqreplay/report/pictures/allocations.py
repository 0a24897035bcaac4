"""Queues of each client before and after each rebalance."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field
from itertools import pairwise

import polars as pl

from mqreplay.report.data import Row
from mqreplay.report.pictures.drawing import TEXTS, Drawing, Picture, at, drawn
from mqreplay.report.pictures.night import PictureData
from mqreplay.report.pictures.scales import LEFT, PLOT

KINDS, MOST = TEXTS["owners"].kinds, TEXTS["allocation"].most
MOST_CLIENTS = 6
MOST_COLUMNS = 7
MOST_BOXES = 8  # of one cell; more are a number
SETTLES = dt.timedelta(seconds=25)  # clients rebalance every 20 s: changes closer than this are one rebalance
ROW, BOX = 17, 9
Pair = tuple[str, str]
Queues = frozenset[str]


@dataclass
class _Column:
    ts: dt.datetime
    last_ts: dt.datetime
    held: dict[str, Queues] = field(default_factory=dict)
    differ: set[str] = field(default_factory=set)


def draw_allocations(view: PictureData) -> Picture:
    """Draw a panel for each group and topic: those with findings first, then those with the most changes."""
    changes = _changes(view)
    findings = view.findings_of(KINDS)
    chosen, total = _chosen(changes, findings)

    def panel(drawing: Drawing, pair: Pair) -> int:
        rows = changes.filter(pl.col("consumer_group") == pair[0], pl.col("topic") == pair[1])
        return _panel(drawing, pair, _columns(rows.to_dicts()), [f for f in findings if _concerns(f, pair)])

    return drawn(view, "allocation", chosen, panel, total - len(chosen))


def _chosen(changes: pl.DataFrame, findings: list[Row]) -> tuple[list[Pair], int]:
    """Return the groups and topics to draw, and how many there are."""
    counts = changes.group_by("consumer_group", "topic").agg(pl.len()).rows()
    rank: dict[str, list[Row]] = {}
    for finding in findings:
        rank.setdefault(finding["consumer_group"] or "", []).append(finding)

    def order(row: tuple[str, str, int]) -> tuple[int, int, str, str]:
        kinds = [KINDS.index(f["kind"]) for f in rank.get(row[0], []) if _concerns(f, (row[0], row[1]))]
        return (min(kinds, default=len(KINDS)), -row[2], row[0], row[1])

    return [(group, topic) for group, topic, _ in sorted(counts, key=order)[:MOST]], len(counts)


def _concerns(finding: Row, pair: Pair) -> bool:
    return finding["consumer_group"] == pair[0] and finding["topic"] in (None, pair[1])


def _changes(view: PictureData) -> pl.DataFrame:
    """Return the rebalances that changed what a client held, or who else was there."""
    member = ["consumer_group", "topic", "client_id"]
    queues = pl.col("actual").list.eval(
        pl.element().struct.field("broker_name") + " / " + pl.element().struct.field("queue_id").cast(pl.String)
    )
    rows = (
        view.rows("gold.allocation", "rebalance_ts")
        .filter(~pl.col("topic").str.starts_with("%"), pl.col("actual").is_not_null())
        .select(*member, "rebalance_ts", "cid_all", "judgement", queues=queues.list.sort())
        .sort(*member, "rebalance_ts")
    )
    state = pl.struct(pl.col("queues").list.join("|"), pl.col("cid_all").list.sort().list.join("|"), "judgement")
    changed = (state != state.shift(1).over(member)).fill_null(True)
    return rows.filter(changed).sort("rebalance_ts", *member).collect()


def _columns(rows: list[Row]) -> list[_Column]:
    """Return the allocation after each time in which the clients changed what they held."""
    columns: list[_Column] = []
    for row in rows:
        client, ts = row["client_id"], row["rebalance_ts"]
        last = columns[-1] if columns else _Column(ts, ts)
        held = last.held | {client: frozenset(row["queues"])}
        if row["cid_all"] is not None:
            held = {member: held[member] for member in held if member in row["cid_all"] or member == client}
        differ = {member for member in last.differ if member in held and member != client}
        differ |= {client} if row["judgement"] == "differ" else set()
        is_new = held != last.held or bool(differ - last.differ)
        if not columns or (is_new and ts - last.last_ts > SETTLES):
            columns.append(_Column(ts, ts))
        columns[-1].last_ts = ts if is_new else columns[-1].last_ts
        columns[-1].held, columns[-1].differ = held, differ
    # Clients that joined and left within one column leave no trace.
    kept = columns[:1]
    kept += [new for old, new in pairwise(columns) if new.held != old.held or new.differ]
    return kept


def _panel(drawing: Drawing, pair: Pair, columns: list[_Column], findings: list[Row]) -> int:
    """Draw the last columns; return how many earlier ones were left out."""
    shown = columns[-MOST_COLUMNS:]
    before = columns[-MOST_COLUMNS - 1].held if len(columns) > MOST_COLUMNS else {}
    clients = sorted({c for column in shown for c in column.held} | set(before))
    width = PLOT / max(len(shown), 3)
    drawing.y += 6
    drawing.pair(pair[0], pair[1], drawing.y + 11, LEFT + 100)
    for finding, x in zip(findings[:6], range(LEFT + 130, LEFT + PLOT, 90), strict=False):
        _finding_mark(drawing, finding, x, drawing.y + 7)
    drawing.y += 20
    for i, column in enumerate(shown):
        drawing.text(LEFT + i * width, drawing.y + 10, at(column.ts), "p-t p-small p-dim")
    top = drawing.y + 16
    for row, client in enumerate(clients[:MOST_CLIENTS]):
        y = top + row * ROW
        drawing.text(24, y + 11, client, "p-t p-small p-dim", LEFT - 38)
        previous = before.get(client, frozenset())
        for i, column in enumerate(shown):
            first = i == 0 and not before
            _cell(drawing, LEFT + i * width, y, client, column, None if first else previous, width)
            previous = column.held.get(client, frozenset())
    drawing.y = top + min(len(clients), MOST_CLIENTS) * ROW + 3
    if len(clients) > MOST_CLIENTS:
        more = drawing.words.counted(len(clients) - MOST_CLIENTS, "more client")
        more = drawing.words.filled("and {clients}", clients=more)
        drawing.text(24, drawing.y + 10, more, "p-t p-small p-dim")
        drawing.y += 16
    drawing.rule()
    return len(columns) - len(shown)


def _cell(
    drawing: Drawing, x: float, y: float, client: str, column: _Column, before: Queues | None, width: float
) -> None:
    held = column.held.get(client)
    if held is None and not before:
        return
    now, old = held or frozenset(), before if before is not None else held or frozenset()
    kept, got, lost = sorted(now & old), sorted(now - old), sorted(old - now)
    filled, queues = drawing.words.filled, drawing.words.counted(len(now), "queue")
    words = filled("{client} after {time}: {queues}", client=client, time=at(column.ts), queues=queues)
    for text, each in (("; kept {queues}", kept), ("; got {queues}", got), ("; released {queues}", lost)):
        words += filled(text, queues=", ".join(each[:20])) if each else ""
    if held is None:
        words = filled("{client} left the group; it released {queues}", client=client, queues=", ".join(lost[:20]))
    boxes = [(css, q) for css, each in (("p-kept", kept), ("p-got", got), ("p-lost", lost)) for q in each]
    if client in column.differ:
        differs = filled("{words}. This differs from the strategy.", words=words)
        drawing.rect(x - 3, y, min(width - 4, 112), ROW - 2, "p-differ", differs)
    if len(boxes) > min(MOST_BOXES, (width - 8) // (BOX + 2)):
        change = "".join(f" {sign}{len(q)}" for sign, q in (("+", got), ("−", lost)) if q)
        drawing.add(
            '<text class="p-t p-small" x="{x}" y="{y}">{n}{c}<title>{w}</title></text>',
            x=x,
            y=y + 11,
            n=len(now),
            c=change,
            w=words,
        )
        return
    if not boxes:
        shape = '<text class="p-t p-small p-dim" x="{x}" y="{y}">{none}<title>{w}</title></text>'
        drawing.add(shape, x=x, y=y + 11, none=filled("none"), w=words)
    for i, (css, _) in enumerate(boxes):
        left = x + i * (BOX + 2)
        drawing.rect(left, y + 3, BOX, BOX, css, words)
        if css == "p-got":
            drawing.path(
                f"M{left + 2:g} {y + 3 + BOX / 2:g}h{BOX - 4}m-{(BOX - 4) / 2:g} -{(BOX - 4) / 2:g}v{BOX - 4}", "p-plus"
            )


def _finding_mark(drawing: Drawing, finding: Row, x: float, y: float) -> None:
    drawing.open_link(finding)
    drawing.mark(finding["severity"], x, y)
    drawing.text(x + 10, y + 4, finding["finding_id"][:8], "p-t p-small p-link")
    drawing.close_link()
