"""The lock of a remote warehouse: numbered files, of which the last one names the run that holds it.

A run takes the lock by creating the file with the next number, which the store allows once (a conditional write), and
renews it six times in its lease. A run that finds the last file of another run watches it: if it is renewed, that run
is alive; if not, for as long as that run's lease, it is dead, and the next number is free. No clock is compared with
another. A run that could not renew its file for two thirds of its lease writes nothing more: nobody has taken its place
by then.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from mqreplay.lake.files import files_of, is_remote, joined
from mqreplay.words.errors import StoreError, StoreUnavailable, WarehouseLocked

FOLDER = ".mqreplay.locks"
RENEWALS = 6  # in a lease
GRACE_S = 1  # a request of a run that was just killed may still be on its way
ENDED = "ended"

_held: list[Lease] = []


class Lease:
    """The held lock of one remote warehouse. ``number`` is that of its file."""

    def __init__(self, root: str, number: int, lease_s: float) -> None:
        self.root, self.number = root, number
        self._path, self._lease_s = _path(root, number), lease_s
        self._record: dict[str, Any] = {
            "run": str(uuid.uuid4()),
            "pid": os.getpid(),
            "host": socket.gethostname(),
            "since": dt.datetime.now(dt.UTC).strftime("%Y-%m-%d %H:%M:%S UTC"),
            "lease_s": lease_s,
            "process": _process(os.getpid()),
            "renewed": 0,
        }
        self._renewed_at = time.monotonic()
        self._lost = False
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._renew_until_stopped, daemon=True)

    def take(self) -> bool:
        """Create the file. Return False if another run was faster. Raises StoreError without conditional writes."""
        files, data = files_of(self.root), self._data()
        self._renewed_at = time.monotonic()
        try:
            files.create(self._path, data)
        except FileExistsError:
            # A request whose answer was lost is sent again, and finds its own file.
            if _read(self.root, self.number).get("run") != self._record["run"]:
                return False
        with suppress(FileExistsError):
            files.create(self._path, data)
            files.remove(self._path)
            raise StoreError(
                f"the store of {self.root} has no conditional writes (If-None-Match), so nothing keeps two runs apart; "
                "use a store that has them, or a folder of a file system"
            )
        # A number may be free because its file is old and was removed: only the last one holds.
        if _last_number(self.root) != self.number or _read(self.root, self.number).get("run") != self._record["run"]:
            files.remove(self._path)
            return False
        for name in files.names(joined(self.root, FOLDER)):
            if name < Path(self._path).name:
                files.remove(joined(self.root, FOLDER, name))
        self._thread.start()
        return True

    def require(self) -> None:
        """Raise StoreUnavailable if another run may hold the warehouse by now."""
        if self._lost or time.monotonic() - self._renewed_at > self._lease_s * 2 / 3:
            raise StoreUnavailable(
                f"the lock on {self.root} could not be renewed in time, so this run writes nothing more; nothing "
                "stored before is lost; check the network, or raise [storage] lease_s, and run it again"
            )

    def release(self) -> None:
        """Stop the renewal and mark the file as ended. A store that does not answer sees the lease expire."""
        self._stop.set()
        self._thread.join()
        if not self._lost:
            self._record[ENDED] = True
            with suppress(StoreError):
                files_of(self.root).write(self._path, self._data())

    def _renew_until_stopped(self) -> None:
        while not self._stop.wait(self._lease_s / RENEWALS):
            began = time.monotonic()
            try:
                if _last_number(self.root) != self.number:
                    self._lost = True
                    return
                self._record["renewed"] += 1
                files_of(self.root).write(self._path, self._data())
                self._renewed_at = began
            except Exception:  # the next attempt, or `require`, tells
                continue

    def _data(self) -> bytes:
        return json.dumps(self._record).encode()


def require_lease(path: str) -> None:
    """Raise StoreUnavailable if ``path`` is in a remote warehouse whose lock this process has lost."""
    for lease in _held:
        if path == lease.root or path.startswith(lease.root + "/"):
            lease.require()


def is_leased(path: str) -> bool:
    """Return whether this process holds the remote warehouse that ``path`` is in: nobody else changes it."""
    return any(path.startswith(lease.root + "/") for lease in _held)


@contextmanager
def lease_lock(root: str, lease_s: float, say: Callable[[str], None] = lambda text: None) -> Iterator[Lease]:
    """Hold the remote warehouse during the block. Raises WarehouseLocked if a run that is alive holds it."""
    while True:
        number = _last_number(root)
        if number is not None:
            _wait_for_end(root, number, say)
        lease = Lease(root, 0 if number is None else number + 1, lease_s)
        if lease.take():
            break
    _held.append(lease)
    try:
        yield lease
    finally:
        _held.remove(lease)
        lease.release()


def holder_of(root: str) -> dict[str, Any] | None:
    """Return what the last run wrote into its file; None without one, or if that run has ended."""
    number = _last_number(root) if is_remote(root) else None
    lock_record = {} if number is None else _read(root, number)
    return None if not lock_record or lock_record.get(ENDED) or _is_dead_here(lock_record) else lock_record


def _wait_for_end(root: str, number: int, say: Callable[[str], None]) -> None:
    """Return when the run of this number has ended or is dead. Raises WarehouseLocked if it is alive."""
    lock_record = _read(root, number)
    if not lock_record or lock_record.get(ENDED):
        return
    name = f"process {lock_record.get('pid')} on {lock_record.get('host')} since {lock_record.get('since')}"
    if _is_dead_here(lock_record):
        time.sleep(GRACE_S)
        return
    say(f"warehouse {root} was taken by {name}; waiting to see whether that run is alive")
    patience = float(lock_record.get("lease_s", 0))
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        time.sleep(min(1.0, patience / 10))
        now = _read(root, number)
        if not now or now.get(ENDED):
            return
        if now.get("renewed") != lock_record.get("renewed"):
            raise WarehouseLocked(f"warehouse {root} is in use by {name}; wait for it, or stop it")


def _last_number(root: str) -> int | None:
    names = files_of(root).names(joined(root, FOLDER))
    return max((int(name.partition(".")[0]) for name in names if name.partition(".")[0].isdigit()), default=None)


def _path(root: str, number: int) -> str:
    return joined(root, FOLDER, f"{number:020d}.json")


def _read(root: str, number: int) -> dict[str, Any]:
    """Return the content of a file; empty if it is gone or is none of ours."""
    path = _path(root, number)
    try:
        lock_record = json.loads(files_of(path).read(path))
    except (FileNotFoundError, ValueError):
        return {}
    return lock_record if isinstance(lock_record, dict) else {}


def _is_dead_here(lock_record: dict[str, Any]) -> bool:
    """Return whether the run was a process of this machine (and of this container) that has ended."""
    theirs, pid = lock_record.get("process"), lock_record.get("pid")
    if not isinstance(theirs, list) or not isinstance(pid, int):
        return False
    mine = _process(os.getpid())
    return bool(mine) and theirs[:2] == mine[:2] and theirs != _process(pid)


def _process(pid: int) -> list[str]:
    """Return what tells a process of Linux from every other: boot, PID namespace, start; empty if it is not there."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        # The name of the program, in brackets, may hold spaces.
        started = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[19]
        return [boot, os.readlink("/proc/self/ns/pid"), started]
    except (OSError, IndexError):
        return []
