"""The files that an import found, each content once, and the known brokers."""

from __future__ import annotations

import datetime as dt
import hashlib
import os
import stat
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from mqreplay.importer.files.archives import Spool, members_of
from mqreplay.importer.files.layout import ARCHIVE, NOT_USED, UNFINISHED, Place, place_of
from mqreplay.importer.files.sources import Source, source_of
from mqreplay.machine.local_files import escaped, trouble_of
from mqreplay.words.errors import DecodeError, InputError

MOST_TEXT: Final = 16 * 1024 * 1024  # bytes of a possible mqadmin output
# Errors of reading a file: it is left out, and the report has the reason.
UNREADABLE: Final = (EOFError, DecodeError)

Found = tuple[Source, Place]


@dataclass
class ImportedFiles:
    """Files by the kind of their place, and the refused ones as (path, reason)."""

    by_kind: dict[str, list[Found]] = field(default_factory=lambda: defaultdict(list))
    refused: list[tuple[str, str]] = field(default_factory=list)
    repeated: int = 0

    def refuse(self, source: Source, why: str) -> None:
        """Record why a file is refused."""
        self.refused.append((source.path, why))


def why_unreadable(error: BaseException) -> str:
    """Return why a file cannot be read.

    >>> why_unreadable(DecodeError("damaged", "it is damaged; copy it again"))
    'it is damaged; copy it again'
    """
    if isinstance(error, DecodeError):
        return error.detail
    if isinstance(error, EOFError):
        return "it is cut short; copy it again"
    return str(error)


def gather(paths: Sequence[str], zone: dt.tzinfo, spool_folder: Path, without: Iterable[Path]) -> ImportedFiles:
    """Return all files below the paths; archives are unpacked into ``spool_folder``.

    Raises InputError for a wrong path.
    """
    found = ImportedFiles()

    def wanted(member: Source) -> bool:
        return place_of(member.parts, zone).kind not in (NOT_USED, UNFINISHED)

    spool = Spool(spool_folder, zone, wanted, found.refused)
    seen: set[tuple[str, str]] = set()
    for source in list(_sources(paths, [str(path) for path in without], found)):
        for one in _with_members(source, zone, spool):
            _place(one, zone, found, seen)
    return found


def _with_members(source: Source, zone: dt.tzinfo, spool: Spool) -> list[Source]:
    return members_of(source, spool) if place_of(source.parts, zone).kind == ARCHIVE else [source]


def _place(source: Source, zone: dt.tzinfo, found: ImportedFiles, seen: set[tuple[str, str]]) -> None:
    place = place_of(source.parts, zone)
    if place.kind == UNFINISHED:
        found.refuse(source, "a temporary file of the broker or of a copy; copy the file without this suffix")
    elif place.kind == NOT_USED:
        found.refuse(source, place.why or "import does not use such files")
    elif place.kind in ("records", "capture"):
        try:
            digest = _digest(source)
        except UNREADABLE as error:
            found.refuse(source, why_unreadable(error))
            return
        if (key := (place.name, digest)) in seen:
            found.repeated += 1
            return
        seen.add(key)
        found.by_kind[place.kind].append((source, place))
    else:
        found.by_kind[place.kind].append((source, place))


def _digest(source: Source) -> str:
    digest = hashlib.sha256()
    for chunk in source.chunks():
        digest.update(chunk)
    return digest.hexdigest()


def _sources(paths: Sequence[str], without: Sequence[str], found: ImportedFiles) -> Iterator[Source]:
    """Yield every regular file below the paths once, sorted by name."""
    seen: set[tuple[int, int]] = set()
    for path in paths:
        if "\0" in path or not path:
            raise InputError(f"{path!r} is no file or folder")
        try:
            mode = os.stat(path).st_mode
        except OSError as error:
            raise InputError(f"{path} cannot be read: {trouble_of(error)}") from None
        top = os.path.basename(os.path.realpath(path))
        files = _below(path, without, found) if stat.S_ISDIR(mode) else iter([("", path)])
        for relative, file in files:
            shown = escaped(os.fsencode(f"{path.rstrip('/') or '/'}/{relative}" if relative else path))
            try:
                one = os.stat(file)
                if not stat.S_ISREG(one.st_mode):
                    found.refused.append((shown, "it is a pipe, socket or device, not a file"))
                elif (one.st_dev, one.st_ino) not in seen or one.st_nlink > 1:
                    seen.add((one.st_dev, one.st_ino))
                    hint = escaped(os.fsencode(f"{top}/{relative}" if relative else top))
                    yield source_of(shown, Path(file), hint)
            except OSError as error:
                found.refused.append((shown, f"it cannot be read: {trouble_of(error)}"))


def _below(folder: str, without: Sequence[str], found: ImportedFiles) -> Iterator[tuple[str, str]]:
    """Yield (path below the folder, path) of each file, sorted by name. Links to folders are not followed."""
    root = os.path.realpath(folder)

    def closed(error: OSError) -> None:
        found.refused.append((escaped(os.fsencode(str(error.filename))), f"it cannot be read: {trouble_of(error)}"))

    for at, inner, names in os.walk(folder, onerror=closed):
        inner[:] = sorted(name for name in inner if os.path.realpath(os.path.join(at, name)) not in without)
        for name in inner:
            if os.path.islink(os.path.join(at, name)):
                found.refused.append((os.path.join(at, name), "it is a link to a folder; give the folder itself"))
        for name in sorted(names):
            file = os.path.join(at, name)
            target = os.path.realpath(file)
            if os.path.islink(file) and not target.startswith(root.rstrip("/") + "/"):
                found.refused.append((escaped(os.fsencode(file)), "it is a link out of its folder; give the file"))
                continue
            yield os.path.relpath(file, folder), file
