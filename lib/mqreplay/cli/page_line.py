"""The line below an answer that leads back to the page."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any

from rich.text import Text

from mqreplay.answers.page_path import overview_link, page_link
from mqreplay.language.language import Language, in_english
from mqreplay.report.data import Place
from mqreplay.terminal.console import text_console
from mqreplay.words.printable import printable


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
        _print(link, words)


def print_page_of_findings(root: str, findings: Sequence[Mapping[str, Any]], words: Language | None = None) -> None:
    """Print where the page shows the finding, or the page of several findings; the overview, if of several clusters."""
    clusters = {finding["cluster"] for finding in findings}
    if len(clusters) == 1:
        one = findings[0]["finding_id"] if len(findings) == 1 else None
        print_page(root, *clusters, finding_id=one, words=words)
    elif clusters and (overview := overview_link(root)) is not None:
        _print(overview, words)


def _print(link: str, words: Language | None) -> None:
    text = (words or in_english()).filled("Page: {link}", link=printable(link))
    text_console().print(Text(text), soft_wrap=True)
