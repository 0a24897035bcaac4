"""Check the data files of tables: their sizes are in Delta's log, their checksums (CRC-32) in their names.

No reader of Parquet that mqreplay uses verifies pages, so one flipped bit can give other rows. A process reads each
file once to check it. Files of Spark have no checksum. Stores check the content of their files themselves.
"""

from __future__ import annotations

import os
import re
import zlib
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import polars as pl

from mqreplay.lake.files import is_remote, joined
from mqreplay.lake.table_versions import damaged_table
from mqreplay.machine.local_files import permitted

IN_NAME = re.compile(r"-([0-9a-f]{8})\.zstd\.parquet$")
READ_BLOCK = 1 << 20
WRONG = "has a wrong checksum"
THREADS = 4  # reading and checksums release the GIL

_checked: dict[str, tuple[int, int, int]] = {}  # files of this process, as they were when they were read


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
    files = listed.select("path", "size_bytes").rows()
    # One is checked before threads have started.
    starts = ThreadPoolExecutor(THREADS) if len(files) > 1 else nullcontext()
    with permitted(location), starts as pool:
        run = map if pool is None else pool.map
        troubles = run(lambda file: _trouble(location, file[0], file[1], checksums), files)
        if reason := next(filter(None, troubles), None):
            raise damaged_table(location, reason, is_seen=not reason.endswith(WRONG))


def _trouble(location: str, path: str, size: int, checksums: bool) -> str | None:
    full, checksum = joined(location, path), IN_NAME.search(path)
    try:
        now = os.stat(full)
        state = (now.st_size, now.st_mtime_ns, now.st_ino)
        if now.st_size != size:
            return f"its file {path} has {now.st_size:,} bytes, not {size:,}"
        if checksums and _checked.get(full) != state:
            if checksum is None:
                open(full, "rb").close()  # may it be read?
            elif checksum_of(full) != checksum[1]:
                return f"its file {path} {WRONG}"
            _checked[full] = state
    except PermissionError:
        raise
    except OSError as error:
        return f"its file {path} cannot be read ({error.strerror})"
    return None
