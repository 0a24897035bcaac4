"""What of a recording is new: its files against bronze.source_file, by digest. Nothing is read twice, or lost.

- Same place, same bytes: read before; nothing to do.
- Same place, other bytes: changed; what it gave is replaced.
- Other place, bytes of a JSONL file read before: a duplicate; it gives nothing.
- A snapshot that came too late to be read (late.py) is tried again.
- A file that cannot be read is told of, and tried again; if it could be before, what was made of it stands.
- A snapshot is told by its place (broker and time), so the same bytes at another time are a snapshot of their own; in
  the same place of another recording they are a duplicate (late.py).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass, field

from mqreplay.ingest.recording import NOT_READ, RECORD_TABLES, RecordedFile

DIGEST_CHARS = 32  # silver rows carry the first 128 bits of a file's SHA-256


@dataclass(frozen=True, slots=True)
class KnownFile:
    """A row of bronze.source_file, as far as planning needs it."""

    recording: str
    path: str
    kind: str
    sha256: str
    status: str
    rows_duplicate: int
    first_ts: dt.datetime | None = None
    last_ts: dt.datetime | None = None

    @property
    def digest(self) -> str:
        """What its silver rows carry."""
        return self.sha256[:DIGEST_CHARS]


@dataclass(frozen=True, slots=True)
class NewFile:
    """A file to read: what it is, its SHA-256, and the bytes that lay in its place before, if any were read."""

    file: RecordedFile
    sha256: str
    replaces: str | None = None

    @property
    def digest(self) -> str:
        """What its silver rows will carry."""
        return self.sha256[:DIGEST_CHARS]


@dataclass
class Plan:
    """What a run has to do. ``seen`` counts every file that lies there."""

    seen: int = 0
    new: list[NewFile] = field(default_factory=list)
    duplicates: list[NewFile] = field(default_factory=list)
    not_read: list[NewFile] = field(default_factory=list)
    unreadable: list[NewFile] = field(default_factory=list)

    @property
    def nothing_new(self) -> bool:
        """Whether this recording was read whole before."""
        return not (self.new or self.duplicates or self.not_read or self.unreadable)

    def of(self, *kinds: str) -> list[NewFile]:
        """New files of these kinds, in path order."""
        return [n for n in self.new if n.file.kind in kinds]


def plan(found: list[tuple[RecordedFile, str]], known: Iterable[KnownFile]) -> Plan:
    """What is new of ``found`` against ``known``; a replaced file brings back those that were its copies."""
    by_place = {(k.recording, k.path): k for k in known}
    read_before = {(k.kind, k.sha256) for k in by_place.values() if k.status in ("read", "refused")}
    made = Plan(seen=len(found))
    for file, sha256 in found:
        old = by_place.get((file.recording, file.path))
        if old is not None and (not sha256 or (old.sha256 == sha256 and old.status != "late")):
            continue
        entry = NewFile(file, sha256, old.digest if old is not None and old.status == "read" else None)
        if file.kind in NOT_READ:
            made.not_read.append(entry)
        elif not sha256:
            made.unreadable.append(entry)
        elif file.kind in RECORD_TABLES and (file.kind, sha256) in read_before:
            made.duplicates.append(entry)
        else:
            made.new.append(entry)
            read_before.add((file.kind, sha256))
    _bring_back(made, found, by_place)
    return made


def _bring_back(made: Plan, found: list[tuple[RecordedFile, str]], by_place: dict[tuple[str, str], KnownFile]) -> None:
    """Plans the files whose lines, or whole selves, were dropped as copies of what is now replaced."""
    gone = {n.replaces for n in made.new if n.replaces is not None}
    kinds = {n.file.kind for n in made.new if n.replaces is not None and n.file.kind in RECORD_TABLES}
    planned = {(n.file.recording, n.file.path) for n in made.new}
    for file, sha256 in found:
        old = by_place.get((file.recording, file.path))
        if not sha256 or old is None or file.kind not in kinds or (file.recording, file.path) in planned:
            continue
        if old.rows_duplicate:
            made.new.append(NewFile(file, sha256, old.digest))
        elif old.status == "duplicate" and old.digest in gone:
            gone.discard(old.digest)
            made.new.append(NewFile(file, sha256))
