"""List the files of recordings: in this process, and in tasks those of large folders.

A recording of a usual night has some thousand files, and is listed at once. Of a large one only the first FILES_HERE
files are: the folders of the other sources are listed by tasks.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import polars as pl

from mqreplay.decode.recording.files import CHECKSUMS, classify
from mqreplay.engines.engine import Engine
from mqreplay.ingest.recorded_files import RecordedFiles, before, by_path
from mqreplay.ingest.recording import NOT_READ, RecordedFile
from mqreplay.ingest.walk import Walk, list_folder, list_recording
from mqreplay.lake.files import is_remote
from mqreplay.lake.local_folder import folder
from mqreplay.machine.local_files import escaped
from mqreplay.words.errors import InputError

DEEPEST: Final = 3  # folders between a folder of recordings and a recording
RECORDINGS_NAMED: Final = 5  # recordings in an error
FILES_HERE = 20_000  # files that this process lists in half a second
# What to do if there is no recording.
MAKE_ONE = (
    "give the folder that holds snapshots/ and *.jsonl. To make one: mqreplay record NAMESRV --out RECORDING, "
    "or from files: mqreplay import FILES --out RECORDING"
)


@dataclass
class Listing:
    """A recording as a user gave it: its resolved folder, the files listed until now, and folders to list later."""

    folder: str
    recording: str
    files: RecordedFiles
    follow_links: bool
    later: list[str] = field(default_factory=list)

    def check(self) -> None:
        """Raise InputError if no file of the recording is a part of one."""
        kinds = set(self.files.rows["kind"].unique().cast(pl.String))
        if self.later or kinds - NOT_READ.keys() - {CHECKSUMS}:
            return
        if not len(self.files):
            raise InputError(f"recording {self.folder} has no files; {MAKE_ONE}")
        if inside := recordings_inside(self.files.rows["path"]):
            count = f"{len(inside)} recordings" if len(inside) > 1 else "a recording"
            folders = " ".join(shlex.quote(f"{self.folder.rstrip('/')}/{name}") for name in inside[:RECORDINGS_NAMED])
            more = f" and {len(inside) - RECORDINGS_NAMED} more" if len(inside) > RECORDINGS_NAMED else ""
            raise InputError(f"{self.folder} is not a recording: it has {count} inside; give {folders}{more}")
        what = f"none of its {len(self.files):,} files is" if len(self.files) > 1 else "its only file is not"
        copied = "Copy it to this machine, and make" if is_remote(self.recording) else "Make"
        raise InputError(
            f"{self.folder} is not a recording: {what} a part of one. "
            f"{copied} a recording from it: mqreplay import {shlex.quote(self.folder)} --out RECORDING"
        )


def recordings_inside(paths: Iterable[str]) -> list[str]:
    """Return the inner folders that are recordings by the files in them, sorted.

    >>> recordings_inside(["README.md", "a/pull_log.jsonl.gz", "a/notes.txt", "b/2026/brokers.json"])
    ['a', 'b/2026']
    """
    folders: set[str] = set()
    for path in paths:
        parts = path.split("/")
        inner = range(1, min(len(parts), DEEPEST + 1))
        known = (depth for depth in inner if classify("/".join(parts[depth:]))[0] not in {*NOT_READ, CHECKSUMS})
        if (depth := next(known, None)) is not None:
            folders.add("/".join(parts[:depth]))
    return sorted(folders)


def begin_listings(folders: Iterable[str], follow_links: bool = False, files_here: int = FILES_HERE) -> list[Listing]:
    """List about the first ``files_here`` files of each folder; a folder that is named twice counts once.

    Raises InputError if there is no folder, or no file of a recording in it.
    """
    resolved: dict[str, str] = {}
    for named in folders:
        resolved.setdefault(
            folder(named, "recording") if is_remote(named) else str(Path(named).resolve()),
            named,
        )
    return [_begin(named, recording, follow_links, files_here) for recording, named in resolved.items()]


def finish_listings(listings: Iterable[Listing], engine: Engine | None) -> dict[str, RecordedFiles]:
    """Return the files of each folder, sorted by path; list the remaining folders in tasks. Raises InputError."""
    found: dict[str, RecordedFiles] = {}
    for listing in listings:
        if engine is not None and listing.later:
            later = sorted(listing.later, key=lambda inner: f"{inner}/")
            tasks = [(listing.recording, inner) for inner in later]
            parts = list(engine.map(_list_folder, tasks, listing.follow_links))
            listing.files = _merged(listing.files.rows, dict(zip(later, parts, strict=True)))
            listing.later = []
            listing.check()
        found[listing.folder], listing.files = listing.files, RecordedFiles()
    return found


def find_recordings(folders: Iterable[str], follow_links: bool = False) -> dict[str, RecordedFiles]:
    """Return the files of each folder, sorted by path; list all of them in this process. Raises InputError."""
    return finish_listings(begin_listings(folders, follow_links, sys.maxsize), None)


def _begin(named: str, recording: str, follow_links: bool, room: int) -> Listing:
    if is_remote(recording):
        listed, later = list_recording(recording, room)
        if not listed and not later:
            raise InputError(f"recording {named} does not exist, or has no files; {MAKE_ONE}")
        return _checked(Listing(named, recording, _sorted(listed), follow_links, later))
    root = Path(recording)
    if not root.is_dir():
        if root.exists():
            raise InputError(
                f"{named} is not a recording: it is a file, not a folder. "
                f"Make a recording from it: mqreplay import {shlex.quote(named)} --out RECORDING"
            )
        raise InputError(f"recording {named} does not exist; {MAKE_ONE}")
    if escaped(os.fsencode(root)) != recording:
        raise InputError(f"recording {escaped(os.fsencode(root))}: the name of its folder is not UTF-8; rename it")
    # Which of two links to a folder outside is followed depends on the others: one walk must see all of them.
    walk = Walk(recording, follow_links, sys.maxsize if follow_links else room)
    files = _sorted(walk.files())
    return _checked(Listing(named, recording, files, follow_links, walk.later))


def _checked(listing: Listing) -> Listing:
    listing.check()
    return listing


def _sorted(files: Iterable[RecordedFile]) -> RecordedFiles:
    return RecordedFiles(by_path(RecordedFiles.of((file, "") for file in files).rows))


def _merged(files: pl.DataFrame, parts: dict[str, pl.DataFrame]) -> RecordedFiles:
    """Return the files and those of the folders, sorted by path; to sort all would take twice the memory."""
    pieces, start = [], 0
    for inner, part in parts.items():
        end = before(files["path"], f"{inner}/")
        pieces += [files.slice(start, end - start), part]
        start = end
    return RecordedFiles(by_path(pl.concat([*pieces, files.slice(start)])))


def _list_folder(task: tuple[str, str], follow_links: bool) -> pl.DataFrame:
    """Return the rows (FILES) of the files below a folder of a recording, sorted by path."""
    recording, inner = task
    if is_remote(recording):
        return _sorted(list_folder(recording, inner)).rows
    return _sorted(Walk(recording, follow_links).files(inner)).rows
