"""The pace of requests to one server: each request takes a token, and the rate of tokens is bounded."""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import Callable
from typing import Final

BURST_S: Final = 0.2  # share of a second's tokens that may be taken at the same time


class Pace:
    """A bucket of tokens, with ``clock`` in seconds. Urgent requests are first, others in order.

    >>> pace = Pace(50, lambda: 0.0)
    >>> sum(pace.try_take() for _ in range(100))
    10
    """

    def __init__(self, requests_per_second: float, clock: Callable[[], float]) -> None:
        self._rate, self._clock = requests_per_second, clock
        self._burst = max(1.0, requests_per_second * BURST_S)
        self._tokens, self._filled = self._burst, clock()
        self._waiting: list[tuple[bool, int]] = []  # not urgent, number
        self._numbers = itertools.count()

    def try_take(self) -> bool:
        """Take a token if there is one."""
        now = self._clock()
        self._tokens = min(self._burst, self._tokens + (now - self._filled) * self._rate)
        self._filled = now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True

    async def take(self, urgent: bool = False) -> None:
        """Take a token, and wait for it if there is none."""
        place = not urgent, next(self._numbers)
        heapq.heappush(self._waiting, place)
        try:
            while self._waiting[0] != place or not self.try_take():
                await asyncio.sleep(max(0.001, (1 - self._tokens) / self._rate))
        finally:
            self._waiting.remove(place)
            heapq.heapify(self._waiting)
