"""The SHA-256 of each file, cached for unchanged files, so that a repeated run need not read them.

A file is unchanged if its size, inode and both times are the same; in an object store, if its size, time and version
(ETag) are. The time of the last status change (ctime) is set by the file system: it also changes when a program writes
a file and resets its modification time.

Files that are not read have only a row in the ledger. Large ones of these are hashed only if SHA256SUMS lists them: a
memory dump would take minutes, and may be sparse. Many or large new files are hashed in tasks.
"""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import sha256
from itertools import accumulate, islice
from typing import overload

import polars as pl

from mqreplay.decode.recording.files import CHECKSUMS
from mqreplay.engines.engine import Engine
from mqreplay.ingest.checksums import compared, listed_of
from mqreplay.ingest.lines import file_sha256
from mqreplay.ingest.recorded_files import RecordedFiles, by_path, in_ranges, is_of, is_unread
from mqreplay.ingest.recording import UNREAD_KINDS, RecordedFile
from mqreplay.lake.files import files_of, is_remote, joined
from mqreplay.machine.local_files import unreadable

DIGESTS_FILE = ".mqreplay.digests"
CHECKSUM_BYTES = 32  # at its end: the SHA-256 of the rest
STAMP = ["path", "bytes", "modified_ns", "changed_ns", "inode", "version"]
KNOWN = pl.Schema(
    {
        "recording": pl.String(),
        "path": pl.String(),
        "bytes": pl.Int64(),
        "modified_ns": pl.Int64(),
        "changed_ns": pl.Int64(),
        "inode": pl.UInt64(),
        "version": pl.String(),
        "sha256": pl.Binary(),
    }
)
MOST_UNREAD = 16 * 1024 * 1024  # largest size in bytes of an unread file that is hashed
THREADS, STORE_THREADS = 4, 32  # reading and hashing release the GIL; a request to a store is mostly waiting
WAITING = 1_000  # files that wait for a thread
# A file that changed shortly before it was read might change again with the same time, because file times are coarse.
SETTLED_NS = 2_000_000_000
FILES_HERE, BYTES_HERE = 5_000, 2_000_000_000  # new files that this process hashes; more are hashed in tasks
TASK_FILES, TASK_BYTES = 5_000, 500_000_000  # of a task

Hash = Callable[[str, str | None], str]


@dataclass(frozen=True)
class Hashed:
    """The SHA-256 of some files in order, and for those that cannot be read the reason by their number."""

    sha256: pl.Series
    trouble: dict[int, str]


class KnownDigests:
    """The digests of the last run, in a file of the warehouse, which may be damaged or missing."""

    def __init__(self, root: str, engine: Engine | None = None, digest: Hash = file_sha256) -> None:
        """Take the warehouse's folder ``root``, the ``engine`` for many files, and ``digest``, which hashes a file."""
        self._path, self._engine, self._digest = joined(root, DIGESTS_FILE), engine, digest

    def of_recordings(self, recordings: dict[str, RecordedFiles]) -> dict[str, RecordedFiles]:
        """Return the recordings with digests, compared with their SHA256SUMS (checksums.py); empty ``recordings``.

        Read files with unknown digests, and store all for the next run. A file that cannot be read has the reason
        instead of a SHA-256. Entries that are not files are not opened and have none, and so have unread files above
        MOST_UNREAD, unless SHA256SUMS lists them.
        """
        now, read, found = time.time_ns(), False, {}
        known = self._read()
        for folder in list(recordings):
            rows = _with_known(recordings.pop(folder).rows, known)
            asked = rows["asked"].arg_true()
            rows = rows.drop("asked")
            if len(asked):
                read, rows = True, self._read_anew(rows, asked)
            found[folder] = RecordedFiles(rows)
        del known
        if read:
            self._write(pl.concat([_settled(files.rows, now) for files in found.values()]))
        return {folder: compared(files) for folder, files in found.items()}

    def _read_anew(self, rows: pl.DataFrame, asked: pl.Series) -> pl.DataFrame:
        """Return the files; hash those in the rows ``asked``."""
        made: list[pl.Series] = []
        trouble: dict[int, str] = {}
        read = 0
        for some in self._hashed(rows, asked):
            trouble |= {asked[read + number]: reason for number, reason in some.trouble.items()}
            made.append(some.sha256)
            read += len(some.sha256)
        sha256 = pl.concat(made)
        if read < len(rows):
            sha256 = rows["sha256"].clone().scatter(asked, sha256)
        rows = rows.with_columns(sha256=sha256)
        if trouble:
            reasons = rows["trouble"].clone().scatter(list(trouble), list(trouble.values()))
            rows = rows.with_columns(trouble=reasons)
        return rows

    def _hashed(self, rows: pl.DataFrame, asked: pl.Series) -> Iterator[Hashed]:
        tasks = _Tasks(rows, asked)
        if self._engine is None or (len(asked) <= FILES_HERE and tasks.bytes <= BYTES_HERE):
            yield from (hash_files(task, self._digest) for task in tasks)
        else:
            yield from self._engine.map(hash_files, tasks, self._digest)

    def _read(self) -> pl.DataFrame:
        """Return the stored digests (KNOWN); none if the file is missing, damaged or foreign."""
        try:
            data = files_of(self._path).read(self._path)
            table, checksum = data[:-CHECKSUM_BYTES], data[-CHECKSUM_BYTES:]
            found = pl.read_parquet(table) if sha256(table).digest() == checksum else KNOWN.to_frame()
        except (OSError, pl.exceptions.PolarsError):
            return KNOWN.to_frame()
        return found if found.schema == KNOWN else KNOWN.to_frame()

    def _write(self, rows: pl.DataFrame) -> None:
        buffer = io.BytesIO()
        rows.write_parquet(buffer)
        table = buffer.getvalue()
        files_of(self._path).write(self._path, table + sha256(table).digest())


