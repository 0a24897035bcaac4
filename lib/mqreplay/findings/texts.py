"""The texts of a kind of finding, in English and Chinese: the file NAME.toml beside the module of the kind.

* ``follows`` names RocketMQ's class and method, ``example`` is a possible summary.
* ``[meaning]``, ``[rule]`` and ``[advice]`` have a text for each language, ``en`` and ``zh``.
* ``[now]`` and ``[ended]`` say in messages how the finding is now, in place of "still going on" and "ended".
* ``[summary]`` has a form for each language (see language/forms.py), ``[summary.FORM]`` another one;
  ``[advice.FORM]`` are other advices, which may have fields, too.
* ``[words.TABLE]`` has words for values: ``value = { en = "...", zh = "..." }``, or, as ``en`` and ``zh``, a form for
  values that have names themselves.

every_kind.toml has the words and forms of all kinds. Files are read once, when they are needed.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import entry_points
from importlib.resources import files
from importlib.resources.abc import Traversable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from mqreplay.language.forms import Form, Words
from mqreplay.language.language import ENGLISH, Language, in_english

PACKAGES: Final = "mqreplay.findings"  # the entry points of users' packages
SHARED: Final = "every_kind"
FINISHED: Final = "summary"  # the value of a finding whose kind has no forms: its summary
FORM, ADVICE_FORM = "form", "advice_form"  # values that name a form
PLACE_NAMES: Final = ("consumer_group", "topic", "broker_name", "broker_id", "queue_id", "client_id")
Table = Mapping[str, Any]


class Texts:
    """The texts of a kind. What a file does not have is empty."""

    def __init__(self, table: Table) -> None:
        """Take the content of the file."""
        self._table = table
        self._forms: dict[tuple[str, str, str], Form] = {}
        self._tables: dict[str, dict[str, dict[str, str] | Form]] = {}

    def text(self, part: str, lang: str = ENGLISH) -> str:
        """Return a text that has no fields, such as the rule."""
        text = self._table.get(part, "")
        return str(text if isinstance(text, str) else text.get(lang) or text.get(ENGLISH, ""))

    def has_form(self, part: str, name: str = "") -> bool:
        """Return whether the file has a form."""
        return ENGLISH in self._texts(part, name)

    def form(self, part: str, name: str, lang: str = ENGLISH) -> Form:
        """Return a form of the summary or the advice. Raises ValueError if the file does not have it."""
        key = (part, name, lang)
        if key not in self._forms:
            texts = self._texts(part, name)
            if ENGLISH not in texts:
                raise ValueError(f"the text file of the kind has no {part} {name}".rstrip())
            self._forms[key] = Form(texts.get(lang) or texts[ENGLISH])
        return self._forms[key]

    def names(self, part: str) -> Iterator[str]:
        """Yield the names of the forms of a part; empty: the usual one."""
        table = self._table.get(part, {})
        yield from ("",) if ENGLISH in table else ()
        yield from (name for name, text in table.items() if isinstance(text, dict))

    def tables(self, lang: str) -> Mapping[str, Mapping[str, str] | Form]:
        """Return the words and the forms of values."""
        if lang not in self._tables:
            self._tables[lang] = {name: _words(table, lang) for name, table in self._table.get("words", {}).items()}
        return self._tables[lang]

    def _texts(self, part: str, name: str) -> Mapping[str, str]:
        table = self._table.get(part, {})
        found = table.get(name, {}) if name else table
        return found if isinstance(found, dict) else {}


def _words(table: Table, lang: str) -> dict[str, str] | Form:
    if isinstance(table.get(ENGLISH), str):
        return Form(table.get(lang) or table[ENGLISH])
    return {value: texts.get(lang) or texts[ENGLISH] for value, texts in table.items()}


@cache
def texts_of(kind: str) -> Texts:
    """Return the texts of a kind of mqreplay or of an installed package; empty ones if it has no file."""
    if kind.isidentifier():
        for folder in _folders():
            file = folder.joinpath(f"{kind}.toml")
            if file.is_file():
                return Texts(tomllib.loads(file.read_text("utf-8")))
    return Texts({})


@cache
def _folders() -> tuple[Traversable, ...]:
    """Return the folders of mqreplay's kinds and of those of packages, which are not loaded."""
    return (files("mqreplay.findings"), *dict.fromkeys(_package_folders()))


def _package_folders() -> Iterator[Path]:
    for point in entry_points(group=PACKAGES):
        try:
            spec = find_spec(point.module)
        except Exception:  # registry.py reports it: a package must not stop the night
            continue
        if spec is not None and spec.origin is not None:
            yield Path(spec.origin).parent


def summary_of(row: Table, words: Language) -> str:
    """Return the summary of a row of gold.finding or gold.open_finding in a language."""
    values = values_of(row)
    return str(row["summary"]) if values is None else written_summary(str(row["kind"]), values, words)


def advice_of(row: Table, words: Language) -> str:
    """Return the advice of such a row in a language."""
    values = values_of(row)
    written = "" if values is None else written_advice(str(row["kind"]), values, words)
    return written or str(row["advice"] or "")


def values_of(row: Table) -> dict[str, Any] | None:
    """Return the values of such a row, with those of its place; None for one that an earlier version wrote."""
    if row.get("values") is None:
        return None
    return {name: row[name] for name in PLACE_NAMES} | json.loads(row["values"])


def written_summary(kind: str, values: Table, words: Language) -> str:
    """Return the sentences of a finding's summary."""
    texts, shared = texts_of(kind), texts_of(SHARED)
    with_words = _with_words(texts, words)
    name = values.get(FORM, "")
    if FINISHED in values or not texts.has_form("summary", name):
        summary = str(values.get(FINISHED, ""))
    else:
        summary = texts.form("summary", name, words.name).write(values, with_words)
    return summary + shared.form("summary", "", words.name).write(values, with_words)


def written_advice(kind: str, values: Table, words: Language) -> str:
    """Return what to do next: the advice that the values name, else the usual one; empty if the kind has no text."""
    texts, name = texts_of(kind), values.get(ADVICE_FORM, "")
    name = name if texts.has_form("advice", name) else ""
    if not texts.has_form("advice", name):
        return ""
    return texts.form("advice", name, words.name).write(values, _with_words(texts, words))


def in_english_of(kind: str, values: Table) -> tuple[str, str]:
    """Return summary and advice of a finding as its row has them."""
    return written_summary(kind, values, in_english()), written_advice(kind, values, in_english())


def _with_words(texts: Texts, words: Language) -> Words:
    return Words(words, {**texts_of(SHARED).tables(words.name), **texts.tables(words.name)})
