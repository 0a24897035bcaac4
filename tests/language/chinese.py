"""What the tests of the Chinese catalogue share: the language, and sentences that lack a translation."""

from __future__ import annotations

from collections.abc import Iterable

from mqreplay.language.language import language

ZH = language("zh")


def unknown(texts: Iterable[str]) -> list[str]:
    """Return the texts without a whole translation, each once, in order."""
    return sorted({text for text in texts if not ZH.knows(text)})


def report(missing: Iterable[str]) -> str:
    """Return what a failed test says of these texts."""
    return "\n".join(["lib/mqreplay/language/zh lacks a translation of:", *missing])
