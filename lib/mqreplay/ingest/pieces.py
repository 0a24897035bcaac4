"""A source's snapshots in pieces that are read apart, on several cores, and join exactly.

What is known when a piece begins is what the last whole file of each family says, whatever came before it. So a piece
is given the files just before it, too: it goes back to the last of each family that decodes, reads on from there
without a word, and is then where a reading of all would be. Only keys that name nothing are told once a piece. Of a
source with more of them than [ingest] quarantine_rows, which of them are listed depends on the pieces.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mqreplay.errors import DecodeError
from mqreplay.ingest.diffs import Source
from mqreplay.ingest.entries import SnapshotFile, decode

LEAD = 20  # files of a family that a piece may go back; torn ones are rare, and so many in a row are none
Row = dict[str, Any]


@dataclass(frozen=True)
class Piece:
    """``own`` are read and told, so many bytes; ``lead`` lie before them. ``first``: families whose every earlier file
    is in lead.
    """

    own: list[SnapshotFile]
    lead: list[SnapshotFile]
    first: frozenset[str]
    bytes: int = 0


def pieces(files: Iterable[SnapshotFile], size_of: dict[str, int], most_bytes: int) -> list[Piece]:
    """The files by moments, in pieces of about ``most_bytes``. ``size_of`` is full path -> bytes.

    A source that was polled is one piece.
    """
    listed = sorted(files, key=lambda f: (f.ts_ms, f.path))
    cuts, waiting = [0], 0
    if any(file.is_polled for file in listed):  # each covers an hour, in which copies of other files lie
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
    """Brings the source to where the piece begins; False if a family's lead has no file that decodes.

    For families of ``first`` the source must know what was known before all files.
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
    """When the last file was copied that decodes, and is no .bak: it is believed whatever was known."""
    for file in reversed(files):
        if file.is_bak:
            continue
        try:
            decode(source.read(file), file)
        except (DecodeError, OSError):
            continue
        return file.ts_ms
    return None


def joined(told: Sequence[Sequence[Row]]) -> list[Row]:
    """What the pieces of one source told, in their order: a key that names nothing is told by the first alone."""
    keys: set[str] = set()
    rows: list[Row] = []
    for piece in told:
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
