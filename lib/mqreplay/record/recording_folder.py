"""The folder of a recorder: names of its files, its lock, and repair after an interrupted run."""

from __future__ import annotations

import datetime as dt
import errno
import fcntl
import os
import re
from collections import defaultdict
from contextlib import suppress
from pathlib import Path
from typing import Final

from mqreplay.errors import InputError
from mqreplay.record.durable import UNFINISHED
from mqreplay.record.gzip_member import restore
from mqreplay.recording_files import POLLED, SNAPSHOT_KINDS

HOUR_MS: Final = 3_600_000
BLOCK: Final = 4096  # allocation unit of a file system in bytes
SNAPSHOTS: Final = "snapshots"
OFFSETS: Final = POLLED[0]
_HOURLY = re.compile(r"(?P<stem>[a-z_]+)\.[0-9]{10}\.jsonl\.gz")
_EPOCH_MS = re.compile(r"[0-9]{12,14}")
LONGEST_NAME: Final = 255  # bytes, of Linux's file systems


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
