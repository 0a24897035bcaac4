"""All findings over the night: a row for each kind, the worst kind first."""

from __future__ import annotations

from mqreplay.report.data import Row
from mqreplay.report.pictures.drawing import TEXTS, Drawing, Picture, drawn
from mqreplay.report.pictures.night import PictureData
from mqreplay.report.pictures.scales import LEFT
from mqreplay.report.text import number

MOST_LINES = 4  # of one kind


def draw_finding_times(view: PictureData) -> Picture:
    """Draw a row for each kind of finding."""
    by_kind: dict[str, list[Row]] = {}
    for finding in view.findings:
        by_kind.setdefault(finding["kind"], []).append(finding)
    rows = list(by_kind.items())
    most = TEXTS["when"].most
    return drawn(view, "when", rows[:most], _row, sum(len(findings) for _, findings in rows[most:]))


def _row(drawing: Drawing, of_kind: tuple[str, list[Row]]) -> int:
    """Draw the findings of a kind; return how many had no room."""
    kind, findings = of_kind
    top = drawing.y
    drawing.y += 3
    drawing.text(8, top + 14, kind, "p-t p-small", LEFT - 50, kind)
    drawing.text(LEFT - 14, top + 14, number(len(findings)), "p-t p-small p-dim p-end", kind=kind)
    left_out = drawing.finding_strip(findings, MOST_LINES)
    drawing.y = max(drawing.y + 3, top + 20)
    drawing.rule()
    return left_out
