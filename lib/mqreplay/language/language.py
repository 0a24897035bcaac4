"""A finished English text -> the same text in another language.

Tables keep English sentences, so that a night has the same rows for every reader. A translation therefore begins with a
sentence that has its values already, finds the sentence of the catalogue that it was made from, and fills the values
into the translation. The catalogue of a language is the folder with its name, of TOML files:
``"English" = "translation"``.

Fields of an English sentence:

* ``{name}`` is any text, and stays as it is.
* ``{name:d}`` is a number, and stays as it is.
* ``{name!t}`` is a text that is translated itself.
* ``(s)`` is there or not: "{n:d} queue(s)".
"""

from __future__ import annotations

import functools
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from string import Formatter
from typing import Final

from markupsafe import Markup, escape

ENGLISH: Final = "en"
LANGUAGES: Final = (ENGLISH, "zh")
LANG_TAGS: Final = {ENGLISH: "en", "zh": "zh-Hans"}  # of HTML
NUMBER: Final = r"-?[0-9][0-9,.]*"
_SENTENCE: Final = re.compile(r"(?<=[.?!])\s+(?=[A-Z0-9%\"'(])")
_ENDS: Final = {".": "。", "?": "？", "!": "！"}
_MEMORY: Final = 1 << 14  # texts


@dataclass(frozen=True)
class Sentence:
    """A sentence of the catalogue with fields: what matches it, and its translation."""

    pattern: re.Pattern[str]
    translated: frozenset[str]  # fields that are translated themselves
    translation: str
    literals: int  # characters outside of fields


class Language:
    """One language. Not translated is what its catalogue does not have: it stays English."""

    def __init__(self, name: str, catalogue: Mapping[str, str]) -> None:
        """Take the translations by their English sentences."""
        self.name = name
        self._exact = {english: text for english, text in catalogue.items() if not _has_fields(english)}
        self._filled = dict(catalogue)
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
        """Return the translation of a sentence of the catalogue with its fields filled in. Parts of a page stay so.

        >>> Language("en", {}).filled("More: {command}", command=Markup("<code>a</code>"))
        Markup('More: <code>a</code>')
        """
        text = self._filled.get(english, english) if self.name != ENGLISH else english
        if any(hasattr(value, "__html__") for value in values.values()):
            return Markup(escape(text)).format(**values)
        return text.format(**values) if values else text

    def _translated(self, english: str) -> str | None:
        """Return the translation of one text; None: not in the catalogue."""
        if (exact := self._exact.get(english)) is not None:
            return exact
        end = _ENDS.get(english[-1:])
        if end is not None:
            whole = self._remembered(english[:-1])
            return None if whole is None else whole + end
        head, between, tail = english.partition("; ")
        if between:
            first, rest = self._remembered(head), self._remembered(tail)
            if first is not None and rest is not None:
                return f"{first}；{rest}"
        return self._matched(english)

    def _matched(self, english: str) -> str | None:
        for sentence in self._candidates(english):
            found = sentence.pattern.fullmatch(english)
            if found is None:
                continue
            values = found.groupdict()
            for name in sentence.translated:
                inner = self._remembered(values[name])
                if inner is None:
                    break
                values[name] = inner
            else:
                return sentence.translation.format_map(values)
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
    return Language(name, {} if name == ENGLISH else catalogue(name))


def catalogue(name: str) -> dict[str, str]:
    """Return the translations of a language, of all its files. Raises ValueError for a sentence with two."""
    made: dict[str, str] = {}
    folder = files("mqreplay.language").joinpath(name)
    for path in sorted(folder.iterdir(), key=lambda path: path.name):
        if not path.name.endswith(".toml"):
            continue
        for english, text in tomllib.loads(path.read_text("utf-8")).items():
            if english[-1:] in _ENDS and text.endswith(_ENDS[english[-1]]):  # as `Language` looks for it
                english, text = english[:-1], text[:-1]
            if made.setdefault(english, text) != text:
                raise ValueError(f"{path.name}: a second translation of {english!r}")
    return made


def fields(sentence: str) -> dict[str, str]:
    """Return the fields of a sentence: "d", "t" or "" by their names.

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
    translated = frozenset(name for name, kind in fields(english).items() if kind == "t")
    return Sentence(re.compile(pattern, re.DOTALL), translated, text, literals)


def _first_word(english: str) -> str:
    """Return the first word of a sentence, if no field and no optional letter is in it."""
    word = _word(english)
    return "" if "{" in word or "(s)" in word else word


def _word(text: str) -> str:
    return text.split(" ", 1)[0]
