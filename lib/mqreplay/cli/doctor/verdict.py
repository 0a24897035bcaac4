"""The result for one file, as lines for a person and as facts for a program."""

from __future__ import annotations

from dataclasses import dataclass, field

from mqreplay.cli.doctor.place import Place, spelled
from mqreplay.decode.text import TAKE_BAK
from mqreplay.errors import DecodeError


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
