"""The folder of a recorder: names of its files, its lock, and repair after an interrupted run.

A gzip file grows by complete members of complete lines, so it is valid after every append. A process that is killed, or
a machine that loses power, leaves a member that is not complete. `restore` removes it.
"""

from __future__ import annotations

import datetime as dt
import errno
import fcntl
import os
import re
import zlib
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from mqreplay.decode.recording.files import POLLED, SNAPSHOT_KINDS
from mqreplay.recorder.durable import UNFINISHED, replace_file
from mqreplay.words.errors import InputError

HOUR_MS: Final = 3_600_000
BLOCK: Final = 4096  # allocation unit of a file system in bytes
SNAPSHOTS: Final = "snapshots"
OFFSETS: Final = POLLED[0]
_HOURLY = re.compile(r"(?P<stem>[a-z_]+)\.[0-9]{10}\.jsonl\.gz")
_EPOCH_MS = re.compile(r"[0-9]{12,14}")
LONGEST_NAME: Final = 255  # bytes, of Linux's file systems
GZIP: Final = 31  # wbits: a gzip header and trailer
MAGIC: Final = b"\x1f\x8b\x08\x00"
CHUNK: Final = 64 * 1024  # compressed bytes inflated at once
MOST_TRIED: Final = 1000  # possible starts of a member in a damaged file that are tried


def hourly_name(stem: str, hour: int) -> str:
    """Return the name of a stem's file for an hour since the epoch.

    >>> hourly_name("broker_runtime", 1_795_467_600_000 // HOUR_MS)
    'broker_runtime.2026112321.jsonl.gz'
    """
    return f"{stem}.{dt.datetime.fromtimestamp(hour * 3600, dt.UTC):%Y%m%d%H}.jsonl.gz"


def source_folder(root: Path, broker_name: str, broker_id: int) -> Path:
    """Return the folder of a broker's snapshots. Raises InputError for a name that cannot be a folder name."""
    name = f"{broker_name}-{broker_id}"
    try:
        length = len(name.encode())
    except UnicodeEncodeError:
        length = 0
    if not broker_name or "/" in name or not name.isprintable() or not 0 < length <= LONGEST_NAME:
        raise InputError(f"broker name {broker_name!r} cannot be a folder name; its snapshots are not recorded")
    return root / SNAPSHOTS / name


def times(source: Path) -> list[Path]:
    """Return the epoch_ms folders of a broker, newest first."""
    try:
        names = [name for name in os.listdir(source) if _EPOCH_MS.fullmatch(name)]
    except FileNotFoundError:
        return []
    return [source / name for name in sorted(names, key=int, reverse=True)]


def hourly_files(root: Path) -> dict[str, list[Path]]:
    """Return the hourly files by stem, each list in order of time."""
    found = defaultdict(list)
    for name in sorted(os.listdir(root)):
        if match := _HOURLY.fullmatch(name):
            found[match["stem"]].append(root / name)
    return found


def newest_offsets(source: Path) -> Path | None:
    """Return the newest file of polled offsets of a broker."""
    return next((path / OFFSETS for path in times(source) if (path / OFFSETS).exists()), None)


def sources(root: Path) -> list[Path]:
    """Return the folders below snapshots/."""
    with suppress(FileNotFoundError):
        return [Path(entry.path) for entry in os.scandir(root / SNAPSHOTS) if entry.is_dir(follow_symlinks=False)]
    return []


def held_folder(folder: Path) -> int:
    """Make and lock the folder, and return the lock's owner. Raises InputError if another recorder has the lock."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise InputError(f"--out {folder} is not a writable folder: {error.strerror}") from None
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(held)
        raise InputError(f"another recorder writes into {folder}; stop it, or give another folder") from None
    except OSError as error:
        if error.errno not in (
            errno.ENOLCK,
            errno.ENOTSUP,
        ):  # a file system without locks
            os.close(held)
            raise
    return held


def repair(root: Path) -> None:
    """Remove the unfinished files of a killed run and the torn end of each kind's newest file."""
    for path in root.glob(f"*{UNFINISHED}"):
        if path.name.removesuffix(UNFINISHED) in ("brokers.json", *SNAPSHOT_KINDS):
            path.unlink()
    for files in hourly_files(root).values():
        restore(files[-1])
    for source in sources(root):
        offsets = newest_offsets(source)
        if offsets is not None:
            restore(offsets)


def disk_bytes(root: Path) -> int:
    """Return the disk usage of the folder in bytes."""
    total = 0
    for folder, _, names in os.walk(root):
        for path in (folder, *(os.path.join(folder, name) for name in names)):
            with suppress(FileNotFoundError):
                total += os.lstat(path).st_blocks * 512
    return total


def blocks(size: int) -> int:
    """Return the disk usage in bytes of a file of this size.

    >>> blocks(0), blocks(1), blocks(8192)
    (0, 4096, 8192)
    """
    return -(-size // BLOCK) * BLOCK


def gzip_member(lines: bytes) -> bytes:
    """Return the lines as one complete gzip member. The same lines give the same bytes."""
    deflater = zlib.compressobj(6, zlib.DEFLATED, GZIP)
    return deflater.compress(lines) + deflater.flush()


def restore(path: Path) -> None:
    """Keep the complete members of a file, and remove everything else; an empty file is removed.

    The usual case is a torn last member. A power loss may also leave damage before complete members, which are kept.
    Raises InputError for a file that is not a gzip file: no recorder wrote it.
    """
    data = path.read_bytes()
    kept = list(_members(data))
    size = sum(end - begin for begin, end in kept)
    if kept and size == len(data):
        return
    if not kept:
        if data.strip(b"\0") and not data.startswith(MAGIC[: len(data)]):
            raise InputError(f"{path} is not a gzip file, so no recorder wrote it; move it to another folder")
        path.unlink()
    elif kept[-1][1] == size:
        _truncate(path, size)
    else:
        replace_file(path, b"".join(data[begin:end] for begin, end in kept))


def _members(data: bytes) -> Iterator[tuple[int, int]]:
    """Yield the begin and end of each complete member."""
    begin, tried = 0, 0
    while 0 <= begin < len(data) and tried < MOST_TRIED:
        end = _member_end(data, begin)
        if end is None:
            tried += 1
            begin = data.find(MAGIC, begin + 1)
        else:
            yield begin, end
            begin = end


def _member_end(data: bytes, begin: int) -> int | None:
    inflater = zlib.decompressobj(GZIP)
    for at in range(begin, len(data), CHUNK):
        chunk = data[at : at + CHUNK]
        try:
            inflater.decompress(chunk)
        except zlib.error:
            return None
        if inflater.eof:
            return at + len(chunk) - len(inflater.unused_data)
    return None


def _truncate(path: Path, size: int) -> None:
    with path.open("r+b") as file:
        file.truncate(size)
        os.fsync(file.fileno())
