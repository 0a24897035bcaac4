"""Writes of mqreplay's own files that happen completely or not at all, even after a disk error.

Their failures are OwnDiskError, never an error of the input.
"""

from __future__ import annotations

import errno
import io
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal

from mqreplay.words.errors import OwnDiskError

UNFINISHED = ".unfinished"  # behind the name of a file that is being written


def append_whole(path: Path, data: bytes) -> None:
    """Append ``data`` by one write. If it fails or is partial, truncate the file to its previous length.

    Raises OSError with the reason, also for a partial write.
    """
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o644)
    try:
        before = os.fstat(file).st_size
        try:
            written = os.write(file, data)
            if written < len(data):  # the next write gives the reason
                written += os.write(file, data[written:])
            if written < len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        except BaseException:
            os.ftruncate(file, before)
            raise
    finally:
        os.close(file)


def replace_file(path: Path, data: bytes, beside: Path | None = None) -> None:
    """Write a file to ``path``, replacing an older one. Its content is on the disk before it gets the name.

    ``beside`` is the file's name until then, on the same file system; by default in the same folder.
    """
    unfinished = beside or path.with_name(path.name + UNFINISHED)
    file = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o644)
    try:
        with open(file, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(unfinished, path)
    except BaseException:
        with suppress(OSError):
            unfinished.unlink()
        raise
    sync(path.parent)


def sync(path: Path) -> None:
    """Wait until a file's content, or a folder's names, are on the disk; do nothing if it is missing."""
    try:
        file = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return
    try:
        os.fsync(file)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # some file systems cannot sync a folder
            raise
    finally:
        os.close(file)


@contextmanager
def own_disk(folder: Path) -> Iterator[None]:
    """Raise OwnDiskError for an OSError of the block, which must not read any input."""
    try:
        yield
    except OSError as error:
        raise OwnDiskError(str(folder), error.strerror or str(error)) from error


def open_own(path: Path, mode: Literal["wb", "xb"] = "wb") -> io.BufferedWriter:
    """Open a file for writing. Opening, writing and closing it raise OwnDiskError."""
    with own_disk(path.parent):
        return io.BufferedWriter(_OwnFile(path, mode), 1 << 16)


def require_free(folder: Path, free_bytes: int) -> None:
    """Raise OwnDiskError if the file system of a folder has less free space."""
    with own_disk(folder):
        if shutil.disk_usage(folder).free < free_bytes:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder))


class _OwnFile(io.FileIO):
    """A file that raises OwnDiskError."""

    def __init__(self, path: Path, mode: str) -> None:
        self._folder = path.parent
        super().__init__(path, mode)

    def write(self, data: Any) -> int:
        """Write some bytes; return how many."""
        with own_disk(self._folder):
            return super().write(data)

    def close(self) -> None:
        """Close the file. Some network file systems report a full disk only now."""
        with own_disk(self._folder):
            super().close()
