"""Findings by night and kind: the nights of the warehouse side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from urllib.parse import quote

from markupsafe import Markup

from mqreplay.language.language import Language, in_english
from mqreplay.report.data import Row
from mqreplay.report.pictures.drawing import Drawing, Picture
from mqreplay.report.pictures.night import NightSpan
from mqreplay.report.pictures.scales import LEFT, PLOT
from mqreplay.report.text import lasting
from mqreplay.words.severity import WORST_FIRST

MOST_KINDS = 24
ROW = 24
BOX = Markup('<rect class="{}" x="{:g}" y="{:g}" width="{:g}" height="{}" rx="3"/>')


def draw_nights(nights: Sequence[NightSpan], findings: Sequence[Row], words: Language | None = None) -> Picture | None:
    """Draw a column for each night and a row for each kind; None if there are less than two nights."""
    if len(nights) < 2:
        return None
    by_cell: dict[tuple[str, int], list[Row]] = {}
    for finding in findings:
        by_cell.setdefault((finding["kind"], _night_of(finding, nights)), []).append(finding)
    worst: dict[str, int] = {}
    for finding in findings:
        rank = WORST_FIRST.index(finding["severity"])
        worst[finding["kind"]] = min(worst.get(finding["kind"], rank), rank)
    kinds = sorted(worst, key=lambda kind: (worst[kind], kind))
    words = words or in_english()
    drawing = Drawing.begun("nights", nights[-1], words)
    width = min(PLOT / len(nights), 130.0)
    middle = [LEFT + (i + 0.5) * width for i in range(len(nights))]
    for x, night in zip(middle, nights, strict=True):
        lasted = lasting(night.first, night.last, words)
        for y, css, text in ((14, "p-strong", f"{night.last:%m-%d}"), (29, "p-dim", lasted)):
            drawing.text(x, y, text, f"p-t p-small p-mid {css}")
    drawing.y = 36
    for kind in kinds[:MOST_KINDS]:
        drawing.text(8, drawing.y + 16, kind, "p-t p-small", LEFT - 20)
        for i, night in enumerate(nights):
            _cell(drawing, LEFT + i * width, width, kind, night, by_cell.get((kind, i), []))
        drawing.y += ROW
    totals = Counter(i for (_, i), found in by_cell.items() for _ in found)
    drawing.text(8, drawing.y + 17, words.filled("all findings"), "p-t p-strong")
    for i, x in enumerate(middle):
        drawing.text(x, drawing.y + 17, totals[i], "p-t p-strong p-mid")
    drawing.y += ROW + 4
    left_out = len(kinds) - MOST_KINDS
    return drawing.picture([words.counted(left_out, "other kind")] if left_out > 0 else [])


def _night_of(finding: Row, nights: Sequence[NightSpan]) -> int:
    """Return the number of the night in which the finding began."""
    begin = finding["from_ts"] or finding["to_ts"]
    return 0 if begin is None else max(sum(begin >= night.first for night in nights) - 1, 0)


def _cell(drawing: Drawing, x: float, width: float, kind: str, night: NightSpan, found: list[Row]) -> None:
    if not found:
        drawing.parts.append(BOX.format("p-none", x + 2, drawing.y + 2, width - 4, ROW - 4))
        return
    severity = min((f["severity"] for f in found), key=WORST_FIRST.index)
    words = drawing.words.filled(
        "{findings} of kind {kind} in the night of {night}, the worst: {severity}",
        findings=drawing.words.counted(len(found), "finding"),
        kind=kind,
        night=night.name,
        severity=drawing.words.filled(severity),
    )
    href = f"#kind={quote(kind)}&from={night.first:%Y-%m-%dT%H:%M:%S}&to={night.last:%Y-%m-%dT%H:%M:%S}"
    drawing.open_anchor(href, words)
    drawing.severities.add(severity)
    drawing.parts.append(BOX.format("p-cell", x + 2, drawing.y + 2, width - 4, ROW - 4))
    drawing.mark(severity, x + width / 2 - 10, drawing.y + ROW / 2)
    drawing.text(x + width / 2 + 4, drawing.y + 16, len(found), "p-t p-small")
    drawing.close_link()
