"""The lock of a warehouse: a run commits to many tables, so two runs must not write together.

A remote warehouse has a lease (lease.py). On this machine, the locks are the system's, so they always end with
their process. There are three: on the folder, which nobody can remove without the tables; on a file, for file systems
that cannot lock folders; and one that Java holds, because Java may still commit for a moment after the driver is
killed.
"""

from __future__ import annotations

import datetime as dt
import errno
import fcntl
import json
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mqreplay.lake.files import folder_in_place, is_remote, joined
from mqreplay.lake.lease import holder_of, lease_lock
from mqreplay.settings import StorageSettings
from mqreplay.words.errors import InputError, WarehouseLocked

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCK_FILE = ".mqreplay.lock"
JAVA_LOCK_FILE = ".mqreplay.java.lock"
JAVA_ENDS_S = 60  # Java ends within seconds after its driver; it removes temporary files first
BUSY = (errno.EACCES, errno.EAGAIN)
FOLDER_LOCK_ERRORS = (errno.EBADF, errno.EINVAL, errno.EISDIR, errno.ENOTSUP)  # errors of NFS


class WarehouseLock:
    """The held locks of one warehouse."""

    def __init__(self, root: str) -> None:
        """``root`` is the warehouse's folder."""
        self.root = root
        self._java: Any = None

    def share_with_java(self, spark: SparkSession) -> None:
        """Let the session's Java lock the warehouse too, until ``release_java`` or its own end."""
        if is_remote(self.root):  # the lease ends later than Java
            return
        path = str(Path(self.root, JAVA_LOCK_FILE).resolve())
        jvm: Any = spark.sparkContext._jvm
        self._java = jvm.java.io.RandomAccessFile(path, "rw")
        if self._java.getChannel().tryLock() is None:
            raise WarehouseLocked(f"warehouse {self.root} is in use by another run's Java; wait for it, or stop it")

    def release_java(self) -> None:
        """Let Java release its lock. If Java has ended, the lock is free."""
        if self._java is not None:
            from py4j.protocol import Py4JError  # already imported if there is a Java

            with suppress(Py4JError, OSError):
                self._java.close()


@contextmanager
def warehouse_lock(
    root: str, lease_s: float = StorageSettings().lease_s, say: Callable[[str], None] = lambda text: None
) -> Iterator[WarehouseLock]:
    """Lock the warehouse during the block. Raises WarehouseLocked if another run holds it.

    ``lease_s`` is the lease on a remote warehouse; ``say`` is called with a line if a lease must be waited for.
    """
    if is_remote(root):
        with lease_lock(root, lease_s, say):
            yield WarehouseLock(root)
        return
    handles: list[int] = []
    try:
        folder, file = _open(root)
        handles += [folder, file]
        _lock(folder, file, root, optional=FOLDER_LOCK_ERRORS)
        _lock(file, file, root)
        _wait_for_java(root)
        os.ftruncate(file, 0)
        since = dt.datetime.now(dt.UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        os.pwrite(file, json.dumps({"pid": os.getpid(), "host": socket.gethostname(), "since": since}).encode(), 0)
        held = WarehouseLock(root)
        try:
            yield held
        except Exception:
            held.release_java()
            raise
        # After Ctrl-C or SIGTERM Java may be in a commit: it holds the lock until it ends.
        held.release_java()
        os.ftruncate(file, 0)
    finally:
        for handle in handles:
            os.close(handle)


def is_locked(root: str) -> bool:
    """Return whether a run holds the warehouse."""
    if is_remote(root):
        return holder_of(root) is not None
    try:
        handle = os.open(Path(root, LOCK_FILE), os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno in BUSY
    finally:
        os.close(handle)
    return False


def _open(root: str) -> tuple[int, int]:
    """Open the folder, made if it is missing, and the lock file."""
    try:
        Path(root).mkdir(parents=True, exist_ok=True)
        folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
        try:
            return folder, os.open(Path(root, LOCK_FILE), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
        except BaseException:
            os.close(folder)
            raise
    except IsADirectoryError:
        raise folder_in_place(joined(root, LOCK_FILE)) from None
    except OSError as error:
        raise InputError(
            f"warehouse {root} cannot be written: {error.strerror}; choose another with --warehouse"
        ) from None


def _lock(handle: int, record: int, root: str, optional: tuple[int, ...] = ()) -> None:
    """Take one lock; ``record`` is the handle of the file with the holder's name."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in BUSY:
            raise WarehouseLocked(f"warehouse {root} is in use by {_holder(record)}; wait for it, or stop it") from None
        if error.errno not in optional:
            raise InputError(
                f"warehouse {root} cannot be locked: {error.strerror}; choose a folder on a file system with locks"
            ) from None


def _wait_for_java(root: str) -> None:
    """Wait until no Java of a killed run holds the warehouse."""
    try:
        handle = os.open(Path(root, JAVA_LOCK_FILE), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
    except IsADirectoryError:
        raise folder_in_place(joined(root, JAVA_LOCK_FILE)) from None
    except OSError as error:
        raise InputError(f"warehouse {root} cannot be written: {error.strerror}") from None
    try:
        deadline = time.monotonic() + JAVA_ENDS_S
        while True:
            try:
                fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except OSError as error:
                if error.errno not in BUSY:
                    raise InputError(f"warehouse {root} cannot be locked: {error.strerror}") from None
                if time.monotonic() > deadline:
                    raise WarehouseLocked(
                        f"warehouse {root} is in use by the Java process of a run that was killed; stop that process"
                    ) from None
                time.sleep(0.2)
    finally:
        os.close(handle)


def _holder(handle: int) -> str:
    try:
        lock_record = json.loads(os.pread(handle, 4096, 0))
        return f"process {lock_record['pid']} on {lock_record['host']} since {lock_record['since']}"
    except (ValueError, KeyError, TypeError):
        return "another process"
