"""Files of stores for DuckDB: it reads the ranges that a query needs, and cannot write."""

from __future__ import annotations

import datetime as dt
from typing import Any, BinaryIO

from fsspec import AbstractFileSystem

from mqreplay.lake.files import SCHEMES, FileInfo, files_of


class StoredFiles(AbstractFileSystem):  # type: ignore[misc]  # fsspec has no types
    """What DuckDB asks of a file system. Paths are URIs."""

    protocol = SCHEMES
    cachable = False

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return path

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        """Return the name and size of a file. Raises FileNotFoundError."""
        return {"name": path, "size": _found(path).bytes, "type": "file"}

    def modified(self, path: str) -> dt.datetime:
        """Return the time of the last change of a file."""
        return dt.datetime.fromtimestamp(_found(path).modified_ns / 1e9, dt.UTC)

    def open(self, path: str, mode: str = "rb", **_: Any) -> BinaryIO:
        """Open a file for reading."""
        if mode != "rb":
            raise PermissionError(f"{path} is only read")
        return files_of(path).open(path)


def _found(path: str) -> FileInfo:
    found = files_of(path).info(path)
    if found is None:
        raise FileNotFoundError(path)
    return found
