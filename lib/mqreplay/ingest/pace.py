"""How far reading has come: bytes of the recording read, how fast, and how long it will go on."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any

from pyspark.accumulators import Accumulator

from mqreplay.ingest.told import Told

EVERY_S = 15.0


class Reading:
    """So many bytes, read by one action after the other."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._watched: list[tuple[Accumulator[Told], Mapping[Any, int]]] = []

    def watch(self, told: Accumulator[Told], sizes: Mapping[Any, int]) -> None:
        """What the tasks of the next action tell under a key of ``sizes`` is so many bytes done."""
        self._watched.append((told, sizes))

    def done(self) -> int:
        """Bytes read until now."""
        return sum(sizes.get(key, 0) for told, sizes in list(self._watched) for key in list(told.value))


class Pace:
    """Says so from time to time, as long as it is open; a short reading says nothing."""

    def __init__(self, progress: Callable[[str], None], total: int, every_s: float = EVERY_S) -> None:
        """``total`` is in bytes as they lie in the recording."""
        self._progress, self._total, self._every_s = progress, total, every_s
        self._readings: list[Reading] = []
        self._over = threading.Event()
        self._said = -1

    def reading(self, size: int) -> Reading:
        """Something that is read beside the others, of so many bytes."""
        self._readings.append(Reading(size))
        return self._readings[-1]

    def line(self, seconds: float) -> str | None:
        """What there is to say after so many seconds; None if nothing new."""
        read = [reading.done() for reading in self._readings]
        done = sum(read)
        if done == self._said:
            return None
        self._said = done
        text = f"read {done / 1e6:,.0f} of {self._total / 1e6:,.0f} MB"
        if not done:
            return text
        left = self._left(seconds, read)
        guess = "" if left is None else f", about {left:,.0f} s left"
        return f"{text}, {done / seconds / 1e6:,.1f} MB/s{guess}"

    def _left(self, seconds: float, read: list[int]) -> float | None:
        """A guess, by what takes longest: bytes of snapshots are read ten times as fast as bytes of gzipped lines.

        None where nothing of something was read yet.
        """
        sizes = [reading.size for reading in self._readings]
        if any(size and not done for size, done in zip(sizes, read, strict=True)):
            return None
        return max((size - done) * seconds / done for size, done in zip(sizes, read, strict=True) if done)

    def __enter__(self) -> Pace:
        """Begins to watch."""
        self._began = time.monotonic()
        self._thread = threading.Thread(target=self._tell, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Says no more."""
        self._over.set()
        self._thread.join()

    def _tell(self) -> None:
        while not self._over.wait(self._every_s):
            if (text := self.line(time.monotonic() - self._began)) is not None:
                self._progress(text)
