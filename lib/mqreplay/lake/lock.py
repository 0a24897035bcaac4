"""One lock for a warehouse: Delta's local log store is safe within one JVM only, so two runs must not write at once.

The lock is the operating system's (flock), so it ends with the process that holds it, however that ends. What the file
says is for people.
"""

from __future__ import annotations

import datetime as dt
import fcntl
import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mqreplay.errors import InputError, WarehouseLocked

LOCK_FILE = ".mqreplay.lock"


@contextmanager
def warehouse_lock(root: str) -> Iterator[None]:
    """Holds the warehouse for the length of the block. Raises WarehouseLocked at once if another run has it."""
    folder = Path(root)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder / LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise InputError(
            f"warehouse {root} cannot be written: {error.strerror}; choose another with --warehouse"
        ) from None
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise WarehouseLocked(f"warehouse {root} is in use by {_holder(handle)}; wait for it, or stop it") from None
        os.ftruncate(handle, 0)
        since = dt.datetime.now(dt.UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        holder = {"pid": os.getpid(), "host": socket.gethostname(), "since": since}
        os.pwrite(handle, json.dumps(holder).encode(), 0)
        yield
        os.ftruncate(handle, 0)
    finally:
        os.close(handle)


def _holder(handle: int) -> str:
    try:
        said = json.loads(os.pread(handle, 4096, 0))
        return f"process {said['pid']} on {said['host']} since {said['since']}"
    except (ValueError, KeyError, TypeError):
        return "another process"
