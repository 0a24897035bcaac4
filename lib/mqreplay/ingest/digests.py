"""Each file's SHA-256; of unchanged files from memory, or a night run again would read it all to learn nothing.

A file is unchanged if its size, its inode and both its times are what they were. The time of its last change of status
(ctime) is the file system's own: whoever writes a file and sets its modification time back still moves it.

Files that are not read have a row in the ledger only. Of these, large ones are hashed only if SHA256SUMS lists them: a
dump of a process's memory takes minutes, and may be sparse.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import compress, islice
from pathlib import Path

from mqreplay.ingest.checksums import compared, listed_of
from mqreplay.ingest.lines import file_sha256, trouble_of
from mqreplay.ingest.recording import NO_FILE, NOT_READ, Digested, RecordedFile
from mqreplay.lake.small_file import write_lines

FILE = ".mqreplay.digests"
BATCH = 1_000  # files
STAMPED = 5  # words before the path: four of the stamp, and the digest
MOST_UNREAD = 16 * 1024 * 1024  # bytes of a file that is not read, and is hashed all the same
THREADS = 4  # reading and hashing release the interpreter
# A file that changed so short a time before it was read might change again without a new time: clocks of files tick.
SETTLED_NS = 2_000_000_000


class KnownDigests:
    """The digests that the last run took, kept in a file of the warehouse. Torn or missing, it is no loss."""

    def __init__(self, root: str, digest: Callable[[str, str | None], str] = file_sha256) -> None:
        """``root`` is the warehouse's folder; ``digest`` reads a file, inside a folder or anywhere."""
        self._path, self._digest = Path(root, FILE), digest

    def of_recordings(self, recordings: Mapping[str, list[RecordedFile]]) -> dict[str, list[Digested]]:
        """The same recordings, as ``of`` gives files, compared with their SHA256SUMS (checksums.py)."""
        listed = {place for files in recordings.values() for place in _listed(files)}
        digested = iter(self.of((file for files in recordings.values() for file in files), listed))
        return {folder: compared([next(digested) for _ in files]) for folder, files in recordings.items()}

    def of(self, files: Iterable[RecordedFile], listed: Collection[str] = frozenset()) -> list[Digested]:
        """Each file with its SHA-256, in order; what is not known is read, and all are kept for the next run.

        One that cannot be read has its trouble instead, and no SHA-256. What is no file is not opened, and has none
        either; nor has a file above MOST_UNREAD that is not read, unless its full path is among ``listed``.
        """
        known, now, found, read = self._read(), time.time_ns(), [], 0
        with ThreadPoolExecutor(THREADS) as pool:
            # By batches: a million waiting reads would take a gigabyte.
            for batch in _batches(files, BATCH):
                needed = [_needs_digest(file, listed) for file in batch]
                kept = [_digest(file, known.get(file.full_path, "")) for file in batch]
                asked = [need and not digest for need, digest in zip(needed, kept, strict=True)]
                made, read = pool.map(self._read_anew, compress(batch, asked)), read + sum(asked)
                for file, need, anew, digest in zip(batch, needed, asked, kept, strict=True):
                    sha256, trouble = next(made) if anew else (digest if need else "", None)
                    found.append((replace(file, trouble=trouble) if trouble else file, sha256))
        if read:
            settled = ((file, sha256) for file, sha256 in found if sha256 and file.changed_ns < now - SETTLED_NS)
            write_lines(
                self._path, (f"{_stamp(file)}{sha256} {json.dumps(file.full_path)}" for file, sha256 in settled)
            )
        return found

    def _read_anew(self, file: RecordedFile) -> tuple[str, str | None]:
        """A file's SHA-256, or nothing and why not."""
        try:
            return self._digest(file.full_path, file.root), None
        except OSError as error:
            return "", trouble_of(error)

    def _read(self) -> dict[str, str]:
        """Path -> stamp and digest; lines that are none of ours are passed over."""
        known = {}
        try:
            with self._path.open(encoding="utf-8") as lines:
                for line in lines:
                    *told, path = line.rstrip("\n").split(" ", STAMPED)
                    if len(told) == STAMPED and path.startswith('"'):
                        known[json.loads(path)] = " ".join(told)
        except (OSError, ValueError):
            return {}
        return known


def _is_large_unread(file: RecordedFile) -> bool:
    return file.kind in NOT_READ and file.bytes > MOST_UNREAD


def _needs_digest(file: RecordedFile, listed: Collection[str]) -> bool:
    return file.kind not in NO_FILE and (not _is_large_unread(file) or file.full_path in listed)


def _listed(files: list[RecordedFile]) -> list[str]:
    """Full paths of a recording's large files that are not read, and that its SHA256SUMS lists."""
    large = {file.path: file.full_path for file in files if _is_large_unread(file)}
    return [large[path] for path in listed_of(files, large)] if large else []


def _stamp(file: RecordedFile) -> str:
    return f"{file.bytes} {file.modified_ns} {file.changed_ns} {file.inode} "


def _digest(file: RecordedFile, known: str) -> str:
    """The digest that is known of the file as it is, or nothing."""
    stamp = _stamp(file)
    return known[len(stamp) :] if known.startswith(stamp) else ""


def _batches(files: Iterable[RecordedFile], most: int) -> Iterator[list[RecordedFile]]:
    """The files, so many at a time."""
    rest = iter(files)
    while batch := list(islice(rest, most)):
        yield batch
