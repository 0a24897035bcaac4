"""Plan an ingest: the files that the requested recordings hold now against bronze.source_file. Pure, nothing is read.

The tables must depend only on the files that exist now. So a plan compares contents:

- The content of a JSONL file is its bytes, regardless of its name. The content of a snapshot is its bytes with broker
  and time, regardless of the recording. A brokers.json belongs to its recording.
- Content that is in the tables is not read again. Of several files with the same content, the first by recording and
  path represents it in the ledger; the others are duplicates.
- Rows of content that no file has any more are removed: its file was changed or removed. Lines that were dropped as
  duplicates of its lines are read again from the files that still have them.
- The rows of a file that cannot be read now are kept, and those of a recording that this run does not read. The rows
  of a file with a wrong checksum are removed.
- A snapshot that was added too late to be read (late.py) is tried again.
"""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from mqreplay.decode.recording.files import RECORD_TABLES, SNAPSHOT_FILES
from mqreplay.ingest.recording import NOT_READ, UNREAD_KINDS, Digested, RecordedFile

DIGEST_CHARS = 32  # silver rows carry the first 128 bits of a file's SHA-256
IN_TABLES = ("read", "refused", "superseded")  # statuses of a file that represents its content

Place = tuple[str, str]  # recording, path
Content = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class KnownFile:
    """A row of bronze.source_file; its fields are the columns. Instants are UTC."""

    recording: str
    path: str
    kind: str
    sha256: str
    bytes: int
    status: str
    reason: str | None = None
    rows_in: int = 0
    rows_out: int = 0
    rows_quarantined: int = 0
    rows_duplicate: int = 0
    first_ts: dt.datetime | None = None
    last_ts: dt.datetime | None = None
    rows_expired: int | None = None

    @property
    def digest(self) -> str:
        """Return the source digest of its silver rows."""
        return self.sha256[:DIGEST_CHARS]

    @property
    def place(self) -> Place:
        """Return the place of the file."""
        return self.recording, self.path

    @property
    def file(self) -> RecordedFile:
        """Return the file as in a listing."""
        parts = self.path.split("/")
        source, ts = (parts[1], int(parts[2])) if self.kind in SNAPSHOT_FILES else (None, None)
        return RecordedFile(self.recording, self.path, self.kind, self.bytes, source, ts)


# The columns of the ledger for planning: the fields of KnownFile.
LEDGER = pl.Schema(
    {
        "recording": pl.Categorical(),
        "path": pl.String(),
        "kind": pl.Categorical(),
        "sha256": pl.String(),
        "bytes": pl.Int64(),
        "status": pl.Categorical(),
        "reason": pl.String(),
        "rows_in": pl.Int64(),
        "rows_out": pl.Int64(),
        "rows_quarantined": pl.Int64(),
        "rows_duplicate": pl.Int64(),
        "first_ts": pl.Datetime("us", "UTC"),
        "last_ts": pl.Datetime("us", "UTC"),
        "rows_expired": pl.Int64(),
    }
)


def known_file(row: Sequence[Any]) -> KnownFile:
    """Return a row of the ledger."""
    return KnownFile(*row)


@dataclass(frozen=True, slots=True)
class NewFile:
    """A file of this run and its SHA-256."""

    file: RecordedFile
    sha256: str

    @property
    def digest(self) -> str:
        """Return the source digest of its future silver rows."""
        return self.sha256[:DIGEST_CHARS]

    @property
    def place(self) -> Place:
        """Return the place of the file."""
        return self.file.recording, self.file.path


@dataclass
class Plan:
    """The plan for some files. ``seen`` counts all of them.

    ``renamed``: files that now represent a content, and those that did before. ``gone_places`` are removed from the
    ledger. ``gone``: by kind of JSONL the digests whose rows are removed; the rows of ``gone_snapshots`` are removed
    too.
    """

    seen: int = 0
    new: list[NewFile] = field(default_factory=list)
    duplicates: list[NewFile] = field(default_factory=list)
    not_read: list[NewFile] = field(default_factory=list)
    unreadable: list[NewFile] = field(default_factory=list)
    renamed: list[tuple[NewFile, KnownFile]] = field(default_factory=list)
    gone_places: list[KnownFile] = field(default_factory=list)
    gone: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    gone_snapshots: list[KnownFile] = field(default_factory=list)


