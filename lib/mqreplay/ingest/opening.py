"""Open a file of a recording: only regular files inside the recording, or a file of a store by its URI.

A listed file may have been replaced since, so both are checked on the open file. A store has neither links nor devices.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from functools import lru_cache
from io import BufferedReader
from typing import cast

from mqreplay.lake.files import FileTooLarge, files_of, is_remote

NOT_REGULAR = "it is a pipe, socket, device or folder, not a file"
OUTSIDE = "a link leads out of the recording"
# A pipe without a writer must not block, and a terminal must not become the controlling one.
_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


def open_recorded(path: str, root: str | None) -> BufferedReader:
    """Open a regular file inside the folder ``root``, links resolved; None: anywhere. Raises OSError, StoreError."""
    if is_remote(path):
        return cast(BufferedReader, files_of(path).open(path))
    # Devices are not opened: for some of them that has an effect.
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise OSError(errno.EINVAL, NOT_REGULAR)
    descriptor = os.open(path, _FLAGS)
    try:
        opened = os.fstat(descriptor)
        if not stat.S_ISREG(opened.st_mode):
            raise OSError(errno.EINVAL, NOT_REGULAR)
        if root is not None and not _is_inside(descriptor, path, root, opened):
            raise OSError(errno.EPERM, OUTSIDE)
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def read_recorded(path: str, root: str | None, most_bytes: int) -> bytes:
    """Return the bytes of a file. Raises OSError, FileTooLarge if it has more than ``most_bytes``, and StoreError."""
    if is_remote(path):
        return files_of(path).read(path, most_bytes)
    with open_recorded(path, root) as stream:
        size = os.fstat(stream.fileno()).st_size
        data = stream.read(most_bytes + 1) if size <= most_bytes else b""
    if max(size, len(data)) > most_bytes:  # it may have grown
        raise FileTooLarge(max(size, len(data)))
    return data


def size_of(stream: BufferedReader) -> int:
    """Return the size of an open file in bytes; it is then at its beginning."""
    size = stream.seek(0, os.SEEK_END)
    stream.seek(0)
    return size


def is_file(path: str) -> bool:
    """Return whether there is a file with this path or URI."""
    return files_of(path).info(path) is not None if is_remote(path) else os.path.isfile(path)


def is_folder(path: str) -> bool:
    """Return whether there is a folder; in an object store, one with a file."""
    return bool(files_of(path).names(path)) if is_remote(path) else os.path.isdir(path)


def is_within(resolved: str, root: str) -> bool:
    """Return whether a resolved path is inside the resolved folder ``root``.

    >>> is_within("/a/b", "/a"), is_within("/ab", "/a"), is_within("/a", "/a"), is_within("/b", "/")
    (True, False, True, True)
    """
    return resolved == root or resolved.startswith(root.rstrip("/") + "/")


def _is_inside(descriptor: int, path: str, root: str, opened: os.stat_result) -> bool:
    """Return whether the open file is the one that ``path`` names without a link, inside ``root``."""
    with suppress(OSError):  # Linux knows where an open file is: one question instead of one for each part of the path
        if is_within(os.readlink(f"/proc/self/fd/{descriptor}"), _resolved(root)):
            return True
    resolved = os.path.realpath(path)
    return is_within(resolved, _resolved(root)) and os.path.samestat(os.lstat(resolved), opened)


@lru_cache(maxsize=64)
def _resolved(folder: str) -> str:
    return os.path.realpath(folder)
