"""The replacement of any text of a warehouse's tables."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

from mqreplay.bundle.names import Names
from mqreplay.bundle.replacements import WORDS
from mqreplay.bundle.texts import REMOVED_TEXT, replace, setting, text
from mqreplay.decode.kinds import KINDS
from mqreplay.lake.warehouse import Warehouse
from mqreplay.night.anonymise.collect import names_in
from mqreplay.night.anonymise.columns import (
    FIXED_WORDS,
    NOT_SHOWN,
    PATH_OR_SOURCE,
    REFUSAL,
    SAMPLE,
    SENTENCE,
    SETTING,
    role_of,
)
from mqreplay.night.anonymise.sentences import Sentences

# Names that sentences may hold, those that count first of several kinds of one name. With their replacements by role.
IN_SENTENCES: Final = (
    *("group", "topic", "broker", "cluster", "client", "host", "address", "strategy", "expression", "tag"),
    *("keys", "message_id"),
)
PART_WORDS: Final = {"client id": "client", "ip": "host", "ip6": "host", "namespace": "group", "instance": "client"}
CACHED: Final = 100_000  # replacements that are kept for each role
_PLACE_WORD: Final = re.compile(r"[^\W\d_]+")
_QUOTED: Final = re.compile(r"(?<!\w)'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"")
_FIELD: Final = re.compile(r"['\"][a-z][a-z_]*['\"]|['\"][a-z]+(?:[A-Z][a-z]+)+['\"]")
# What paths of recordings consist of, beside names.
_PLACE_WORDS_TEXT: Final = """
snapshots logs mqadmin client clients broker json jsonl gz zip tar xz txt log bak pcap pcapng store config offsets
consumerOffset delayOffset topics subscriptionGroup SHA SHA256SUMS line lines file more invalid keys T Z
"""
_PLACE_WORDS: Final = frozenset(
    {
        *(word.casefold() for word in _PLACE_WORDS_TEXT.split()),
        *(part.casefold() for stem in KINDS for part in stem.split("_")),
        *(word.casefold() for word in WORDS.values()),
    }
)


class Replacements:
    """The replacement of each text of a warehouse's tables. A name has the same one in all clusters."""

    def __init__(self, warehouse: Warehouse) -> None:
        """Read all names of the warehouse."""
        found = names_in(warehouse)
        self._names = names = Names()
        for role in sorted(found):
            for value in sorted(found[role], key=str):
                _replaced(names, role, value)
        names.number()
        by_kind: dict[str, dict[str, str]] = {kind: {} for kind in IN_SENTENCES}
        for role in IN_SENTENCES:
            by_kind[role] |= {value: _replaced(names, role, value) for value in sorted(found.get(role, ()))}
        for kind, replaced in names.mapping().items():
            known = by_kind.get(PART_WORDS.get(kind, kind))
            if known is not None:
                known |= {name: new for name, new in replaced.items() if name not in known}
        by_kind["expression"].pop("*", None)
        self._sentences = Sentences(
            {kind: {name: new for name, new in each.items() if name} for kind, each in by_kind.items()},
            lambda word: text(names, word),
        )
        self._of_role: dict[str, Callable[[Any], Any]] = {}

    def of_role(self, role: str) -> Callable[[Any], Any]:
        """Return the function that replaces a text of a role of columns.py; with SETTING, a pair of key and value."""
        if role not in self._of_role:
            self._of_role[role] = lru_cache(CACHED)(self._function(role))
        return self._of_role[role]

    def cluster(self, name: str) -> str:
        """Return the replacement of a cluster's name."""
        return str(self.of_role("cluster")(name))

    def _function(self, role: str) -> Callable[[Any], Any]:
        own: dict[str, Callable[[Any], Any]] = {
            SENTENCE: self._sentences.replace,
            REFUSAL: lambda value: self._sentences.replace(value, self._unquoted),
            PATH_OR_SOURCE: lambda value: self._sentences.replace(value, _plain_place),
            SAMPLE: self._sample,
            NOT_SHOWN: lambda _: REMOVED_TEXT,
            FIXED_WORDS: lambda value: value,
        }
        return own.get(role) or (lambda value: _or_removed(self._names, role, value))

    def _unquoted(self, part: str) -> str:
        """Return the text between names without unknown values that it quotes."""
        return self._sentences.without_addresses(
            _QUOTED.sub(lambda found: found[0] if _FIELD.fullmatch(found[0]) else f"'{REMOVED_TEXT}'", part)
        )

    def _sample(self, sample: str) -> str:
        try:
            return json.dumps(self._of_sample("", json.loads(sample)), ensure_ascii=False)
        except ValueError:
            return REMOVED_TEXT

    def _of_sample(self, column: str, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self._of_sample(str(key), each) for key, each in value.items()}
        if isinstance(value, list):
            return [self._of_sample(column, each) for each in value]
        if not isinstance(value, str):
            return value
        role = role_of("", column)
        return self.of_role(SENTENCE if role in (NOT_SHOWN, SETTING) else role)(value)


def _replaced(names: Names, role: str, value: Any) -> Any:
    if role == SETTING:
        return setting(names, value[0], value[1])
    return replace(names, role, value)


def _or_removed(names: Names, role: str, value: Any) -> Any:
    """Return the replacement; REMOVED for a name that was not collected."""
    try:
        return _replaced(names, role, value)
    except (KeyError, ValueError):
        return REMOVED_TEXT


def _plain_place(part: str) -> str:
    """Return a part of a path without unknown words."""
    return _PLACE_WORD.sub(lambda word: word[0] if word[0].casefold() in _PLACE_WORDS else REMOVED_TEXT, part)
