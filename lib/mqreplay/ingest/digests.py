"""Each file's SHA-256; of unchanged files from memory, or a night run again would read it all to learn nothing.

A file is unchanged if its size, its inode and both its times are what they were. The time of its last change of status
(ctime) is the file system's own: whoever writes a file and sets its modification time back still moves it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import islice
from pathlib import Path

from mqreplay.ingest.checksums import Digested, compared
from mqreplay.ingest.lines import file_sha256, trouble_of
from mqreplay.ingest.recording import NO_FILE, RecordedFile
from mqreplay.lake.small_file import write_lines

FILE = ".mqreplay.digests"
BATCH = 1_000  # files
STAMPED = 5  # words before the path: four of the stamp, and the digest
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
        digested = iter(self.of(file for files in recordings.values() for file in files))
        return {folder: compared([next(digested) for _ in files]) for folder, files in recordings.items()}

    def of(self, files: Iterable[RecordedFile]) -> list[Digested]:
        """Each file with its SHA-256, in order; what is not known is read, and all are kept for the next run.

        One that cannot be read has its trouble instead, and no SHA-256. What is no file is not opened.
        """
        known, now, found, read = self._read(), time.time_ns(), [], 0
        with ThreadPoolExecutor(THREADS) as pool:
            # By batches: a million waiting reads would take a gigabyte.
            for batch in _batches(files, BATCH):
                kept = [_digest(file, known.get(file.full_path, "")) for file in batch]
                unknown = [file for file, digest in zip(batch, kept, strict=True) if not digest]
                made, read = pool.map(self._read_anew, unknown), read + sum(f.kind not in NO_FILE for f in unknown)
                for file, digest in zip(batch, kept, strict=True):
                    sha256, trouble = (digest, None) if digest else next(made)
                    found.append((replace(file, trouble=trouble) if trouble else file, sha256))
        if read:
            settled = ((file, sha256) for file, sha256 in found if sha256 and file.changed_ns < now - SETTLED_NS)
            write_lines(
                self._path, (f"{_stamp(file)}{sha256} {json.dumps(file.full_path)}" for file, sha256 in settled)
            )
        return found

    def _read_anew(self, file: RecordedFile) -> tuple[str, str | None]:
        """A file's SHA-256, or nothing and why not."""
        if file.kind in NO_FILE:
            return "", None
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
