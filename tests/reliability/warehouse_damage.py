"""Damages of one file or folder of a warehouse: its kinds of file, and what may happen to each of them."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import cycle, product
from pathlib import Path
from random import Random

# The first that matches the path below the warehouse. Commits are told from the last one by the files around them.
KINDS = {
    "data of bronze": r"bronze/\w+/cluster=.*\.parquet",
    "data of silver": r"silver/\w+/cluster=.*\.parquet",
    "data of gold": r"gold/\w+/cluster=.*\.parquet",
    "last commit": r".*/_delta_log/\d+\.json",
    "earlier commit": r".*/_delta_log/\d+\.json",
    "checkpoint": r".*\.checkpoint\.parquet",
    "_last_checkpoint": r".*/_last_checkpoint",
    "table": r"(bronze|silver|gold)/\w+",
    "log of a table": r"(bronze|silver|gold)/\w+/_delta_log",
    "digests": r"\.mqreplay\.digests",
    "remembered": r"\.mqreplay\.remembered",
    "versions": r"\.mqreplay\.versions",
    "journal": r"\.mqreplay\.journal",
    "lock": r"\.mqreplay\.(java\.)?lock",
    "page": r"report/.*",
    "expectations": r"expectations/.*",
}
FOLDERS = ("table", "log of a table")
TABLE = re.compile(r"(bronze|silver|gold)/(\w+)")

Change = Callable[[bytes, Random], bytes]


def _flip(data: bytes, chance: Random) -> bytes:
    changed = bytearray(data)
    changed[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def _without_lines(data: bytes, chance: Random) -> bytes:
    lines = data.splitlines(keepends=True)
    return b"".join(lines[: -chance.randint(1, max(1, len(lines) - 1))])


CONTENTS: dict[str, Change] = {
    "a flipped bit": _flip,
    "cut": lambda data, chance: data[: chance.randrange(1, len(data))],
    "emptied": lambda data, chance: b"",
    "last lines lost": _without_lines,
    "doubled": lambda data, chance: data + data,
    "zeros": lambda data, chance: bytes(len(data)),
    "random bytes": lambda data, chance: chance.randbytes(len(data)),
}
OF_PLACES = ("removed", "older version", "another of its kind")  # what takes no content
ITS_FOLDER = "a folder in its place"


@dataclass(frozen=True)
class Damage:
    """The damage of one seeded number: what happens to a file of which kind, and the chance that picks the rest."""

    number: int
    kind: str
    what: str
    seed: str

    def place(self, root: Path) -> str | None:
        """Return the path of the file or folder below the warehouse; None without one that can have this damage."""
        places = sorted(_places(root, self.kind))
        return Random(self.seed).choice(places) if places else None

    def inflict(self, root: Path, place: str, older: Path) -> bool:
        """Damage it as a fault of the disk does, with another inode, and the same time or another one.

        ``older`` is an earlier state of the warehouse. Return whether the content is another one now.
        """
        chance, path = Random(self.seed), root / place
        before, at = None if path.is_dir() else path.read_bytes(), path.stat().st_mtime_ns
        chance.random()
        others = sorted(set(_places(root, self.kind)) - {place})
        another = root / chance.choice(others) if others else path / "none"
        source = {"older version": older / place, "another of its kind": another}.get(self.what)
        if source is not None and not source.exists():
            return False
        _remove(path)
        if source is not None:
            _copy(source, path)
        elif self.what == ITS_FOLDER:
            path.mkdir()
        elif self.what != "removed":
            assert before is not None
            path.write_bytes(CONTENTS[self.what](before, chance) if before else b"x")
        if path.is_file() and chance.random() < 0.5:
            os.utime(path, ns=(at, at))
        return not path.is_file() or path.read_bytes() != before


def damages(seed: int) -> Iterator[Damage]:
    """Yield damages without end: all pairs of a kind of file and a damage in turn, the files by chance."""
    pairs = [
        (kind, what)
        for kind, what in product(KINDS, [*CONTENTS, *OF_PLACES, ITS_FOLDER])
        if what in OF_PLACES or kind not in FOLDERS
    ]
    Random(seed).shuffle(pairs)
    for number, (kind, what) in enumerate(cycle(pairs)):
        yield Damage(number, kind, what, f"{seed} {number}")


def _places(root: Path, kind: str) -> Iterator[str]:
    wanted = re.compile(KINDS[kind])
    for folder, folders, files in os.walk(root):
        for name in folders if kind in FOLDERS else files:
            path = Path(folder, name)
            if wanted.fullmatch(place := str(path.relative_to(root))) and _is_of(path, kind):
                yield place


def _is_of(path: Path, kind: str) -> bool:
    is_last = not path.with_name(f"{int(path.stem) + 1:020d}.json").exists() if "commit" in kind else None
    return is_last in (None, kind == "last commit")


def _copy(source: Path, to: Path) -> None:
    (shutil.copytree if source.is_dir() else shutil.copy2)(source, to)


def _remove(path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() else path.unlink()


def put_back(root: Path, place: str, whole: Path) -> None:
    """Put the table of a file, or a file of our own, back from a copy of the warehouse."""
    table = TABLE.match(place)
    path = table[0] if table else place
    if (root / path).exists():
        _remove(root / path)
    _copy(whole / path, root / path)


def copied(root: Path, to: Path) -> Path:
    """Copy a warehouse: files of tables are links, which no run writes to."""
    for folder, _, files in os.walk(root):
        target = to / Path(folder).relative_to(root)
        target.mkdir()
        for name in files:
            source = Path(folder, name)
            (os.link if TABLE.match(str(source.relative_to(root))) else shutil.copy2)(source, target / name)
    return to
