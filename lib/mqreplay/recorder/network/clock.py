"""The recorder's clock: starts with the wall clock, then follows a clock that nobody can set."""

from __future__ import annotations

import time
from typing import Final

STEP_MS: Final = 1000  # a difference of more than this is a step of the wall clock, not drift
SLEW_MS: Final = 2  # largest correction of one observation


class RecorderClock:
    """Epoch milliseconds that follow slow drift of the wall clock, but not its steps. Never goes back.

    The caller passes the times: ``wall_ms`` by the wall clock, ``steady_ms`` by a clock that only advances and also
    counts while the machine is suspended.

    >>> clock = RecorderClock(wall_ms=5_000_000, steady_ms=0)
    >>> clock.now_ms(100), clock.observe(wall_ms=5_000_201, steady_ms=200), clock.now_ms(200)
    (5000100, 0, 5000201)
    >>> clock.observe(wall_ms=8_600_300, steady_ms=300), clock.now_ms(300)
    (3599999, 5000301)
    """

    def __init__(self, wall_ms: int, steady_ms: int) -> None:
        self._offset = wall_ms - steady_ms
        self._steps = 0  # sum of the steps of the wall clock that are not followed
        self._last = wall_ms

    def now_ms(self, steady_ms: int) -> int:
        """Return the time."""
        self._last = max(self._last, self._offset + steady_ms)
        return self._last

    def observe(self, wall_ms: int, steady_ms: int) -> int:
        """Compare with the wall clock. Return by how many milliseconds it was stepped since the last call, else 0."""
        difference = wall_ms - self._steps - (self._offset + steady_ms)
        if abs(difference) > STEP_MS:
            self._steps += difference
            return difference
        self._offset += max(-SLEW_MS, min(SLEW_MS, difference))
        return 0


def steady_ms() -> int:
    """Return milliseconds of a clock that nobody can set and that also counts while the machine is suspended."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000


def wall_ms() -> int:
    """Return epoch milliseconds of the machine's clock."""
    return time.time_ns() // 1_000_000
