"""All findings over the night: a row for each kind, the worst kind first."""

from __future__ import annotations

from mqreplay.report.data import Row
from mqreplay.report.pictures.drawing import NIGHT_AXIS, Drawing, not_drawn
from mqreplay.report.pictures.night import PictureData
from mqreplay.report.pictures.picture import Picture
from mqreplay.report.pictures.scales import LEFT, PLOT, TimeScale
from mqreplay.report.text import number

TITLE = "Findings over the night"
CAPTION = "Each mark is a finding, from its start to its end, and leads to it. Filters of the list apply here, too."
WHY_EMPTY = "There are no findings in this night."
MOST_KINDS = 24
MOST_LINES = 4  # of one kind


def draw_finding_times(view: PictureData) -> Picture:
    """Draw a row for each kind of finding."""
    by_kind: dict[str, list[Row]] = {}
    for finding in view.findings:
        by_kind.setdefault(finding["kind"], []).append(finding)
    if not by_kind:
        return not_drawn(view, "when", TITLE, CAPTION, WHY_EMPTY)
    drawing = Drawing(TITLE, TimeScale(view.night), words=view.words)
    left_out = sum(len(found) for found in list(by_kind.values())[MOST_KINDS:])
    for kind, found in list(by_kind.items())[:MOST_KINDS]:
        top = drawing.y
        drawing.y += 3
        drawing.text(8, top + 14, kind, "p-t p-small", LEFT - 50, kind)
        drawing.text(LEFT - 14, top + 14, number(len(found)), "p-t p-small p-dim p-end", kind=kind)
        left_out += drawing.finding_strip(found, MOST_LINES)
        drawing.y = max(drawing.y + 3, top + 20)
        drawing.path(f"M8 {drawing.y:g}H{LEFT + PLOT}", "p-rule")
    drawing.time_axis(NIGHT_AXIS)
    drawing.legend([])
    unmarked = "{left} not marked; the list below has them."
    cut = drawing.cut([view.words.counted(left_out, "finding")], unmarked) if left_out else None
    return drawing.picture("when", TITLE, CAPTION, cut)
