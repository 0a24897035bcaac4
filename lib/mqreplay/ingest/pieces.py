"""Split a source's snapshots into pieces that are read in parallel and join exactly.

The state at the start of a piece is the last complete file of each family, regardless of earlier files. So a piece also
gets the files just before it: it goes back to the last decodable file of each family, reads on from there without
output, and then has the same state as a reading of all files. Only invalid keys are reported once per piece. If a
source has more of them than [ingest] quarantine_rows, the listed ones depend on the pieces.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from mqreplay.ingest.diffs import Source
from mqreplay.ingest.entries import SnapshotFile, decode
from mqreplay.ingest.snapshot_rows import Row
from mqreplay.words.errors import DecodeError

LEAD = 20  # files of a family that a piece goes back at most; torn files are rare


@dataclass(frozen=True)
class Piece:
    """A piece: ``own`` are its files, ``lead`` the files before. ``first``: families with all earlier files in lead."""

    own: list[SnapshotFile]
    lead: list[SnapshotFile]
    first: frozenset[str]
    bytes: int = 0


def pieces(files: Iterable[SnapshotFile], size_of: dict[str, int], most_bytes: int) -> list[Piece]:
    """Return the files by time, in pieces of about ``most_bytes``. ``size_of`` is full path -> bytes.

    A polled source is one piece.
    """
    listed = sorted(files, key=lambda f: (f.ts_ms, f.path))
    cuts, waiting = [0], 0
    if any(file.is_polled for file in listed):  # each covers an hour, which may include copies of other files
        most_bytes = sys.maxsize
    for at, file in enumerate(listed):
        if waiting >= most_bytes and file.ts_ms != listed[at - 1].ts_ms:
            cuts.append(at)
            waiting = 0
        waiting += size_of.get(file.full_path, 0)
    spans = zip(cuts, [*cuts[1:], len(listed)], strict=True)
    return [
        replace(_piece(listed, begin, end), bytes=sum(size_of.get(f.full_path, 0) for f in listed[begin:end]))
        for begin, end in spans
    ]


def _piece(listed: Sequence[SnapshotFile], begin: int, end: int) -> Piece:
    lead: list[SnapshotFile] = []
    seen: defaultdict[str, int] = defaultdict(int)
    left_out = set()
    for file in reversed(listed[:begin]):
        if seen[file.family] >= LEAD:
            left_out.add(file.family)
            continue
        seen[file.family] += not file.is_bak
        lead.append(file)
    families = {file.family for file in listed[:end]}
    return Piece(list(listed[begin:end]), lead[::-1], frozenset(families - left_out))


def catch_up(source: Source, piece: Piece) -> bool:
    """Bring the source to the start of the piece; return False if a family's lead has no decodable file.

    For families of ``first`` the source must have the state before all files.
    """
    by_family: defaultdict[str, list[SnapshotFile]] = defaultdict(list)
    for file in piece.lead:
        by_family[file.family].append(file)
    known: list[SnapshotFile] = []
    for family, files in by_family.items():
        anchor = _anchor(source, files)
        if anchor is None and family not in piece.first:
            return False
        known += files if anchor is None else [f for f in files if f.ts_ms >= anchor]
    for _ in source.read_all(known):
        pass
    return True


def _anchor(source: Source, files: Sequence[SnapshotFile]) -> int | None:
    """Return the time of the last decodable file that is not a .bak nor replaced by an LMQ file: it is always used."""
    of_lmq = {file.ts_ms for file in files if file.is_lmq}
    for file in reversed(files):
        if file.is_bak or (file.ts_ms in of_lmq and not file.is_lmq):
            continue
        try:
            decode(source.read(file), file)
        except DecodeError:
            continue
        return file.ts_ms
    return None


def joined(pieces_read: Sequence[Sequence[Row]]) -> list[Row]:
    """Return the rows of the pieces of a source in order; an invalid key is reported only by the first piece."""
    keys: set[str] = set()
    rows: list[Row] = []
    for piece in pieces_read:
        repeated: defaultdict[str, int] = defaultdict(int)
        for row in piece:
            if row["out"] == "quarantine" and row["code"] == "orphan_key":
                if row["detail_key"] in keys:
                    repeated[row["path"]] += 1
                    continue
                keys.add(row["detail_key"])
            rows.append(row)
        for row in rows:
            if row["out"] == "file" and repeated.get(row["path"]):
                row["rows_quarantined"] -= repeated[row["path"]]
    return rows
