"""Names inside of sentences: summaries, reasons, paths. A name is found wherever it is not a part of a longer word."""

from __future__ import annotations

import ipaddress
import json
import re
import shlex
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from mqreplay.bundle.texts import REMOVED_TEXT

# The word before a name says of which kind it is, if there are several of the name.
ANNOUNCED_BY: Final = {
    **dict.fromkeys(("group", "groups"), "group"),
    **dict.fromkeys(("topic", "topics", "on", "read"), "topic"),
    **dict.fromkeys(("broker", "brokers"), "broker"),
    **dict.fromkeys(("client", "clients", "consumer", "member", "members"), "client"),
    "cluster": "cluster",
    **dict.fromkeys(("host", "server"), "host"),
}
# How tables that count reasons write numbers as N (gold.judgement, gold.replay_gap).
_IN_COUNTS: Final = (re.compile(r"[0-9]+"), re.compile(r"-?[0-9]+"))
_WORD_BEFORE: Final = re.compile(r"([A-Za-z]+) $")
_CUT: Final = re.compile(r"[^\s\"'`,;()]{3,}(?=\.\.\.|…)")
_IPV4: Final = re.compile(r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?![\w.]\w|\w)")
_IPV6: Final = re.compile(r"(?<![\w:.])[0-9A-Fa-f]*:[0-9A-Fa-f:]*:[0-9A-Fa-f.:]*[0-9A-Fa-f:](?![\w:])")
_MESSAGE_ID: Final = re.compile(r"(?<![0-9A-Za-z])[0-9A-F]{32}(?![0-9A-Za-z])")
# A class or a host's name; neither a file's name nor a setting such as topicConfig.readQueueNums.
_DOTTED: Final = re.compile(r"(?<![\w./-])[A-Za-z_][\w-]*(?:\.[A-Za-z_$][\w$-]*){2,}")
_DOCUMENTS: Final = re.compile(r"(?:[\w-]+\.)*(?:apache\.org|github\.com)|.*\.(?:json|bak|gz|xz|log|toml|java)")


class Sentences:
    """Replaces names in sentences. ``replaced`` has the replacements by kind; ``word`` replaces a class or host.

    A name of one character, or of digits alone, is replaced only behind a word that announces it.
    """

    def __init__(self, replaced: Mapping[str, Mapping[str, str]], word: Callable[[str], str] = lambda _: REMOVED_TEXT):
        """Take the replacements; of several kinds of one name, the first counts if no word announces another."""
        self._kinds: dict[str, dict[str, str]] = defaultdict(dict)
        self._word = word
        for kind, names in replaced.items():
            for name, new in names.items():
                self._kinds[name].setdefault(kind, new)
        plain = set(self._kinds)
        for kind, names in replaced.items():
            for name, new in names.items():
                for form, new_form in _other_forms(name, new):
                    if form not in plain:
                        self._kinds[form].setdefault(kind, new_form)
        lengths: dict[str, set[int]] = defaultdict(set)
        for name in self._kinds:
            lengths[name[:2]].add(len(name))
        self._lengths = {start: sorted(found, reverse=True) for start, found in lengths.items()}

    def replace(self, text: str, rest: Callable[[str], str] | None = None) -> str:
        """Return the text with other names. ``rest`` replaces the text between names; by default addresses go."""
        between = rest or self.without_addresses
        made, done = [], 0
        for begin, end, new in self._found(text):
            made += [between(self._uncut(text[done:begin], text)), new]
            done = end
        return "".join([*made, between(self._uncut(text[done:], text))])

    def without_addresses(self, text: str) -> str:
        """Return a text without addresses, message ids, classes and names of hosts that are not known."""
        for pattern in (_MESSAGE_ID, _IPV4):
            text = pattern.sub(REMOVED_TEXT, text)
        text = _IPV6.sub(lambda found: REMOVED_TEXT if _is_address(found[0]) else found[0], text)
        return _DOTTED.sub(lambda found: found[0] if _DOCUMENTS.fullmatch(found[0]) else self._word(found[0]), text)

    def _found(self, text: str) -> Iterator[tuple[int, int, str]]:
        """Yield where names are, from left to right, the longest at each place, and their replacements."""
        at = 0
        while at < len(text):
            if at and text[at].isalnum() and text[at - 1].isalnum():
                at += 1
                continue
            end = next(self._ends(text, at), None)
            if end is None:
                at += 1
            else:
                yield at, end, self._new(text, at, end)
                at = end

    def _ends(self, text: str, at: int) -> Iterator[int]:
        for start in (text[at : at + 2], text[at : at + 1]):
            for length in self._lengths.get(start, ()):
                end = at + length
                name = text[at:end]
                if name not in self._kinds or (end < len(text) and text[end].isalnum() and name[-1].isalnum()):
                    continue
                if (len(name) > 1 and not name.isdecimal()) or self._announced(text, at) in self._kinds[name]:
                    yield end

    def _announced(self, text: str, at: int) -> str | None:
        before = _WORD_BEFORE.search(text[max(at - 12, 0) : at])
        return None if before is None else ANNOUNCED_BY.get(before[1].lower())

    def _new(self, text: str, at: int, end: int) -> str:
        kinds = self._kinds[text[at:end]]
        announced = self._announced(text, at)
        return kinds[announced] if announced in kinds else next(iter(kinds.values()))

    def _uncut(self, part: str, text: str) -> str:
        """Remove the begin of a name that was cut: `order-gro...`."""
        if "..." not in text and "…" not in text:
            return part
        return _CUT.sub(
            lambda found: REMOVED_TEXT if any(name.startswith(found[0]) for name in self._kinds) else found[0], part
        )


def _other_forms(name: str, new: str) -> Iterator[tuple[str, str]]:
    """Yield other forms of a name in sentences, and of its replacement: quoted, escaped, and with N for its digits."""
    yield from ((form, new) for form in (shlex.quote(name), json.dumps(name, ensure_ascii=False)[1:-1]))
    yield from ((form, new) for form in (json.dumps(name)[1:-1], repr(name)[1:-1]))
    for digits in _IN_COUNTS:
        counted = digits.sub("N", name)
        if counted != name and sum(map(str.isalpha, counted.replace("N", ""))) > 2:
            yield counted, digits.sub("N", new)


def _is_address(text: str) -> bool:
    try:
        return bool(ipaddress.ip_address(text))
    except ValueError:
        return False
