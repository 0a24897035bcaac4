"""Each file's SHA-256; of unchanged files from memory, or a night run again would read it all to learn nothing.

A file is unchanged if its size, its inode and both its times are what they were. The time of its last change of status
(ctime) is the file system's own: whoever writes a file and sets its modification time back still moves it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from mqreplay.ingest.lines import file_sha256
from mqreplay.ingest.recording import RecordedFile
from mqreplay.lake.small_file import write_json

FILE = ".mqreplay.digests"
THREADS = 4  # reading and hashing release the interpreter
# A file that changed so short a time before it was read might change again without a new time: clocks of files tick.
SETTLED_NS = 2_000_000_000


Digested = tuple[RecordedFile, str]  # a file and its SHA-256


class KnownDigests:
    """The digests that the last run took, kept in a small file of the warehouse. Torn or missing, it is no loss."""

    def __init__(self, root: str, digest: Callable[[str], str] = file_sha256) -> None:
        """``root`` is the warehouse's folder; ``digest`` reads a file."""
        self._path, self._digest = Path(root, FILE), digest

    def of_recordings(self, recordings: Mapping[str, list[RecordedFile]]) -> dict[str, list[Digested]]:
        """The same recordings, each file with its SHA-256."""
        digested = iter(self.of(file for files in recordings.values() for file in files))
        return {folder: [next(digested) for _ in files] for folder, files in recordings.items()}

    def of(self, files: Iterable[RecordedFile]) -> list[Digested]:
        """Each file with its SHA-256, in order; what is not known is read, and all are kept for the next run."""
        listed, known, now = list(files), self._read(), time.time_ns()
        unknown = [file for file in listed if known.get(file.full_path, [None])[:-1] != _stamp(file)]
        with ThreadPoolExecutor(THREADS) as pool:
            read = dict(zip(unknown, pool.map(self._digest, [file.full_path for file in unknown]), strict=True))
        found = [(file, read[file] if file in read else str(known[file.full_path][-1])) for file in listed]
        if read:
            settled = [(file, sha256) for file, sha256 in found if file.changed_ns < now - SETTLED_NS]
            write_json(self._path, {file.full_path: [*_stamp(file), sha256] for file, sha256 in settled})
        return found

    def _read(self) -> dict[str, list[int | str]]:
        try:
            kept = json.loads(self._path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return kept if isinstance(kept, dict) and all(isinstance(known, list) for known in kept.values()) else {}


def _stamp(file: RecordedFile) -> list[int | str]:
    return [file.bytes, file.modified_ns, file.changed_ns, file.inode]
