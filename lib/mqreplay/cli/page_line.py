"""The line below an answer that leads back to the page."""

from __future__ import annotations

import datetime as dt

from rich.console import Console
from rich.text import Text

from mqreplay.language.language import Language, in_english
from mqreplay.night.page_path import page_link
from mqreplay.printable import printable
from mqreplay.report.place_anchor import Place


def print_page(
    root: str,
    cluster: str,
    *,
    finding_id: str | None = None,
    group: str | None = None,
    broker: str | None = None,
    topic: str | None = None,
    at: dt.datetime | None = None,
    words: Language | None = None,
) -> None:
    """Print where the cluster's page shows the finding, or else the group, broker or topic; nothing if it does not."""
    named = (("group", group), ("broker", broker), ("topic", topic))
    places = [Place(kind, name) for kind, name in named if name is not None]
    link = page_link(root, cluster, places, finding_id, at)
    if link is not None:
        text = (words or in_english()).filled("Page: {link}", link=printable(link))
        Console(highlight=False).print(Text(text), soft_wrap=True)
