"""One folder for all temporary files of this process: Spark's shuffles, Java's temporary files, the sockets.

A killed process leaves its folder. The next process removes it if two things are certain: mqreplay made the folder
(owner, mode, name, marker file), and no process uses it (the lock on the marker is free). Java holds the same lock,
because it may outlive Python for a moment. On a file system without locks, folders are left.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import re
import shutil
import stat
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

from mqreplay.lake.files import files_of
from mqreplay.lake.store_protocol import FileInfo
from mqreplay.words.errors import InputError

MARKER = ".mqreplay-scratch"
PARTS = ("spark", "java", "sockets", "tables")
# Spark splits a list of folders at commas and replaces ${...} in settings; Java's launcher is a shell script.
UNUSABLE = re.compile(r"[,\x00-\x1f\x7f]|\$\{")
COPY_BLOCK = 8 << 20  # bytes copied at once
SMALL = 16 << 20  # bytes: a file up to this size is read whole sooner than in pieces


@dataclass(frozen=True)
class Scratch:
    """The folder of this process. ``lock`` is the descriptor of the lock; None if there are no locks."""

    folder: Path
    lock: int | None

    def part(self, name: str) -> Path:
        """Return one of PARTS."""
        return self.folder / name


@cache
def scratch() -> Scratch:
    """Return the folder of this process, made at the first call and removed at the end. Raises InputError."""
    parent = _parent()
    remove_dead(parent)
    try:
        # A new name with mode 0700, so that nothing of another user is used.
        folder = Path(tempfile.mkdtemp(prefix=_prefix(), dir=parent))
        for name in PARTS:
            (folder / name).mkdir(mode=0o700)
        lock = _lock(folder)
    except OSError as error:
        raise InputError(f"{parent} takes no temporary files: {error.strerror}; set TMPDIR to another folder") from None
    atexit.register(_remove_own, folder, os.getpid())
    return Scratch(folder, lock)


@contextmanager
def temporary_files_here() -> Iterator[None]:
    """Let Python make its own temporary files in the process's folder within the block."""
    before, tempfile.tempdir = tempfile.tempdir, str(scratch().part("java"))
    try:
        yield
    finally:
        tempfile.tempdir = before


def remove_dead(parent: Path) -> list[Path]:
    """Remove the folders of mqreplay processes that have ended; return them. Keep folders of unknown origin."""
    removed = []
    for folder in sorted(parent.glob(f"{_prefix()}*")):
        with suppress(OSError):
            if _is_ours(folder.lstat()) and _remove_if_dead(folder):
                removed.append(folder)
    return removed


def _parent() -> Path:
    try:
        parent = Path(tempfile.gettempdir()).resolve()
    except FileNotFoundError:
        raise InputError("no folder for temporary files is writable; set TMPDIR to one") from None
    try:
        str(parent).encode()
    except UnicodeEncodeError:
        raise InputError(f"TMPDIR {str(parent)!r} is not UTF-8, and Java cannot name it; choose another") from None
    if UNUSABLE.search(str(parent)):
        raise InputError(
            f"TMPDIR {str(parent)!r} has a comma, a control character or ${{ in its name, which Spark cannot use; "
            "choose another"
        )
    return parent


def _prefix() -> str:
    return f"mqreplay-{os.getuid()}-"


def _is_ours(found: os.stat_result) -> bool:
    """Return whether it is a folder (not a link) of this user that nobody else can enter."""
    return found.st_uid == os.getuid() and found.st_mode == stat.S_IFDIR | 0o700


def _lock(folder: Path) -> int | None:
    """Make the marker, and lock it before it gets its name: an unlocked marker belongs to a dead process."""
    unnamed = folder / f"{MARKER}.new"
    handle = os.open(unnamed, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        return None
    unnamed.rename(folder / MARKER)
    return handle


def _remove_if_dead(folder: Path) -> bool:
    handle = os.open(folder / MARKER, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        marker = os.fstat(handle)
        if not stat.S_ISREG(marker.st_mode) or marker.st_uid != os.getuid():
            return False
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _remove(folder)
    finally:
        os.close(handle)
    return not folder.exists()


def _remove(folder: Path) -> None:
    """Remove a folder, the marker last, so that the next process can finish an interrupted removal."""
    for path in [path for path in folder.iterdir() if path.name != MARKER]:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
    (folder / MARKER).unlink(missing_ok=True)
    try:
        folder.rmdir()
    except OSError:  # as in a process with restricted writes
        (folder / MARKER).touch(mode=0o600)
        raise


def _remove_own(folder: Path, process: int) -> None:
    if os.getpid() == process:  # not in a forked process
        with suppress(OSError):
            _remove(folder)


@lru_cache(maxsize=10_000)
def info_of(path: str) -> FileInfo:
    """Return a data file of a store, asked for once. Raises FileNotFoundError."""
    found = files_of(path).info(path)
    if found is None:
        raise FileNotFoundError(2, "No such file", path)
    return found


def copied(path: str) -> str:
    """Return the path of a copy of the file."""
    copy = scratch().folder / path.rpartition("/")[2]
    if not copy.exists():
        beside = copy.with_suffix(f".{threading.get_ident()}")
        with files_of(path).open(path) as stream, beside.open("wb") as target:
            shutil.copyfileobj(stream, target, COPY_BLOCK)
        beside.replace(copy)
    return str(copy)


def copied_if_small(path: str) -> str:
    """Return the path of a copy of a small file, and the own path of a large one. Raises FileNotFoundError."""
    return copied(path) if info_of(path).bytes <= SMALL else path
