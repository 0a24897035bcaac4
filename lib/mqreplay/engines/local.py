"""Kernels in a pool of processes on this machine, without Spark and Java."""

from __future__ import annotations

import datetime as dt
import multiprocessing
import os
import signal
import sys
import threading
import uuid
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from multiprocessing import resource_tracker
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from mqreplay.engines.engine import Context, Item, Result
from mqreplay.engines.file_decoding import FileDecoderRunner
from mqreplay.engines.file_passes import FilePassRunner, GoldTarget
from mqreplay.engines.packing import packed, unpacked
from mqreplay.engines.rows import file_rows
from mqreplay.engines.worker_process import begin
from mqreplay.lake.row_filter import Days
from mqreplay.lake.storage import Storage, storage, use_storage
from mqreplay.lake.warehouse import Warehouse

# With less, the processes take more time to start than they save.
FEW_BYTES = 4_000_000  # of recordings, as they are in their files
FEW_ROWS = 60_000


class LocalEngine:
    """A pool of processes. Leave its ``with`` block to close it."""

    clusters_at_once = 1  # memory of one machine; the pool is stopped if one fails

    def __init__(self, folder: Path, processes: int = 0) -> None:
        """Take ``processes`` and ``folder``, for the shared context of a map.

        0: one per core, but this process where there is little to do; 1: this process.
        """
        self._folder = folder
        self._may_stay, self._is_small = not processes, False
        self._processes = processes or len(os.sched_getaffinity(0))
        if self._processes > 1:
            _start_tracker()
        self._pool = self._new_pool()
        self._cancelled = False
        self._lock = threading.Lock()
        self._done = self._submitted = 0

    def _new_pool(self) -> ProcessPoolExecutor | None:
        # Not by fork: polars has threads, and a forked process would keep their locks forever.
        spawn = multiprocessing.get_context("spawn")
        return ProcessPoolExecutor(self._processes, spawn, begin) if self._processes > 1 else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def map(
        self, function: Callable[[Item, Context], Result], items: Sequence[Item], context: Context
    ) -> Iterator[Result]:
        """As Engine.map."""
        if self._pool is None or self._is_small:
            return iter([function(item, context) for item in items])
        shared = self._folder / f"{uuid.uuid4()}.pickle"
        shared.write_bytes(packed((function, context, storage())))
        with self._lock:
            self._submitted += len(items)
        with _interrupts_blocked():
            calls = deque(self._pool.submit(_call, str(shared), packed(item)) for item in items)
        for call in calls:
            call.add_done_callback(self._count)
        return _results(calls, shared)

    def pass_runner(self, warehouse: Warehouse, cluster: str, day: dt.date, days: Mapping[str, Days]) -> FilePassRunner:
        """As Engine.pass_runner."""
        source = file_rows(warehouse, cluster, days)
        self._is_small = self._may_stay and sum(files.rows for files in source.files.values()) <= FEW_ROWS
        return FilePassRunner(self, source, GoldTarget(warehouse, cluster))

    def _count(self, _: Any) -> None:
        with self._lock:
            self._done += 1

    def decoders(self, warehouse: Warehouse, cluster: str) -> FileDecoderRunner:
        """As Engine.decoders: tasks write files."""
        return FileDecoderRunner(self, warehouse, cluster)

    def expect(self, size: int) -> None:
        """As Engine.expect: little is read in this process."""
        self._is_small = self._may_stay and size <= FEW_BYTES

    def progress(self) -> str:
        """As Engine.progress."""
        return f"{self._done} of {self._submitted} tasks done"

    def cancel(self) -> None:
        """As Engine.cancel: tasks that have not started never start."""
        if self._pool is not None:
            self._cancelled = True
            self._pool.shutdown(wait=False, cancel_futures=True)

    def restart(self) -> None:
        """As Engine.restart."""
        if self._pool is not None and self._cancelled:
            self._pool.shutdown()
            self._pool, self._cancelled = self._new_pool(), False


def _results(calls: deque[Future[bytes]], shared: Path) -> Iterator[Any]:
    """Yield the results in order; none is kept. Remove ``shared`` when all calls have ended."""
    try:
        while calls:
            yield unpacked(calls.popleft().result())
    finally:
        shared.unlink(missing_ok=True)


def _start_tracker() -> None:
    """Start Python's resource tracker so that it removes the semaphores of a killed run without a warning."""
    option = "ignore:resource_tracker:UserWarning"
    sys.warnoptions.append(option)  # for its command line
    try:
        resource_tracker.ensure_running()
    finally:
        sys.warnoptions.remove(option)


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Block Ctrl-C for processes started in the block until they ignore it (`begin`)."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _call(shared: str, item: bytes) -> bytes:
    function, context, how = _shared(shared)
    use_storage(how)
    return packed(function(unpacked(item), context))


@lru_cache(maxsize=2)  # two maps may run at the same time
def _shared(path: str) -> tuple[Callable[[Any, Any], Any], Any, Storage]:
    made: tuple[Callable[[Any, Any], Any], Any, Storage] = unpacked(Path(path).read_bytes())
    return made
