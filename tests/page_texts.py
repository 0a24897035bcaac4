"""The texts of a page that a reader sees or hears, each with the part of the page that it is in."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field
from html.parser import HTMLParser

SHOWN = ("title", "aria-label", "placeholder", "data-label")  # attributes
VOID = ("br", "meta", "link", "input")
NOT_READ = ("style", "script", "template", "code")
ENGLISH = re.compile(r"\b[a-z]{2,}(?:,? [a-z]+){2,}\b")  # three words
# An error of Java, the remark of an answer, and the name of a button that copies a command: they stay.
RAW = re.compile(r"(?:[a-z]\w*\.)+[A-Z]\w*(?:: [^，]*)?|响应码 \d+：[^，]*|复制 .*")


@dataclass
class Texts(HTMLParser):
    """Texts, ids, links and elements of a page. Elements of pictures are left out: widths of texts differ."""

    found: list[tuple[str, str]] = field(default_factory=list)  # part, text
    ids: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    elements: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    _open: list[tuple[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = {name: value or "" for name, value in attrs}
        self.ids += [known["id"]] if "id" in known else []
        self.links += [known["href"]] if "href" in known else []
        names = [name for name, _ in self._open]
        if "svg" not in names:
            self.elements[tag] += 1
        self.found += [(self._part(tag), known[name]) for name in SHOWN if known.get(name)]
        if tag not in VOID:
            self._open.append((tag, known.get("class", "")))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Pass over an empty element of a picture."""

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop()[0] != tag:
            pass

    def handle_data(self, data: str) -> None:
        if data.strip() and not any(name in NOT_READ for name, _ in self._open):
            self.found.append((self._part(), data.strip()))

    def _part(self, tag: str = "") -> str:
        """Return "finding", "advice", "evidence", "reason" or "page": who translates the text."""
        names = [tag, *(name for name, _ in self._open)]
        classes = " ".join(css for _, css in self._open).split()
        if "advice" in classes:
            return "advice"
        if "lines" in classes:
            return "evidence"
        if {"summary", "of-part", "verdict"} & set(classes) or ("svg" in names and "a" in names):
            return "finding"
        if "w" in classes or "notice" in classes or "note" in classes:
            return "reason"
        return "page"


def texts_of(html: str) -> Texts:
    """Return what a page has."""
    made = Texts()
    made.feed(html)
    return made


def english(html: str) -> dict[str, set[str]]:
    """Return the texts with three English words on end, by the part of the page."""
    left: dict[str, set[str]] = defaultdict(set)
    for part, text in texts_of(html).found:
        if ENGLISH.search(RAW.sub("", text)):
            left[part].add(text)
    return left
