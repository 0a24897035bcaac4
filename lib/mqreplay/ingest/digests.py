"""The SHA-256 of each file, cached for unchanged files, so that a repeated run need not read them.

A file is unchanged if its size, inode and both times are the same. The time of the last status change (ctime) is set by
the file system: it also changes when a program writes a file and resets its modification time.

Files that are not read have only a row in the ledger. Large ones of these are hashed only if SHA256SUMS lists them: a
memory dump would take minutes, and may be sparse.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import compress, islice

from mqreplay.ingest.checksums import compared, listed_of
from mqreplay.ingest.lines import file_sha256, trouble_of
from mqreplay.ingest.recording import NO_FILE, NOT_READ, Digested, RecordedFile
from mqreplay.lake.files import files_of, joined
from mqreplay.lake.small_file import write_text

FILE = ".mqreplay.digests"
BATCH = 1_000  # files
STAMPED = 5  # words before the path: four of the stamp and the digest
MOST_UNREAD = 16 * 1024 * 1024  # largest size in bytes of an unread file that is hashed
THREADS = 4  # reading and hashing release the GIL
# A file that changed shortly before it was read might change again with the same time, because file times are coarse.
SETTLED_NS = 2_000_000_000


class KnownDigests:
    """The digests of the last run, in a file of the warehouse, which may be torn or missing."""

    def __init__(self, root: str, digest: Callable[[str, str | None], str] = file_sha256) -> None:
        """Take the warehouse's folder ``root``, and ``digest``, which hashes a file."""
        self._path, self._digest = joined(root, FILE), digest

    def of_recordings(self, recordings: Mapping[str, list[RecordedFile]]) -> dict[str, list[Digested]]:
        """Return the recordings with digests (see ``of``), compared with their SHA256SUMS (checksums.py)."""
        listed = {place for files in recordings.values() for place in _listed(files)}
        digested = iter(self.of((file for files in recordings.values() for file in files), listed))
        return {folder: compared([next(digested) for _ in files]) for folder, files in recordings.items()}

    def of(self, files: Iterable[RecordedFile], listed: Collection[str] = frozenset()) -> list[Digested]:
        """Return each file with its SHA-256, in order. Read files with unknown digests, and store all for the next run.

        A file that cannot be read has the reason instead of a SHA-256. Entries that are not files are not opened and
        have none, and so have unread files above MOST_UNREAD, unless their full path is in ``listed``.
        """
        known, now, found, read = self._read(), time.time_ns(), [], 0
        with ThreadPoolExecutor(THREADS) as pool:
            # In batches: a million waiting reads would take a gigabyte.
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
            lines = (f"{_stamp(file)}{sha256} {json.dumps(file.full_path)}\n" for file, sha256 in settled)
            write_text(self._path, "".join(lines))
        return found

    def _read_anew(self, file: RecordedFile) -> tuple[str, str | None]:
        """Return a file's SHA-256, or none and the reason."""
        try:
            return self._digest(file.full_path, file.root), None
        except OSError as error:
            return "", trouble_of(error)

    def _read(self) -> dict[str, str]:
        """Return path -> stamp and digest; skip foreign lines."""
        known = {}
        try:
            with files_of(self._path).open(self._path) as lines:
                for line in lines:
                    *words, path = line.decode().rstrip("\n").split(" ", STAMPED)
                    if len(words) == STAMPED and path.startswith('"'):
                        known[json.loads(path)] = " ".join(words)
        except (OSError, ValueError):
            return {}
        return known


def _is_large_unread(file: RecordedFile) -> bool:
    return file.kind in NOT_READ and file.bytes > MOST_UNREAD


def _needs_digest(file: RecordedFile, listed: Collection[str]) -> bool:
    return file.kind not in NO_FILE and (not _is_large_unread(file) or file.full_path in listed)


def _listed(files: list[RecordedFile]) -> list[str]:
    """Return full paths of a recording's large unread files that its SHA256SUMS lists."""
    large = {file.path: file.full_path for file in files if _is_large_unread(file)}
    return [large[path] for path in listed_of(files, large)] if large else []


def _stamp(file: RecordedFile) -> str:
    return f"{file.bytes} {file.modified_ns} {file.changed_ns} {file.inode} "


def _digest(file: RecordedFile, known: str) -> str:
    """Return the cached digest if the file is unchanged; else none."""
    stamp = _stamp(file)
    return known[len(stamp) :] if known.startswith(stamp) else ""


def _batches(files: Iterable[RecordedFile], most: int) -> Iterator[list[RecordedFile]]:
    """Yield the files in batches."""
    rest = iter(files)
    while batch := list(islice(rest, most)):
        yield batch
