"""A picture of the report as plain values."""

from __future__ import annotations

from dataclasses import dataclass, field

from markupsafe import Markup

from mqreplay.report.place_anchor import Place


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