class _Tasks(Sequence[RecordedFiles]):
    """Files to hash, as tasks of a bounded number of files and bytes. A task is made when it is taken."""

    def __init__(self, rows: pl.DataFrame, asked: pl.Series) -> None:
        self._rows, self._asked = rows, asked
        sizes = rows["bytes"].gather(asked)
        self.bytes = int(sizes.sum())
        before = sizes.cum_sum() - sizes
        # It increases where the bytes or the files of a task are full.
        number = before // TASK_BYTES + pl.int_range(len(asked), eager=True) // TASK_FILES
        self._sizes = number.rle().struct.field("len").to_list()
        self._starts = [0, *accumulate(self._sizes)]

    def __len__(self) -> int:
        return len(self._sizes)

    @overload
    def __getitem__(self, at: int) -> RecordedFiles: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[RecordedFiles]: ...
    def __getitem__(self, at: int | slice) -> RecordedFiles | Sequence[RecordedFiles]:
        if isinstance(at, slice):
            return [self[number] for number in range(*at.indices(len(self)))]
        if not 0 <= at < len(self):
            raise IndexError(at)
        return RecordedFiles(self._rows[self._asked.slice(self._starts[at], self._sizes[at])])


def hash_files(files: RecordedFiles, digest: Hash) -> Hashed:
    """Return the SHA-256 of each file, which is read."""
    sha256: list[str] = []
    trouble: dict[int, str] = {}

    def read(file: RecordedFile) -> tuple[str, str | None]:
        try:
            return digest(file.full_path, file.root), None
        except OSError as error:
            return "", unreadable(error).trouble

    rest = (file for file, _ in files)
    with ThreadPoolExecutor(STORE_THREADS if _is_in_store(files) else THREADS) as pool:
        while some := list(islice(rest, WAITING)):
            for made, reason in pool.map(read, some):
                if reason is not None:
                    trouble[len(sha256)] = reason
                sha256.append(made)
    return Hashed(pl.Series(sha256, dtype=pl.String), trouble)


def _is_in_store(files: RecordedFiles) -> bool:
    return any(map(is_remote, files.recordings))


def _with_known(rows: pl.DataFrame, known: pl.DataFrame) -> pl.DataFrame:
    """Return a recording's files with the digests of unchanged ones; ``asked``: whether the file must be read."""
    mine = known.filter(pl.col("recording").is_in(rows["recording"].unique().cast(pl.String).implode()))
    mine = by_path(mine).select(*STAMP, known_sha256=pl.col("sha256").bin.encode("hex"))
    parts = [
        files.join(some, on=STAMP, how="left", maintain_order="left")
        if some.height
        else files.with_columns(known_sha256=pl.lit(None, pl.String))
        for files, some in in_ranges(rows, mine)
    ]
    found = pl.concat(parts)
    is_large_unread = is_unread() & (pl.col("bytes") > MOST_UNREAD)
    needed = ~is_of(UNREAD_KINDS) & ~(
        is_large_unread & ~pl.col("path").is_in(_listed(rows.filter(is_large_unread), rows))
    )
    return found.with_columns(
        sha256=pl.when(needed).then(pl.col("known_sha256").fill_null("")).otherwise(pl.lit("")),
        asked=needed & pl.col("known_sha256").is_null(),
    ).drop("known_sha256")


def _listed(large: pl.DataFrame, rows: pl.DataFrame) -> list[str]:
    """Return the paths of large unread files that the recording's SHA256SUMS lists."""
    if not large.height:
        return []
    lists = [file for file, _ in RecordedFiles(rows.filter(is_of([CHECKSUMS])))]
    return list(listed_of(lists, set(large["path"])))


def _settled(rows: pl.DataFrame, now_ns: int) -> pl.DataFrame:
    """Return the digests to store (KNOWN)."""
    settled = rows.filter((pl.col("sha256") != "") & (pl.col("changed_ns") < now_ns - SETTLED_NS))
    return settled.select(
        pl.col("recording").cast(pl.String),
        *STAMP,
        pl.col("sha256").str.decode("hex"),
    )
