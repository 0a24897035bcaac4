"""Inline SVG: shapes, words, links to findings. Every value is escaped; colours are classes of pictures.css."""

from __future__ import annotations

import datetime as dt
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from markupsafe import Markup

from mqreplay.findings.texts import summary_of
from mqreplay.language.language import Language, in_english
from mqreplay.report.data import Place, Row, anchor
from mqreplay.report.pictures.night import NightSpan, PictureData
from mqreplay.report.pictures.scales import LEFT, PLOT, WIDTH, TimeScale, shorten, text_width
from mqreplay.report.text import span, visible

Panel = TypeVar("Panel")
NIGHT_AXIS = 4  # where the grid of an axis of the whole night begins
AXIS = 24  # height of the time axis
STRIP = 13  # height of a line of finding marks
MOST_STRIPS = 3  # lines of finding marks in one panel
MARKS = {  # a shape for each severity, drawn around (0, 0)
    "critical": "M0 -6L6 0L0 6L-6 0Z",
    "warning": "M0 -6L6 5H-6Z",
    "info": "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0 -10 0Z",
}


@dataclass(frozen=True)
class PictureText:
    """What a picture says in English, as in pictures.toml.

    ``left_out`` has the field ``left``: what has no room. ``legend`` are words by the class of their box.
    ``is_of_night``: the picture ends with the time axis of the night. It has at most ``most`` panels, and marks
    findings of ``kinds``. ``others`` name one, and several, of what has no room; ``parts`` the same of what panels
    leave out, if that is another thing.
    """

    name: str
    title: str
    caption: str
    left_out: str
    why_empty: str = ""
    sql: str = ""
    is_of_night: bool = True
    most: int = 0
    kinds: Sequence[str] = ()
    others: Sequence[str] = ()
    parts: Sequence[str] = ()
    legend: Mapping[str, str] = field(default_factory=dict)


TEXTS = {
    name: PictureText(name, **text)
    for name, text in tomllib.loads(Path(__file__).with_name("pictures.toml").read_text("utf-8")).items()
}


@dataclass(frozen=True)
class Picture:
    """One inline SVG with its words, in the language of the page.

    ``name`` is its id on the page. ``links`` are the ids of the findings that it marks, ``places`` the groups,
    topics and brokers that it names. ``cut`` states what was not drawn and ``sql`` asks for all of it. ``why_empty``
    says why there is nothing to draw and what would help.
    """

    name: str
    title: str
    caption: str
    svg: Markup = field(default_factory=Markup)
    cut: str | None = None
    why_empty: str | None = None
    sql: str = ""
    links: tuple[str, ...] = ()
    places: tuple[Place, ...] = ()


