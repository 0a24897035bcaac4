"""Read the files of a store before they are needed: a request takes tens of milliseconds, most of them waiting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Self

WAITING_BYTES = 64_000_000  # of files that are read ahead, if all have the mean size
MOST_WAITING = 32  # files


class Prefetch:
    """Files that are read in about the order of the list. Leave its ``with`` block to stop.

    ``read`` returns a file's bytes or raises; ``total_bytes`` is the size of all files.
    """

    def __init__(self, paths: Sequence[str], total_bytes: int, read: Callable[[str], bytes]) -> None:
        mean = max(1, total_bytes // max(1, len(paths)))
        self._window = max(1, min(MOST_WAITING, WAITING_BYTES // mean))
        self._paths, self._read = paths, read
        self._number = {path: number for number, path in enumerate(paths)}
        self._waiting: dict[int, Future[bytes]] = {}
        self._pool = ThreadPoolExecutor(self._window)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._pool.shutdown(cancel_futures=True)

    def read(self, path: str) -> bytes:
        """Return the bytes of a file, or raise what reading it raised; files before it are no longer kept."""
        number = self._number.get(path)
        if number is None:
            return self._read(path)
        for passed in [waiting for waiting in self._waiting if waiting < number]:
            self._waiting.pop(passed).cancel()
        for ahead in range(number, min(number + self._window, len(self._paths))):
            if ahead not in self._waiting:
                self._waiting[ahead] = self._pool.submit(self._read, self._paths[ahead])
        return self._waiting.pop(number).result()
