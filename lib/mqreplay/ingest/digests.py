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
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import polars as pl

from mqreplay.ingest.checksums import compared, listed_of
from mqreplay.ingest.lines import file_sha256, trouble_of
from mqreplay.ingest.recorded_files import RecordedFiles, by_path, in_ranges, is_of, is_unread
from mqreplay.ingest.recording import CHECKSUMS, NO_FILE, RecordedFile
from mqreplay.lake.small_file import write_bytes
from mqreplay.run.engine import Engine

FILE = ".mqreplay.digests"
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
THREADS = 4  # reading and hashing release the GIL
WAITING = 1_000  # files that wait for a thread
# A file that changed shortly before it was read might change again with the same time, because file times are coarse.
SETTLED_NS = 2_000_000_000
FILES_HERE, BYTES_HERE = 5_000, 2_000_000_000  # new files that this process hashes; more are hashed in tasks
TASK_FILES, TASK_BYTES = 5_000, 500_000_000  # of a task

Hash = Callable[[str, str | None], str]


@dataclass(frozen=True)
class Hashed:
    """The SHA-256 of some files in order, and for those that cannot be read the reason."""

    sha256: list[str]
    trouble: dict[int, str]


class KnownDigests:
    """The digests of the last run, in a file of the warehouse, which may be torn or missing."""

    def __init__(self, root: str, engine: Engine | None = None, digest: Hash = file_sha256) -> None:
        """Take the warehouse's folder ``root``, the ``engine`` for many files, and ``digest``, which hashes a file."""
        self._path, self._engine, self._digest = Path(root, FILE), engine, digest

    def of_recordings(self, recordings: Mapping[str, RecordedFiles]) -> dict[str, RecordedFiles]:
        """Return the recordings with digests, compared with their SHA256SUMS (checksums.py).

        Read files with unknown digests, and store all for the next run. A file that cannot be read has the reason
        instead of a SHA-256. Entries that are not files are not opened and have none, and so have unread files above
        MOST_UNREAD, unless SHA256SUMS lists them.
        """
        known, now = self._read(), time.time_ns()
        kept = {folder: _with_known(files.rows, known) for folder, files in recordings.items()}
        del known
        read = sum(int(rows["asked"].sum()) for rows in kept.values())
        found = {folder: self._read_anew(rows) for folder, rows in kept.items()}
        if read:
            self._write(pl.concat([_settled(files.rows, now) for files in found.values()]))
        return {folder: compared(files) for folder, files in found.items()}

    def _read_anew(self, rows: pl.DataFrame) -> RecordedFiles:
        """Return the files; hash those whose column ``asked`` is true."""
        asked = RecordedFiles(rows.filter("asked"))
        rows = rows.with_row_index("number")
        if not len(asked):
            return RecordedFiles(rows.drop("asked", "number"))
        numbers = rows.filter("asked").select("number")
        sha256: list[str] = []
        trouble: dict[int, str] = {}
        for some in self._hashed(asked):
            trouble |= {len(sha256) + number: reason for number, reason in some.trouble.items()}
            sha256 += some.sha256
        reasons = pl.Series(
            [trouble.get(n) for n in range(len(sha256))] if trouble else [None] * len(sha256), dtype=pl.String
        )
        new = numbers.with_columns(new=pl.Series(sha256, dtype=pl.String), reason=reasons)
        rows = rows.join(new, on="number", how="left", maintain_order="left")
        rows = rows.with_columns(sha256=pl.coalesce("new", "sha256"), trouble=pl.coalesce("reason", "trouble"))
        return RecordedFiles(rows.drop("asked", "number", "new", "reason"))

    def _hashed(self, files: RecordedFiles) -> Iterator[Hashed]:
        is_small = len(files) <= FILES_HERE and int(files.rows["bytes"].sum()) <= BYTES_HERE
        if self._engine is None or is_small:
            yield hash_files(files, self._digest)
            return
        yield from self._engine.map(hash_files, _tasks(files), self._digest)

    def _read(self) -> pl.DataFrame:
        """Return the stored digests (KNOWN); none if the file is foreign."""
        try:
            found = pl.read_parquet(self._path, glob=False)
        except (OSError, pl.exceptions.PolarsError):
            return KNOWN.to_frame()
        return found if found.schema == KNOWN else KNOWN.to_frame()

    def _write(self, rows: pl.DataFrame) -> None:
        buffer = io.BytesIO()
        rows.write_parquet(buffer)
        write_bytes(self._path, buffer.getvalue())


def hash_files(files: RecordedFiles, digest: Hash) -> Hashed:
    """Return the SHA-256 of each file, which is read."""
    sha256: list[str] = []
    trouble: dict[int, str] = {}

    def read(file: RecordedFile) -> tuple[str, str | None]:
        try:
            return digest(file.full_path, file.root), None
        except OSError as error:
            return "", trouble_of(error)

    rest = (file for file, _ in files)
    with ThreadPoolExecutor(THREADS) as pool:
        while some := list(islice(rest, WAITING)):
            for made, reason in pool.map(read, some):
                if reason is not None:
                    trouble[len(sha256)] = reason
                sha256.append(made)
    return Hashed(sha256, trouble)


def _tasks(files: RecordedFiles) -> list[RecordedFiles]:
    """Split the files into tasks of a bounded number of files and bytes, in order."""
    before = pl.col("bytes").cum_sum() - pl.col("bytes")
    number = pl.max_horizontal(before // TASK_BYTES, pl.int_range(pl.len()) // TASK_FILES).cum_max()
    sizes = files.rows.select(number.alias("task").rle()).unnest("task")["len"].to_list()
    tasks, start = [], 0
    for size in sizes:
        tasks.append(RecordedFiles(files.rows.slice(start, size)))
        start += size
    return tasks


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
    needed = ~is_of(NO_FILE) & ~(is_large_unread & ~pl.col("path").is_in(_listed(rows.filter(is_large_unread), rows)))
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
