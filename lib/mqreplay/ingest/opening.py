"""Open a file of a recording: only regular files inside the recording, or a file of a store by its URI.

A listed file may have been replaced since, so both are checked on the open file. A store has neither links nor devices.
"""

from __future__ import annotations

import os
from io import BufferedReader
from typing import cast

from mqreplay.lake.files import files_of, is_remote
from mqreplay.lake.store_protocol import FileTooLarge
from mqreplay.machine.local_files import open_regular


def open_recorded(path: str, root: str | None) -> BufferedReader:
    """Open a regular file inside the folder ``root``, links resolved; None: anywhere. Raises OSError, StoreError."""
    return cast(BufferedReader, files_of(path).open(path)) if is_remote(path) else open_regular(path, root)


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