def plan(
    found: list[Digested],
    known: Iterable[KnownFile],
    requested: Iterable[str],
    *,
    forget: bool = True,
    is_there: Callable[[RecordedFile], bool] = lambda known: True,
    closed: Iterable[str] = (),
) -> Plan:
    """Return the plan that makes the tables equal to ``found``.

    ``known`` are rows of the ledger: all of ``requested`` recordings, and those of others that may have equal content.
    ``forget`` false keeps the rows of removed files. ``is_there`` returns whether a known file can be read. ``closed``
    are the full paths of folders that cannot be listed: their files count as unchanged.
    """
    made = Plan(seen=len(found))
    by_place = {k.place: k for k in known}
    holders = _standing(found, by_place, set(requested), forget, tuple(f"{folder}/" for folder in closed), made)
    for file, sha256 in found:
        old, entry = by_place.get((file.recording, file.path)), NewFile(file, sha256)
        if file.kind in NOT_READ:
            grown = file.kind not in UNREAD_KINDS and old is not None and old.bytes != file.bytes
            if old is None or grown or (old.status, old.kind, old.sha256) != ("not_read", file.kind, sha256):
                made.not_read.append(entry)
        elif sha256:
            holders[_content(file, sha256)][entry.place] = entry
        elif old is None or (file.distrusted and (old.status, old.sha256) != ("refused", "")):
            made.unreadable.append(entry)
    in_tables = {_content(k.file, k.sha256): k for k in by_place.values() if k.status in IN_TABLES and k.sha256}
    readable = {(file.recording, file.path) for file, sha256 in found if sha256}
    for content, files in holders.items():
        _plan_content(made, files, in_tables.get(content), by_place, readable)
    for content in in_tables.keys() - holders.keys():
        lost = in_tables[content]
        if lost.kind in RECORD_TABLES:
            made.gone[lost.kind].add(lost.digest)
        elif lost.kind in SNAPSHOT_FILES:
            made.gone_snapshots.append(lost)
    _bring_back(made, holders, in_tables, lambda new: new.place in readable or is_there(new.file))
    made.new.sort(key=lambda n: n.place)
    made.gone_snapshots.sort(key=lambda k: k.place)
    return made


def _standing(
    found: list[Digested],
    by_place: Mapping[Place, KnownFile],
    requested: set[str],
    forget: bool,
    closed: tuple[str, ...],
    made: Plan,
) -> dict[Content, dict[Place, NewFile]]:
    """Return by content the known files that count although they are not in this run; enter the removed ones."""
    seen = {(f.recording, f.path): f.kind in NOT_READ or bool(sha256) or f.distrusted for f, sha256 in found}
    holders: dict[Content, dict[Place, NewFile]] = defaultdict(dict)
    for place, known in by_place.items():
        if seen.get(place):
            continue
        mine = known.recording in requested and place not in seen
        if mine and forget and not f"{known.recording}/{known.path}".startswith(closed):
            made.gone_places.append(known)
        elif known.sha256 and known.status in (*IN_TABLES, "duplicate"):
            holders[_content(known.file, known.sha256)][place] = NewFile(known.file, known.sha256)
    return holders


def _content(file: RecordedFile, sha256: str) -> Content:
    if file.kind in RECORD_TABLES:
        return file.kind, sha256
    if file.kind in SNAPSHOT_FILES:
        return file.kind, file.path, sha256
    return file.kind, file.recording, file.path, sha256


def _plan_content(
    made: Plan,
    files: dict[Place, NewFile],
    in_tables: KnownFile | None,
    by_place: Mapping[Place, KnownFile],
    readable: set[Place],
) -> None:
    first, *others = (files[place] for place in sorted(files))
    if in_tables is None:
        made.new += [first] if first.place in readable else []
    elif in_tables.place != first.place:
        made.renamed.append((first, in_tables))
    for other in others:
        old = by_place.get(other.place)
        if old is None or (old.status, old.sha256) != ("duplicate", other.sha256):
            made.duplicates.append(other)


def _bring_back(
    made: Plan,
    holders: Mapping[Content, dict[Place, NewFile]],
    in_tables: Mapping[Content, KnownFile],
    is_there: Callable[[NewFile], bool],
) -> None:
    """Plan to read again the files whose lines were dropped as duplicates of rows that are removed now."""
    for content, known in in_tables.items():
        if known.kind not in made.gone or not known.rows_duplicate or content not in holders:
            continue
        first = holders[content][min(holders[content])]
        if is_there(first):
            made.new.append(first)
            made.gone[known.kind].add(known.digest)
            made.renamed = [(new, old) for new, old in made.renamed if new.place != first.place]
