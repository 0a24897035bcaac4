"""Files of stores for DuckDB: it reads the ranges that a query needs, and cannot write."""

from __future__ import annotations

import datetime as dt
import threading
from typing import Any, BinaryIO

from fsspec import AbstractFileSystem

from mqreplay.lake.files import files_of
from mqreplay.lake.scratch import info_of
from mqreplay.lake.store_protocol import SCHEMES


class StoredFiles(AbstractFileSystem):  # type: ignore[misc]  # fsspec has no types
    """What DuckDB asks of a file system. Paths are URIs."""

    protocol = SCHEMES
    cachable = False

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return path

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        """Return the name and size of a file. Raises FileNotFoundError."""
        return {"name": path, "size": info_of(path).bytes, "type": "file"}

    def modified(self, path: str) -> dt.datetime:
        """Return the time of the last change of a file."""
        return dt.datetime.fromtimestamp(info_of(path).modified_ns / 1e9, dt.UTC)

    def open(self, path: str, mode: str = "rb", **_: Any) -> SharedFile:
        """Open a file for reading."""
        if mode != "rb":
            raise PermissionError(f"{path} is only read")
        return SharedFile(path)


class SharedFile:
    """A file that several threads read, each at its own position.

    DuckDB's threads share one file object: they seek and read without a lock.
    """

    def __init__(self, path: str) -> None:
        self._path, self._own = path, threading.local()
        self._stream()  # a missing file is an error of `open`

    def _stream(self) -> BinaryIO:
        if not hasattr(self._own, "stream"):
            self._own.stream = files_of(self._path).open(self._path)
        stream: BinaryIO = self._own.stream
        return stream

    def read(self, size: int = -1) -> bytes:
        """Return the next ``size`` bytes at this thread's position, fewer at the end."""
        return self._stream().read(size)

    def seek(self, offset: int, whence: int = 0) -> int:
        """Change this thread's position, and return it."""
        return self._stream().seek(offset, whence)

    def tell(self) -> int:
        """Return this thread's position."""
        return self._stream().tell()

    def close(self) -> None:
        """Forget the streams of all threads."""
        self._own = threading.local()
