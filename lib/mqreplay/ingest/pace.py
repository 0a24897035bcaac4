"""How far reading has come: bytes of the recording read, how fast, and how long it will go on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pyspark.accumulators import Accumulator

from mqreplay.ingest.told import Told
from mqreplay.lake.ticker import EVERY_S, Ticker, pace


class Reading:
    """So many bytes, read by one action after the other. ``cost``: what one takes, where a byte of others takes 1."""

    def __init__(self, size: int, cost: float) -> None:
        self.size, self.cost = size, cost
        self._watched: list[tuple[Accumulator[Told], Mapping[Any, int]]] = []

    def watch(self, told: Accumulator[Told], sizes: Mapping[Any, int]) -> None:
        """What the tasks of the next action tell under a key of ``sizes`` is so many bytes done."""
        self._watched.append((told, sizes))

    def done(self) -> int:
        """Bytes read until now."""
        return sum(sizes.get(key, 0) for told, sizes in list(self._watched) for key in list(told.value))


class Pace(Ticker):
    """Says so from time to time, as long as it is open; a short reading says nothing."""

    def __init__(self, progress: Callable[[str], None], total: int, every_s: float = EVERY_S) -> None:
        """``total`` is in bytes as they lie in the recording."""
        super().__init__(progress, self.line, every_s)
        self._total = total
        self._readings: list[Reading] = []
        self._said = -1

    def reading(self, size: int, cost: float = 1.0) -> Reading:
        """Something that is read beside the others, of so many bytes."""
        self._readings.append(Reading(size, cost))
        return self._readings[-1]

    def line(self, seconds: float) -> str | None:
        """What there is to say after so many seconds; None if nothing new."""
        read = [(reading, reading.done()) for reading in self._readings]
        done = sum(bytes_read for _, bytes_read in read)
        if done == self._said:
            return None
        self._said = done
        # What is read beside each other shares the cores: how much work is done tells how long the rest will take.
        work = sum(reading.cost * reading.size for reading in self._readings)
        share = sum(reading.cost * bytes_read for reading, bytes_read in read) / work if work else 0
        return f"read {pace(done, self._total, seconds, share)}"
