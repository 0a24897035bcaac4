"""The recordings of a run: patterns such as recordings/*/2026-11-24, and the files of each folder."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from itertools import takewhile

from mqreplay.engines.engine import Engine
from mqreplay.ingest.listing import Listing, begin_listings, finish_listings
from mqreplay.ingest.recorded_files import RecordedFiles
from mqreplay.lake.files import files_of, is_remote, joined
from mqreplay.lake.local_folder import check_folders
from mqreplay.night.failures import Failures
from mqreplay.words.errors import InputError
from mqreplay.words.printable import printable

MAGIC = re.compile(r"[*?[]")


def begun_listings(root: str, patterns: Iterable[str], follow_links: bool, failures: Failures) -> list[Listing]:
    """Begin to list each recording that can be used with the warehouse ``root``; note the others in failures.

    A recording that is named twice counts once.
    """
    folders: list[str] = []
    for pattern in patterns:
        with failures.of("recording", pattern):
            folders += matching_recordings(pattern)
    listings: dict[str, Listing] = {}
    for folder in dict.fromkeys(folders):
        with failures.of("recording", folder):
            check_folders(root, [folder])
            for listing in begin_listings([folder], follow_links):
                listings.setdefault(listing.recording, listing)
    return list(listings.values())


def finished_listings(listings: Iterable[Listing], engine: Engine, failures: Failures) -> dict[str, RecordedFiles]:
    """Return the files of each recording; note those that turn out to be none in failures."""
    found: dict[str, RecordedFiles] = {}
    for listing in listings:
        with failures.of("recording", listing.folder):
            found |= finish_listings([listing], engine)
    return found


def matching_recordings(pattern: str) -> list[str]:
    """Return the folders that match a pattern of the shell, sorted; the pattern itself if it has none of ``*?[``.

    A folder may be a URI. A folder whose name is the pattern matches; ``*`` does not match a hidden folder. Raises
    InputError if no folder matches.
    """
    if MAGIC.search(pattern) is None or (not is_remote(pattern) and os.path.isdir(pattern)):
        return [pattern]
    parts = pattern.rstrip("/").split("/")
    plain = len(list(takewhile(lambda part: MAGIC.search(part) is None, parts)))
    found = ["/".join(parts[:plain]) or ("/" if pattern.startswith("/") else "")]
    for part in parts[plain:]:
        found = [path for folder in found for path in _folders(folder, part)]
    if not found:
        raise InputError(f"no recording matches {printable(pattern)}; check the pattern, and that the recorder ran")
    return found


def _folders(folder: str, part: str) -> list[str]:
    """Return the folders in ``folder`` whose names match one part of a pattern."""
    try:
        names = files_of(folder).names(folder or ".")
    except PermissionError:
        return []
    hidden = part.startswith(".")
    matching = (name for name in names if fnmatchcase(name, part) and name.startswith(".") == hidden)
    paths = [joined(folder, name) if folder else name for name in matching]
    return [path for path in paths if _is_folder(path)]


def _is_folder(path: str) -> bool:
    return files_of(path).info(path) is None if is_remote(path) else os.path.isdir(path)
