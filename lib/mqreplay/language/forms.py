"""A form of a sentence and values -> the sentence, in one language.

* ``{name}`` is a value. One that is not known is empty.
* ``{n:queue}`` is a number with its noun: 1 queue, 8 queues; ``{n:retry|retries}`` has a plural of its own.
  ``{n!w:was|were}`` is the word alone.
* ``{s:time}`` are seconds as a time: 95 s, 2 h 5 min; ``{s:about}`` has one unit: 88 min. ``{ts:clock}`` is the time of
  an instant without its day, ``{name:capital}`` a name with a capital.
* ``{why:text}`` is an English text that the catalogue of the language has.
* ``{cause:TABLE}`` is the word of the value in a table of words, or the form of this name, if the value has names.
* A list has commas; ``{addresses:... and ...}`` has "and" between its items, and ``{causes:TABLE... and ...}`` words.
* ``[...]`` is left out if a value in it is not known; ``[...|...]`` is the first alternative with all its values.
* ``{?name}`` writes nothing, and holds if the value is neither null, false, 0 nor empty; ``{?not name}`` if it is;
  ``{?name=word}`` if the value is this word.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from mqreplay.language.language import ENGLISH, Language

Values = Mapping[str, Any]
MINUTE, HOUR, DAY = 60, 3_600, 86_400  # seconds
_TOKEN: Final = re.compile(r"\{([^{}]+)\}|[\[\]|]")
_FIELD: Final = re.compile(r"(\w+)(!w)?(?::(.*))?", re.DOTALL)
_CONDITION: Final = re.compile(r"\?(not )?(\w+)(?:=(.*))?")
_UNITS: Final[Mapping[str, tuple[str, str, str, str]]] = {
    "en": ("{} s", "{} min", "{} h", "{} d"),
    "zh": ("{} 秒", "{} 分钟", "{} 小时", "{} 天"),
}


@dataclass(frozen=True)
class Words:
    """What values are written with: the language, and words or forms by the names of tables."""

    language: Language
    tables: Mapping[str, Mapping[str, str] | Form]


@dataclass(frozen=True)
class Field:
    """A value in a form."""

    name: str
    is_word: bool
    spec: str


@dataclass(frozen=True)
class Condition:
    """Whether an alternative is meant; ``word`` is the value that it must have, None: any."""

    name: str
    is_negated: bool
    word: str | None

    def holds(self, values: Values) -> bool:
        """Return whether the values meet it."""
        value = values.get(self.name)
        is_met = bool(value) if self.word is None else value is not None and str(value) == self.word
        return is_met != self.is_negated


@dataclass(frozen=True)
class Choice:
    """Alternatives, of which the first that can be written is."""

    alternatives: tuple[tuple[Part, ...], ...]


Part = str | Field | Condition | Choice


class Form:
    """A sentence with fields."""

    def __init__(self, text: str) -> None:
        """Parse the text. Raises ValueError for brackets without their pair."""
        tokens = _tokens(text)
        alternatives = list(_alternatives(tokens))
        if len(alternatives) != 1 or next(tokens, None) is not None:
            raise ValueError(f"brackets without their pair: {text}")
        self._parts = alternatives[0]
        self.names = frozenset(_names(self._parts))

    def write(self, values: Values, words: Words) -> str:
        """Return the sentence.

        >>> from mqreplay.language.language import in_english
        >>> form = Form("Group {group}: {n:queue}[ ({places})][; {?lost}{lost:message} {lost!w:was|were} lost].")
        >>> form.write({"group": "g", "n": 1, "lost": 2}, Words(in_english(), {}))
        'Group g: 1 queue; 2 messages were lost.'
        >>> form.write({"group": "g", "n": 8, "places": ["b/0", "b/1"], "lost": 0}, Words(in_english(), {}))
        'Group g: 8 queues (b/0, b/1).'
        """
        return "".join(_written(part, values, words) for part in self._parts)


def _tokens(text: str) -> Iterator[Part]:
    """Yield literals, fields and conditions; brackets and bars are literals of their own."""
    end = 0
    for token in _TOKEN.finditer(text):
        if token.start() > end:
            yield text[end : token.start()]
        yield token[0] if token[1] is None else _field(token[1])
        end = token.end()
    if end < len(text):
        yield text[end:]


def _field(text: str) -> Field | Condition:
    if condition := _CONDITION.fullmatch(text):
        return Condition(condition[2], condition[1] is not None, condition[3])
    field = _FIELD.fullmatch(text)
    if field is None:
        raise ValueError(f"no field: {{{text}}}")
    return Field(field[1], field[2] is not None, field[3] or "")


def _alternatives(tokens: Iterator[Part], depth: int = 0) -> Iterator[tuple[Part, ...]]:
    """Yield the alternatives up to the bracket that ends them."""
    parts: list[Part] = []
    for token in tokens:
        if token == "[":
            parts.append(Choice(tuple(_alternatives(tokens, depth + 1))))
        elif token == "]" and depth:
            yield tuple(parts)
            return
        elif token == "|" and depth:
            yield tuple(parts)
            parts = []
        elif token in ("[", "]"):
            raise ValueError("brackets without their pair")
        else:
            parts.append(token)
    if depth:
        raise ValueError("brackets without their pair")
    yield tuple(parts)


def _names(parts: Sequence[Part]) -> Iterator[str]:
    for part in parts:
        if isinstance(part, Choice):
            for alternative in part.alternatives:
                yield from _names(alternative)
        elif not isinstance(part, str):
            yield part.name


def _written(part: Part, values: Values, words: Words) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, Field):
        return _value(part, values.get(part.name), words)
    if isinstance(part, Choice):
        chosen = next((each for each in part.alternatives if _is_possible(each, values)), ())
        return "".join(_written(each, values, words) for each in chosen)
    return ""


def _is_possible(parts: Sequence[Part], values: Values) -> bool:
    """Return whether all conditions hold and all values are known, those of inner brackets apart."""
    return all(
        part.holds(values) if isinstance(part, Condition) else values.get(part.name) not in (None, "", [])
        for part in parts
        if isinstance(part, Condition | Field)
    )


def _value(field: Field, value: Any, words: Words) -> str:
    if value is None:
        return ""
    if isinstance(value, list):
        spec, dots, separator = field.spec.partition("...")
        items = [_item(spec, item, words) for item in value]
        return (separator.removesuffix("...") if dots else ", ").join(items)
    if field.is_word:
        one, _, many = field.spec.partition("|")
        return one if value == 1 else many
    return _item(field.spec, value, words)


def _item(spec: str, value: Any, words: Words) -> str:
    table = words.tables.get(spec)
    if isinstance(table, Form):
        return table.write(value, words)
    if table is not None:
        return table.get(str(value), str(value))
    if spec == "":
        return str(value)
    if spec == "text":
        return words.language.text(str(value))
    if spec == "capital":
        return str(value)[:1].upper() + str(value)[1:]
    if spec == "clock":
        return str(value)[-len("00:00:00") :]
    if spec in ("time", "about"):
        return _time(value, spec == "about", words.language.name)
    one, _, many = spec.partition("|")
    return f"{value} {one if value == 1 else many or f'{one}s'}"


def _time(s: int, is_rough: bool, language: str) -> str:
    """Return seconds as text, in the largest unit of which there are two, and the next one; if rough, without it.

    >>> _time(95, False, "en"), _time(7_500, False, "en"), _time(7_500, True, "en"), _time(9_947_000, False, "en")
    ('95 s', '2 h 5 min', '2 h', '115 d 3 h')
    """
    in_s, in_min, in_h, in_d = _UNITS.get(language, _UNITS[ENGLISH])
    if is_rough and 2 * MINUTE <= s < 2 * HOUR:
        return in_min.format(s // MINUTE)
    if s < 2 * HOUR:
        return in_s.format(s)
    if s < 2 * DAY:
        rest = "" if is_rough else " " + in_min.format(s % HOUR // MINUTE)
        return in_h.format(s // HOUR) + rest
    return in_d.format(s // DAY) + ("" if is_rough else " " + in_h.format(s % DAY // HOUR))
