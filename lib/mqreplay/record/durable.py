"""Writes that happen completely or not at all, even after a disk error."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path

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
