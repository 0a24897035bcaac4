"""Check the data files of tables: their sizes are in Delta's log, their checksums (CRC-32) in their names.

No reader of Parquet that mqreplay uses verifies pages, so one flipped bit can give other rows. A process reads each
file once to check it. Files of Spark have no checksum. Stores check the content of their files themselves.
"""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeAlias

import polars as pl

from mqreplay.lake.files import is_remote, joined
from mqreplay.lake.table_versions import damaged_table
from mqreplay.machine.local_files import permitted

IN_NAME = re.compile(r"-([0-9a-f]{8})\.zstd\.parquet$")
READ_BLOCK = 1 << 20
THREADS = 4  # reading and checksums release the GIL

State: TypeAlias = tuple[int, int, int]  # size in bytes, time of change, inode

_checked: dict[str, State] = {}  # files of this process, as they were when they were read


def checksum_of(path: str | os.PathLike[str]) -> str:
    """Return the CRC-32 of a file of this machine as eight hexadecimal digits."""
    checksum = 0
    with open(path, "rb") as stream:
        while block := stream.read(READ_BLOCK):
            checksum = zlib.crc32(block, checksum)
    return f"{checksum:08x}"


def check_files(location: str, listed: pl.DataFrame, *, checksums: bool = True) -> None:
    """Raise DamagedTable if one of the files that a snapshot lists is missing, or has another size or content.

    Raises InputError for one that may not be read.

    ``location`` is the table's folder. Without ``checksums`` no file is read.
    """
    if is_remote(location):
        return
    with permitted(location):
        unread: list[tuple[str, State]] = []
        for path, size in listed.select("path", "size_bytes").iter_rows():
            state = _state(location, path, size)
            if checksums and _checked.get(joined(location, path)) != state:
                unread.append((path, state))
        if sum(state[0] for _, state in unread) < READ_BLOCK:  # read before threads have started
            for file in unread:
                _read(location, *file)
        else:
            with ThreadPoolExecutor(THREADS) as pool:
                list(pool.map(lambda file: _read(location, *file), unread))


def _state(location: str, path: str, size: int) -> State:
    """Return the state of a file. Raises DamagedTable if it is missing or has another size."""
    with _readable(location, path):
        now = os.stat(joined(location, path))
    if now.st_size != size:
        raise damaged_table(location, f"its file {path} has {now.st_size:,} bytes, not {size:,}")
    return now.st_size, now.st_mtime_ns, now.st_ino


def _read(location: str, path: str, state: State) -> None:
    """Read a file, and note its state. Raises DamagedTable if its checksum is wrong."""
    full, checksum = joined(location, path), IN_NAME.search(path)
    with _readable(location, path):
        if checksum is None:
            open(full, "rb").close()  # may it be read?
        elif checksum_of(full) != checksum[1]:
            raise damaged_table(location, f"its file {path} has a wrong checksum", is_seen=False)
    _checked[full] = state


@contextmanager
def _readable(location: str, path: str) -> Iterator[None]:
    try:
        yield
    except PermissionError:
        raise
    except OSError as error:
        raise damaged_table(location, f"its file {path} cannot be read ({error.strerror})") from None
