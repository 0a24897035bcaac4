"""A picture of the report as plain values."""

from __future__ import annotations

from dataclasses import dataclass, field

from markupsafe import Markup


@dataclass(frozen=True)
class Picture:
    """One inline SVG with its words.

    ``cut`` states what was not drawn, ``why_empty`` why there is nothing to draw and which evidence would help.
    """

    name: str
    title: str
    caption: str
    svg: Markup = field(default_factory=Markup)
    cut: str | None = None
    why_empty: str | None = None