@dataclass
class Drawing:
    """Collects the elements of one SVG from top to bottom. ``y`` is where the next panel begins."""

    about: PictureText
    times: TimeScale
    y: float = 4
    parts: list[Markup] = field(default_factory=list)
    links: dict[str, None] = field(default_factory=dict)  # ids of the findings that are marked
    places: dict[Place, None] = field(default_factory=dict)  # groups, topics and brokers that are named
    linked: bool = False
    timed: bool = False  # all of it lies on the time axis of the night
    severities: set[str] = field(default_factory=set)  # of the findings that are marked
    words: Language = field(default_factory=in_english)  # of the texts; names stay as they are

    @classmethod
    def begun(cls, name: str, night: NightSpan, words: Language) -> Drawing:
        """Return an empty drawing of a picture of a night."""
        return cls(TEXTS[name], TimeScale(night), words=words)

    def add(self, template: str, **values: object) -> None:
        """Append an element; the values are escaped."""
        self.parts.append(Markup(template).format(**{k: visible(v) for k, v in values.items()}))

    def rect(self, x: float, y: float, w: float, h: float, css: str, title: str | None = None) -> None:
        """Append a rectangle, with a tooltip if there is a title."""
        box = Markup('<rect class="{}" x="{:g}" y="{:g}" width="{:g}" height="{:g}"').format(css, x, y, w, h)
        self.parts.append(box + (Markup("><title>{}</title></rect>").format(visible(title)) if title else Markup("/>")))

    def path(self, d: str, css: str, title: str | None = None) -> None:
        """Append a path, with a tooltip if there is a title."""
        head = Markup('<path class="{}" d="{}"').format(css, d)
        tail = Markup("><title>{}</title></path>").format(visible(title)) if title else Markup("/>")
        self.parts.append(head + tail)

    def text(
        self, x: float, y: float, text: object, css: str = "p-t", width: float | None = None, kind: str | None = None
    ) -> None:
        """Append a text; one wider than ``width`` is shortened, and its tooltip has all of it.

        ``kind``: that of the findings whose name or number it is.
        """
        whole = str(visible(str(text)))
        shown = whole if width is None else shorten(whole, width)
        more = Markup("<title>{}</title>").format(whole) if shown != whole else ""
        of = "" if kind is None else Markup(' data-kind="{}"').format(visible(kind))
        shape = '<text class="{css}" x="{x}" y="{y}"{of}>{shown}{more}</text>'
        self.add(shape, css=css, x=x, y=y, of=of, shown=shown, more=more)

    def place(self, kind: str, name: str, x: float, y: float, css: str, width: float) -> None:
        """Append the name of a group, topic or broker that leads to its part of the page."""
        if name.startswith("%"):
            self.text(x, y, name, css, width)
            return
        place = Place(kind, name)
        self.places[place] = None
        self.linked = True
        label = self.words.filled(f"{kind} {{name}}", name=name)
        self.add('<a class="p-place" href="{href}" aria-label="{label}">', href=f"#{anchor(place)}", label=label)
        self.text(x, y, name, css, width)
        self.close_link()

    def pair(self, group: str, topic: str, y: float, width: float) -> None:
        """Append the names of a group and a topic on one line."""
        room = min(text_width(group, 14) + 6, width * 0.6)
        self.place("group", group, 8, y, "p-t p-strong", room)
        self.place("topic", topic, 14 + room, y, "p-t p-dim", width - room)

    def open_link(self, finding: Row, what: str | None = None) -> None:
        """Begin a link to a finding; close_link ends it. The tooltip is the finding, or ``what``."""
        self.links[finding["finding_id"]] = None
        self.severities.add(finding["severity"])
        text = self.words.filled(
            "{severity}: {summary} {span} UTC",
            severity=self.words.filled(finding["severity"]),
            summary=summary_of(finding, self.words),
            span=span(finding["from_ts"], finding["to_ts"], words=self.words),
        )
        self.open_anchor(f"#f-{finding['finding_id']}", what or text)

    def open_anchor(self, href: str, words: str) -> None:
        """Begin a link within the page; close_link ends it."""
        self.linked = True
        self.add('<a href="{href}" aria-label="{words}"><title>{words}</title>', href=href, words=words)

    def close_link(self) -> None:
        """End a link."""
        self.parts.append(Markup("</a>"))

    def rule(self) -> None:
        """End a panel with a line."""
        self.path(f"M8 {self.y:g}H{LEFT + PLOT}", "p-rule")

    def scale(self, top: float, height: float, low: object, high: object) -> None:
        """Draw the lines and labels of a scale."""
        for label, y in ((high, top + 9), (low, top + height)):
            self.text(LEFT - 6, y, label, "p-t p-small p-dim p-end")
        self.path(f"M{LEFT} {top:g}H{LEFT + PLOT}M{LEFT} {top + height:g}H{LEFT + PLOT}", "p-rule")

    def hatch(self, x: float, y: float, w: float, h: float, css: str) -> None:
        """Fill a rectangle with slanted lines, a sign that needs no colour. Wide rectangles have wider gaps."""
        step = max(7.0, w / 60)
        lines: list[str] = []
        start = x - h + step
        while start < x + w:
            left, right = max(start, x), min(start + h, x + w)
            if right > left:
                lines.append(f"M{left:.1f} {y + h - (left - start):.1f}L{right:.1f} {y + h - (right - start):.1f}")
            start += step
        self.path("".join(lines), css)

    def finding_strip(self, findings: list[Row], most: int = MOST_STRIPS) -> int:
        """Draw marks of findings, from begin to end, in at most ``most`` lines. Return how many had no room."""
        lanes: list[float] = []
        left_out = 0
        for finding in sorted(findings, key=lambda f: (f["from_ts"] or self.times.night.first, f["finding_id"])):
            begin = self.times.x(finding["from_ts"] or self.times.night.first)
            end = max(self.times.x(finding["to_ts"] or self.times.night.last), begin)
            lane = next((i for i, taken in enumerate(lanes) if taken <= begin - 8), len(lanes))
            if lane == most:
                left_out += 1
                continue
            lanes[lane : lane + 1] = [end + 8]
            self._mark(finding, begin, end, self.y + lane * STRIP + STRIP / 2)
        self.y += len(lanes) * STRIP
        return left_out

    def _mark(self, finding: Row, begin: float, end: float, y: float) -> None:
        severity = finding["severity"]
        self.open_link(finding)
        if end - begin > 6:
            self.rect(begin, y - 2, end - begin, 4, f"p-{severity}")
        self.mark(severity, begin, y)
        self.close_link()

    def mark(self, severity: str, x: float, y: float) -> None:
        """Draw the shape of a severity around a point."""
        shape = '<path class="p-mark p-{severity}" transform="translate({x} {y})" d="{d}"/>'
        self.add(shape, severity=severity, x=x, y=y, d=MARKS[severity])

    def time_axis(self, top: float) -> None:
        """Draw the time axis below everything that begins at ``top``, with a grid behind it."""
        grid: list[Markup] = []
        self.timed = self.timed or top == NIGHT_AXIS
        for x, label in self.times.ticks():
            grid.append(Markup('<path class="p-grid" d="M{:g} {:g}V{:g}"/>').format(x, top, self.y))
            self.text(x, self.y + 17, label, "p-t p-dim p-mid p-tick")
        self.add('<path class="p-axis" d="M{a} {y}H{b}"/>', a=LEFT, b=LEFT + PLOT, y=self.y)
        self.text(8, self.y + 17, self.words.filled("time (UTC)"), "p-t p-dim")
        self.parts[:0] = grid
        self.y += AXIS

    def _legend(self) -> None:
        """Draw boxes and their words, in as many lines as are needed, then the marks of findings."""
        entries = [
            *self.about.legend.items(),
            *((f"p-{word}", f"{word} finding") for word in MARKS if word in self.severities),
        ]
        drawn = set(" ".join(re.findall('class="([^"]*)"', "".join(self.parts))).split())
        entries = [entry for entry in entries if entry[0].endswith("-box") or entry[0].split()[0] in drawn]
        if not entries:
            return
        x, line = 8.0, 20
        self.y += 6
        self.parts.append(Markup('<g class="p-legend">'))
        for css, english in entries:
            words = self.words.filled(english)
            width = 22 + text_width(words, 12) + 18
            if x + width > WIDTH and x > 8:
                x, self.y = 8.0, self.y + line
            shape = MARKS.get(css.removeprefix("p-"))
            if shape is None:
                self.rect(x, self.y + 2, 16, 11, css)
            else:
                self.add(
                    '<path class="{c}" transform="translate({x} {y})" d="{d}"/>', c=css, x=x + 8, y=self.y + 8, d=shape
                )
            if "p-hatched" in css:
                self.hatch(x, self.y + 2, 16, 11, "p-hatch")
            self.text(x + 22, self.y + 12, words, "p-t p-small")
            x += width
        self.parts.append(Markup("</g>"))
        self.y += line

    def svg(self) -> Markup:
        """Return the whole picture. Links make it a group: what has the role img hides its parts from a reader."""
        role = "group" if self.linked else "img"
        css = "picture timed" if self.timed else "picture"
        head = Markup('<svg class="{}" viewBox="0 0 {} {:g}" role="{}" aria-label="{}">')
        return (
            head.format(css, WIDTH, self.y, role, visible(self.words.filled(self.about.title)))
            + Markup("\n").join(self.parts)
            + Markup("</svg>")
        )

    def picture(self, left: Sequence[str] = ()) -> Picture:
        """End the drawing with its axis and legend. ``left`` is what was not drawn, in the language of the page."""
        if self.about.is_of_night:
            self.time_axis(NIGHT_AXIS)
        self._legend()
        about, filled = self.about, self.words.filled
        return Picture(
            about.name,
            filled(about.title),
            filled(about.caption),
            self.svg(),
            filled(about.left_out, left=self.words.listed(left)) if left else None,
            sql=about.sql if left else "",
            links=tuple(self.links),
            places=tuple(self.places),
        )


def drawn(
    view: PictureData, name: str, panels: Sequence[Panel], draw: Callable[[Drawing, Panel], int | None], others: int
) -> Picture:
    """Draw the panels of a picture, of which ``others`` have no room. ``draw`` returns how many parts it left out.

    Without a panel, the picture says what would help.
    """
    about, filled = TEXTS[name], view.words.filled
    if not panels:
        return Picture(name, filled(about.title), filled(about.caption), why_empty=filled(about.why_empty))
    drawing = Drawing.begun(name, view.night, view.words)
    parts = sum(draw(drawing, panel) or 0 for panel in panels)
    left = ((others, about.others), (parts, about.parts)) if about.parts else ((others + parts, about.others),)
    return drawing.picture([view.words.counted(number, *nouns) for number, nouns in left if number > 0])


def at(moment: dt.datetime) -> str:
    """Return the time of day, to the second."""
    return f"{moment:%H:%M:%S}"
