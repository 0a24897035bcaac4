"""Copies of data files of stores on this machine, for libraries that cannot read the store, or read it in small pieces.

The names of data files are unique, and the files never change, so a copy is made once in a process.
"""

from __future__ import annotations

import shutil
import threading
from functools import lru_cache

from mqreplay.lake.files import FileInfo, files_of
from mqreplay.lake.scratch import scratch

BLOCK = 8 << 20  # bytes copied at once
SMALL = 16 << 20  # bytes: a file up to this size is read whole sooner than in pieces


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
            shutil.copyfileobj(stream, target, BLOCK)
        beside.replace(copy)
    return str(copy)


def copied_if_small(path: str) -> str:
    """Return the path of a copy of a small file, and the own path of a large one. Raises FileNotFoundError."""
    return copied(path) if info_of(path).bytes <= SMALL else path
