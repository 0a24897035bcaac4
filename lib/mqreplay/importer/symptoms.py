"""What to collect next, by what an import found: symptoms.toml says it, and docs/symptoms.md is made of it."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Final, NamedTuple

PAGE: Final = "docs/symptoms.md"
MOST: Final = 5  # pieces that are advised
FEW: Final = 3  # copies of a file that are needed to see a change
MOST_NAMED: Final = 5  # names in a sentence


class Piece(NamedTuple):
    """Something to collect, what it shows, and the kinds of records, logs and copies that it gives."""

    collect: str
    shows: str
    gives: frozenset[str]


class Symptom(NamedTuple):
    """What an operator sees, what to collect for it, and the findings that name its cause."""

    title: str
    pieces: tuple[str, ...]
    signs: frozenset[str]
    about: str
    then: str
    example: str
    says: tuple[str, ...]
    kinds: tuple[str, ...]

    @property
    def place(self) -> str:
        """Return its section of the page."""
        return f"{PAGE}#{re.sub('[^a-z0-9 ]', '', self.title.lower()).replace(' ', '-')}"


@cache
def symptoms() -> tuple[Mapping[str, Piece], tuple[Symptom, ...]]:
    """Return the pieces by name, and the symptoms in the order of the page."""
    text: dict[str, Any] = tomllib.loads(files(__package__).joinpath("symptoms.toml").read_text(encoding="utf-8"))
    pieces = {name: Piece(one["collect"], one["shows"], frozenset(one["gives"])) for name, one in text["piece"].items()}
    lists = ("pieces", "says", "kinds")
    return pieces, tuple(
        Symptom(**{**one, **{name: tuple(one[name]) for name in lists}, "signs": frozenset(one["signs"])})
        for one in text["symptom"]
    )


def next_pieces(found: Collection[str], brokers: str = "each broker", out: str = "RECORDING") -> list[str]:
    """Return what to collect for the symptoms that ``found`` shows, the pieces that most of them lack first.

    ``found`` has kinds of records, names of copied files and logs, and commands of mqadmin.

    >>> next_pieces({"sends", "cluster_info"})[0]
    '`mqadmin brokerStatus -b ADDR` of each master and slave, twice, three minutes apart: to see how full its disks are, and how far the slave is behind (docs/symptoms.md#a-send-fails-with-code-2-14-or-17)'
    >>> len(next_pieces(()))
    1
    """  # noqa: E501
    pieces, all_symptoms = symptoms()
    likely = [symptom for symptom in all_symptoms if symptom.signs.intersection(found)]
    if not likely:
        titles = "; ".join(symptom.title for symptom in all_symptoms)
        return [f"{PAGE} says what to collect in two minutes, by what you see: {titles}"]
    asking: dict[str, list[Symptom]] = {}
    for symptom in likely:
        for name in symptom.pieces:
            if not pieces[name].gives.intersection(found):
                asking.setdefault(name, []).append(symptom)
    names = sorted(asking, key=lambda name: -len(asking[name]))[:MOST]
    return [
        f"{piece.collect.format(brokers=brokers, out=out)}: to see {piece.shows} ({asking[name][0].place})"
        for name, piece in ((name, pieces[name]) for name in names)
    ]


def missing_evidence(
    offset_copies: Mapping[str, int],
    found: Collection[str],
    known: Sequence[str],
    described: Collection[str],
    of_logs: Sequence[str],
    out: str,
) -> list[str]:
    """Return advice, the most helpful evidence first.

    ``offset_copies`` counts the copies of consumerOffset.json by broker; ``found`` is as in `next_pieces`; ``known``
    are all known brokers by name-id, ``described`` those with known settings; ``of_logs`` is what the logs lack.

    >>> missing_evidence({"b-0": 2}, {"physical_memory_bytes"}, ["b-0", "b-1"], ["b-0"], [], "r")[:2]
    ['more copies of consumerOffset.json of b-0: fewer than 3 show no change', 'copies of consumerOffset.json of b-1, which other evidence names']
    """  # noqa: E501
    helps = []
    few = [name for name, count in offset_copies.items() if count < FEW]
    lacking = [name for name in known if name not in offset_copies]
    undescribed = [name for name in known if name not in described]
    if few:
        helps.append(f"more copies of consumerOffset.json of {_some(few)}: fewer than {FEW} show no change")
    if offset_copies and lacking:
        helps.append(f"copies of consumerOffset.json of {_some(lacking)}, which other evidence names")
    settings = {"brokers.json"} if described and not undescribed else set()
    helps += of_logs
    helps += next_pieces({*found, *settings}, _some(undescribed) if undescribed else "each broker", out)
    helps.append("for the next night: `mqreplay record NAMESRV --out DIR`, if name servers and brokers can be reached")
    return helps


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return f"{', '.join(names[:MOST_NAMED])}{more}"
