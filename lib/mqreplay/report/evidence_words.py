"""What a row of evidence says, in words: for each table the columns worth showing, and the text made of them."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from string import Formatter
from typing import Any

from mqreplay.decisions.registry import DECISIONS
from mqreplay.decode.kind import Phrase
from mqreplay.decode.kinds import FILE_KINDS
from mqreplay.language.language import Language, in_english
from mqreplay.report.evidence_values import value_text

WHO: Phrase = (
    "{client_id}, group {consumer_group}",
    "{client_id}",
    "group {consumer_group}",
    "{broker_name}-{broker_id}",
    "{source_name}",
    "{path}",
)
ZERO_IS_NOTHING = frozenset({"reconsume_times", "redelivered_max"})
# Columns with texts, not names: a language translates their values.
IN_WORDS = frozenset(
    ("actual", "cause", "change", "detail", "expected", "flow_control", "judgement", "kind", "listed", "reason")
)
NOT_SHOWN = frozenset({"cluster", "day", "source_digest", "record_id"})


@dataclass(frozen=True)
class Wording:
    """How the rows of a table are shown: their instant, and phrases that say what happened.

    ``instant`` is the column by which rows are sorted; "" for a table without one. A row of a table with ``until``
    lasts until then. A phrase of which a column is null is left out.
    """

    instant: str
    phrases: tuple[Phrase, ...] = ()
    until: str = ""

    @cached_property
    def columns(self) -> frozenset[str]:
        """The columns that the text needs."""
        texts = [text for phrase in (WHO, *self.phrases) for text in alternatives(phrase)]
        named = {name for text in texts for name in columns_in(text)}
        return frozenset(named | {self.instant, self.until} - {""})


WORDINGS: Mapping[str, Wording] = {
    **{kind.table: Wording(kind.time, kind.phrases) for kind in FILE_KINDS.values() if kind.phrases},
    "bronze.quarantine": Wording("", ("{code}: {reason}",)),
    **{
        decision.table: Wording(decision.instant, decision.phrases, decision.until)
        for decision in DECISIONS.values()
        if decision.phrases
    },
}
INSTANTS = ("request_ts", "rebalance_ts", "ts", "to_ts", "from_ts")


def wording_of(table: str, columns: Sequence[str]) -> Wording:
    """Return how rows of the table are shown; of a table without a wording of its own: each column that has a value."""
    if table in WORDINGS:
        return WORDINGS[table]
    instant = next((name for name in INSTANTS if name in columns), "")
    shown = [name for name in columns if name not in {*NOT_SHOWN, "client_id", "consumer_group", instant}]
    return Wording(instant, tuple(f"{name} {{{name}}}" for name in shown))


def who(row: Mapping[str, Any], words: Language | None = None) -> str:
    """Return whom a row is about: a client and its group, a broker, or a file.

    >>> who({"client_id": "c1", "consumer_group": "g"}), who({"broker_name": "b", "broker_id": 0})
    ('c1, group g', 'b-0')
    """
    return filled(WHO, row, words)


def what(wording: Wording, row: Mapping[str, Any], words: Language | None = None) -> str:
    """Return what a row says, in one line.

    >>> row = {"previous_offset": 1200, "new_offset": 35, "broker_name": "b", "queue_id": 2, "topic": "T"}
    >>> what(WORDINGS["silver.offset_change"], row)
    'offset 1,200 -> 35, queue b/2 of T'
    """
    return joined(wording.phrases, row, words)


def joined(phrases: Sequence[Phrase], row: Mapping[str, Any], words: Language | None = None) -> str:
    """Return the phrases with the values of a row, in one line; those without all their values are left out."""
    words = words or in_english()
    texts = [text for phrase in phrases if (text := filled(phrase, row, words))]
    return functools.reduce(lambda text, more: words.filled("{text}, {more}", text=text, more=more), texts or [""])


def columns_in(text: str) -> list[str]:
    """Return the columns that a text of a phrase names.

    >>> columns_in("queue {broker_name}/{queue_id}")
    ['broker_name', 'queue_id']
    """
    return [name for _, name, _, _ in Formatter().parse(text) if name]


def filled(phrase: Phrase, row: Mapping[str, Any], words: Language | None = None) -> str:
    """Return the phrase with the values of a row; "" if none of its texts has all of them.

    A language has a template for each text, without the formats of its fields.
    """
    words = words or in_english()
    for text in alternatives(phrase):
        template, forms = _template(text)
        values = {name: row.get(name) for name in forms}
        if all(value is not None and value != "" for value in values.values()) and not (
            ZERO_IS_NOTHING & values.keys() and 0 in values.values()
        ):
            texts = {name: value_text(each, words, translated=name in IN_WORDS) for name, each in values.items()}
            return words.filled(template).format_map({name: format(texts[name], form) for name, form in forms.items()})
    return ""


@functools.cache
def _template(text: str) -> tuple[str, Mapping[str, str]]:
    """Return a text of a phrase without the formats of its fields, and these by column.

    >>> _template("{size:,} of {kind}")
    ('{size} of {kind}', {'size': ',', 'kind': ''})
    """
    forms = {name: form or "" for _, name, form, _ in Formatter().parse(text) if name}
    return re.sub(r":[^{}]*}", "}", text), forms


def alternatives(phrase: Phrase) -> tuple[str, ...]:
    """Return the texts of a phrase; the first one whose columns have values is used."""
    return (phrase,) if isinstance(phrase, str) else phrase
