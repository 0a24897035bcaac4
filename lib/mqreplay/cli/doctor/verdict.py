"""The result for one file, as lines for a person and as facts for a program."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import groupby
from typing import NamedTuple

from mqreplay.decode.text import TAKE_BAK
from mqreplay.words.errors import DecodeError

AROUND = 40  # characters shown on each side
MOST_BYTES = 4 * AROUND + 4  # largest bytes of these characters, and one more at the border
REPEATS = 3  # repeats of an invisible character; more are counted
NAMES = {"\n": "LF", "\r": "CR", "\t": "TAB"}


@dataclass
class Verdict:
    """A file, its kind, whether it is intact, and its lines: (label, text)."""

    path: str
    kind: str
    whole: bool = True
    lines: list[tuple[str, str]] = field(default_factory=list)
    facts: dict[str, object] = field(default_factory=dict)

    def say(self, what: str, words: str) -> None:
        """Add a line for the terminal; invisible characters in names are escaped."""
        self.lines.append((what, spelled(words)))

    def as_text(self) -> str:
        """Return the text for the terminal."""
        head = [f"{'ok   ' if self.whole else 'WRONG'} {spelled(self.path)}"]
        return "\n".join(head + [f"      {what:9} {words}" for what, words in self.lines])

    def as_dict(self) -> dict[str, object]:
        """Return the values for --json."""
        return {"path": self.path, "kind": self.kind, "whole": self.whole, **self.facts}


def error_facts(error: DecodeError, place: Place | None) -> dict[str, object]:
    """Return a refusal for JSON; the place is None if the meaning is wrong, not a byte.

    >>> error_facts(DecodeError("foreign", "another file"), None)
    {'code': 'foreign', 'detail': 'another file', 'place': None}
    """
    return {"code": error.code, "detail": plain(error), "place": None if place is None else place._asdict()}


def plain(error: DecodeError) -> str:
    """Return the error without the advice to take a .bak, which may be missing.

    >>> plain(DecodeError("torn", "cut short; take the .bak"))
    'cut short'
    """
    return error.detail.removesuffix(TAKE_BAK)


class Place(NamedTuple):
    """``byte`` and ``character`` count from 0 in the file, ``line`` and ``column`` (in characters) from 1."""

    byte: int
    character: int
    line: int
    column: int
    before: str
    after: str

    @property
    def shown(self) -> str:
        """Return the text around it on one line, with a triangle right before the place."""
        return f"{self.before} ▶ {self.after}".strip()


def place_of(data: bytes, byte: int) -> Place:
    """Return the place of a byte (from 0; past the end is the end) in a file's bytes.

    >>> place_of(b'{\\n "a":\\x00', 6)
    Place(byte=6, character=6, line=2, column=5, before='{⟨LF⟩ "a"', after=':⟨U+0000⟩ ⟨end⟩')
    """
    byte = min(byte, len(data))
    past = _text(data[:byte])
    begins = byte <= MOST_BYTES and len(past) <= AROUND
    rest = _text(data[byte : byte + MOST_BYTES])
    ends = byte + MOST_BYTES >= len(data) and len(rest) <= AROUND
    return Place(
        byte,
        len(past),
        past.count("\n") + 1,
        len(past) - (past.rfind("\n") + 1) + 1,
        ("" if begins else "…") + spelled(past[-AROUND:]),
        spelled(rest[:AROUND]) + ((" ⟨end⟩" if rest else "⟨end⟩") if ends else "…"),
    )


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def spelled(text: str) -> str:
    """Return the text with invisible characters spelled out and their runs counted; invalid UTF-8 in hex.

    >>> spelled("a\\tb\\u00a0" + "\\x00" * 9), spelled(b"\\xff".decode("utf-8", "surrogateescape"))
    ('a⟨TAB⟩b⟨U+00A0⟩⟨U+0000 × 9⟩', '⟨0xff⟩')
    """
    parts = []
    for character, group in groupby(text):
        times = len(list(group))
        if character.isprintable():
            parts.append(character * times)
        elif times > REPEATS:
            parts.append(f"⟨{_name(character)} × {times}⟩")
        else:
            parts.append(f"⟨{_name(character)}⟩" * times)
    return "".join(parts)


def _name(character: str) -> str:
    if "\udc80" <= character <= "\udcff":  # as surrogateescape keeps a stray byte
        return f"0x{ord(character) - 0xDC00:02x}"
    return NAMES.get(character) or f"U+{ord(character):04X}"
