"""What is found of one file: the same for a person, line by line, and for a program, as facts."""

from __future__ import annotations

from dataclasses import dataclass, field

from mqreplay.cli.doctor.place import Place, spelled
from mqreplay.decode.text import TAKE_BAK
from mqreplay.errors import DecodeError


@dataclass
class Verdict:
    """A file, what it is taken for, whether it is whole, and what is said of it: (what, in words)."""

    path: str
    kind: str
    whole: bool = True
    said: list[tuple[str, str]] = field(default_factory=list)
    facts: dict[str, object] = field(default_factory=dict)

    def say(self, what: str, words: str) -> None:
        """Adds a line for the reader; names in it come from anywhere, and nothing in them may hide."""
        self.said.append((what, spelled(words)))

    def as_text(self) -> str:
        """As the terminal shows it."""
        lines = [f"{'ok   ' if self.whole else 'WRONG'} {spelled(self.path)}"]
        return "\n".join(lines + [f"      {what:9} {words}" for what, words in self.said])

    def as_dict(self) -> dict[str, object]:
        """As --json gives it."""
        return {"path": self.path, "kind": self.kind, "whole": self.whole, **self.facts}


def error_facts(error: DecodeError, place: Place | None) -> dict[str, object]:
    """A refusal for a program; the place is None where it is the meaning that is wrong, not a byte.

    >>> error_facts(DecodeError("foreign", "another file"), None)
    {'code': 'foreign', 'detail': 'another file', 'place': None}
    """
    return {"code": error.code, "detail": plain(error), "place": None if place is None else place._asdict()}


def plain(error: DecodeError) -> str:
    """What is wrong, without the advice to take a .bak, which may not be there.

    >>> plain(DecodeError("torn", "cut short; take the .bak"))
    'cut short'
    """
    return error.detail.removesuffix(TAKE_BAK)


def counted(count: int, noun: str) -> str:
    """A number and its noun.

    >>> counted(1, "key"), counted(2_000, "key"), counted(1, "entry"), counted(0, "entry")
    ('1 key', '2,000 keys', '1 entry', '0 entries')
    """
    many = noun[:-1] + "ies" if noun.endswith("ry") else noun + "s"
    return f"{count:,} {noun if count == 1 else many}"
