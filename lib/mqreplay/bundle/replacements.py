"""Replacements of names: words with numbers, and addresses, that sort as text in the order of their numbers."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from typing import Final

from mqreplay.core.java import utf16_key

_NUMBERS: Final = re.compile(r"\d*")
_LOW, _WIDE = 100, 150  # each part of a new address has three digits: text sorts as numbers do

# What a replacement looks like: the word before its number.
WORDS: Final = {
    "cluster": "cluster",
    "broker": "broker",
    "topic": "topic",
    "group": "group",
    "namespace": "namespace",
    "client": "client",
    "instance": "instance",
    "host": "host",
    "tag": "tag",
    "key": "key",
    "message": "message",
    "property": "property",
    "value": "value",
    "setting": "setting",
    "strategy": "com.example.Strategy",
    "attempt": "attempt",
    "receipt": "receipt",
}


def numbered(word: str, names: Iterable[str]) -> dict[str, str]:
    """Return a replacement for each name: the word and a number, in the order of the names.

    >>> numbered("topic", ["pay", "order"])
    {'order': 'topic-01', 'pay': 'topic-02'}
    """
    names = list(names)
    width = max(2, len(str(len(names))))
    joint = "" if "." in word else "-"
    return {name: f"{word}{joint}{n:0{width}d}" for n, name in enumerate(sorted(names, key=utf16_key), 1)}


def new_addresses(taken: Collection[str]) -> Iterator[str]:
    """Yield addresses that sort as text in the order of their numbers, without those of the recording.

    >>> from itertools import islice
    >>> list(islice(new_addresses({"10.100.100.101"}), 2))
    ['10.100.100.100', '10.100.100.102']
    """
    number = 0
    while True:
        high, low = divmod(number, _WIDE)
        parts = (high // _WIDE + _LOW, high % _WIDE + _LOW, low + _LOW)
        address = f"10.{parts[0]}.{parts[1]}.{parts[2]}"
        if address not in taken:
            yield address
        number += 1


def client_id_parts(rest: str) -> list[str]:
    """Return the parts of a client id behind the address, with the characters between them."""
    return re.split(r"([@#])", rest)


def stays_in_client_id(part: str) -> bool:
    """Return whether a part of a client id is no name: a process id, the time of its start, or a separator."""
    return part in ("@", "#") or _NUMBERS.fullmatch(part) is not None
