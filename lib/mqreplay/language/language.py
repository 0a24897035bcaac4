"""A finished English text -> the same text in another language.

Tables keep English sentences, so that a night has the same rows for every reader. A translation therefore begins with a
sentence that has its values already, finds the sentence of the catalogue that it was made from, and fills the values
into the translation. The catalogue of a language is the folder with its name, of TOML files:
``"English" = "translation"``.

Fields of an English sentence:

* ``{name}`` is any text, and stays as it is.
* ``{name:d}`` is a number, and stays as it is.
* ``{name!t}`` is a text that is translated itself.
* ``{name!l}`` is a list "a, b and c" of such texts.
* ``(s)`` is there or not: "{n:d} queue(s)".

The table ``[templates]`` of a file has texts that code fills in (`Language.filled`): no finished text is compared with
them, so they may be as short as "{n} of {m}" and never match a name.
"""

from __future__ import annotations

import functools
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from string import Formatter
from typing import Any, Final

from markupsafe import Markup, escape

from mqreplay.words.quantity import counted, listed

ENGLISH: Final = "en"
LANGUAGES: Final = (ENGLISH, "zh")
LANG_TAGS: Final = {ENGLISH: "en", "zh": "zh-Hans"}  # of HTML
# gold.judgement counts reasons by their text with N for each number.
NUMBER: Final = r"-?(?:[0-9][0-9,.]*|N(?:[,.]N)*)"
_SENTENCE: Final = re.compile(r"(?<=[.?!])\s+(?=[A-Z0-9%\"'(])")
_CLAUSE: Final = re.compile("; ")
_MOST_CLAUSES: Final = 12  # of a text that is split: a hostile one may have thousands
_LONGEST: Final = 4_000  # characters of a text that is compared with patterns: the time grows with their square
_BETWEEN: Final = re.compile(", | and ")
_ENDS: Final = {".": "。", "?": "？", "!": "！"}
_MEMORY: Final = 1 << 14  # texts


@dataclass(frozen=True)
class Sentence:
    """A sentence of the catalogue with fields: what matches it, and its translation."""

    pattern: re.Pattern[str]
    translated: Mapping[str, str]  # fields that are translated themselves: "t" or "l"
    translation: str
    literals: int  # characters outside of fields


class Language:
    """One language. Not translated is what its catalogue does not have: it stays English."""

    def __init__(self, name: str, catalogue: Mapping[str, str], templates: Mapping[str, str] | None = None) -> None:
        """Take the translations by their English sentences, and those of templates."""
        self.name = name
        self._exact = {english: text for english, text in catalogue.items() if not _has_fields(english)}
        self._filled = {**catalogue, **(templates or {})}
        self._by_word: dict[str, list[Sentence]] = defaultdict(list)
        for english, text in catalogue.items():
            if _has_fields(english):
                self._by_word[_first_word(english)].append(_sentence(english, text))
        for sentences in self._by_word.values():
            sentences.sort(key=lambda sentence: -sentence.literals)
        self._remembered = functools.lru_cache(_MEMORY)(self._translated)

    def text(self, english: str) -> str:
        """Return the translation of a finished text; a sentence that the catalogue does not have stays as it is.

        >>> zh = Language("zh", {"{n:d} queue(s) of {group}": "{group} 的 {n} 个队列", "A quiet night": "一切正常"})
        >>> zh.text("8 queues of pay-group"), zh.text("A quiet night. 1 queue of g."), zh.text("Not known.")
        ('pay-group 的 8 个队列', '一切正常。g 的 1 个队列。', 'Not known.')
        """
        if self.name == ENGLISH or not english:
            return english
        parts = _SENTENCE.split(english)
        found = [self._remembered(part) for part in parts]
        # Parts first: a field at the end of a sentence would take the sentences behind it for its value.
        if None in found and (whole := self._remembered(english)) is not None:
            return whole
        made = ""
        for part, translation in zip(parts, found, strict=True):
            text = part if translation is None else translation
            made += f" {text}" if made and made[-1].isascii() else text
        return made

    def knows(self, english: str) -> bool:
        """Return whether all of a text is translated."""
        if self.name == ENGLISH or not english:
            return True
        return all(self._remembered(part) for part in _SENTENCE.split(english)) or bool(self._remembered(english))

    def filled(self, english: str, **values: object) -> str:
        """Return the translation of a template or a sentence with its fields filled in. Parts of a page stay so.

        >>> Language("en", {}).filled("More: {command}", command=Markup("<code>a</code>"))
        Markup('More: <code>a</code>')
        """
        text = self._filled.get(english, english) if self.name != ENGLISH else english
        if any(hasattr(value, "__html__") for value in values.values()):
            return Markup(escape(text)).format(**values)
        return text.format(**values) if values else text

    def counted(self, number: int, one: str, many: str | None = None) -> str:
        """Return a number and its noun; the catalogue has the template of one.

        >>> Language("zh", {}, {"{n} row": "{n} 行"}).counted(1200, "row"), Language("en", {}).counted(1200, "row")
        ('1,200 行', '1,200 rows')
        """
        if self.name == ENGLISH:
            return counted(number, one, many)
        return self.filled(f"{{n}} {one}", n=f"{number:,}")

    def listed(self, items: Sequence[str]) -> str:
        """Return translated texts as a list within a sentence.

        >>> Language("en", {}).listed(["a", "b", "c"]), Language("zh", {}).listed(["a", "b", "c"])
        ('a, b and c', 'a、b、c')
        """
        return listed(items) if self.name == ENGLISH else "、".join(items)

    def _translated(self, english: str) -> str | None:
        """Return the translation of one text; None: not in the catalogue."""
        if (exact := self._exact.get(english)) is not None:
            return exact
        end = _ENDS.get(english[-1:])
        if end is not None:
            whole = self._remembered(english[:-1])
            return None if whole is None else whole + end
        # A sentence of the catalogue may have a semicolon of its own.
        for between in _CLAUSE.finditer(english) if english.count("; ") <= _MOST_CLAUSES else ():
            first = self._remembered(english[: between.start()])
            rest = None if first is None else self._remembered(english[between.end() :])
            if rest is not None:
                return f"{first}；{rest}"
        return self._matched(english)

    def _matched(self, english: str) -> str | None:
        if len(english) > _LONGEST:
            return None
        for sentence in self._candidates(english):
            found = sentence.pattern.fullmatch(english)
            if found is None:
                continue
            values = found.groupdict()
            for name, kind in sentence.translated.items():
                inner = self._inner(values[name]) if kind == "t" else self._list(values[name])
                if inner is None:
                    break
                values[name] = inner
            else:
                return sentence.translation.format_map(values)
        return None

    def _inner(self, english: str) -> str | None:
        """Return the translation of a text within a sentence; a sentence may begin there with a small letter."""
        found = self._remembered(english)
        return self._remembered(english[:1].upper() + english[1:]) if found is None else found

    def _list(self, english: str) -> str | None:
        """Return the translation of a list; None if it has an item that the catalogue does not have."""
        if (whole := self._remembered(english)) is not None:
            return whole
        for between in _BETWEEN.finditer(english):
            first = self._remembered(english[: between.start()])
            rest = None if first is None else self._list(english[between.end() :])
            if rest is not None:
                return f"{first}、{rest}"
        return None

    def _candidates(self, english: str) -> Iterator[Sentence]:
        """Yield the sentences that may match: those that begin with the text's first word, then those with a field."""
        word = _word(english)
        yield from self._by_word.get(word, ())
        if word:
            yield from self._by_word.get("", ())


