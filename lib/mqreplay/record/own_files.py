"""The files that mqreplay itself writes and keeps. Their failures are OwnDiskError, never an error of the input."""

from __future__ import annotations

import errno
import io
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from mqreplay.errors import OwnDiskError


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