def in_english() -> Language:
    """Return the language that changes nothing."""
    return language(ENGLISH)


@functools.cache
def language(name: str) -> Language:
    """Return one of LANGUAGES. Raises KeyError for another one."""
    if name not in LANGUAGES:
        raise KeyError(name)
    return Language(name, {}) if name == ENGLISH else Language(name, catalogue(name), templates(name))


def catalogue(name: str) -> dict[str, str]:
    """Return the translations of a language, of all its files. Raises ValueError for a sentence with two."""
    made: dict[str, str] = {}
    for file, entries in _entries(name):
        for english, text in entries.items():
            if isinstance(text, dict):  # [templates]
                continue
            if english[-1:] in _ENDS and text.endswith(_ENDS[english[-1]]):  # as `Language` looks for it
                english, text = english[:-1], text[:-1]
            if made.setdefault(english, text) != text:
                raise ValueError(f"{file}: a second translation of {english!r}")
    return made


def templates(name: str) -> dict[str, str]:
    """Return the translations of templates, of all files of a language. Raises ValueError for a template with two."""
    made: dict[str, str] = {}
    for file, entries in _entries(name):
        for english, text in entries.get("templates", {}).items():
            if made.setdefault(english, text) != text:
                raise ValueError(f"{file}: a second translation of {english!r}")
    return made


def _entries(name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the files of a language, by name."""
    folder = files("mqreplay.language").joinpath(name)
    for path in sorted(folder.iterdir(), key=lambda path: path.name):
        if path.name.endswith(".toml"):
            yield path.name, tomllib.loads(path.read_text("utf-8"))


def fields(sentence: str) -> dict[str, str]:
    """Return the fields of a sentence: "d", "t", "l" or "" by their names.

    >>> fields("{n:d} queues of {group}: {why!t}")
    {'n': 'd', 'group': '', 'why': 't'}
    """
    parsed = Formatter().parse(sentence)
    return {name: conversion or form or "" for _, name, form, conversion in parsed if name is not None}


def _has_fields(english: str) -> bool:
    return "{" in english or "(s)" in english


def _sentence(english: str, text: str) -> Sentence:
    pattern, literals, seen = "", 0, set[str]()
    for literal, name, form, _ in Formatter().parse(english):
        pattern += re.escape(literal).replace(re.escape("(s)"), "s?")
        literals += len(literal)
        if name is None:
            continue
        if name in seen:
            pattern += f"(?P={name})"
        else:
            pattern += f"(?P<{name}>{NUMBER if form == 'd' else '.+?'})"
        seen.add(name)
    translated = {name: kind for name, kind in fields(english).items() if kind in ("t", "l")}
    return Sentence(re.compile(pattern, re.DOTALL), translated, text, literals)


def _first_word(english: str) -> str:
    """Return the first word of a sentence, if no field and no optional letter is in it."""
    word = _word(english)
    return "" if "{" in word or "(s)" in word else word


def _word(text: str) -> str:
    return text.split(" ", 1)[0]
