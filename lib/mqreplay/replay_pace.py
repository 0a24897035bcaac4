"""How far the replay of a day has come, and how long it will go on: a large one goes on for an hour."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from mqreplay.lake.ticker import EVERY_S, Ticker, time_left

QUEUES, MEMBERS = "queues looked at", "members found"
# What part of a replay's time is over when each of these is reached: measured (docs/performance.md), and a guess where
# a night is another.
SHARES = {
    QUEUES: 0.17,
    MEMBERS: 0.23,
    "gold.allocation": 0.27,
    "gold.queue_progress": 0.32,
    "gold.slave_suggestion": 0.51,
    "gold.pull_route": 0.66,
    "gold.group_status": 0.67,
    "gold.failover_exposure": 0.73,
    "gold.replay_gap": 0.76,
    "gold.judgement": 0.78,
    "gold.offset_continuity": 0.83,
    "gold.delivery_audit": 0.85,
    "gold.finding": 1.0,
}


class ReplayPace(Ticker):
    """Says it from time to time, as long as it is open; a short replay says nothing."""

    def __init__(
        self,
        say: Callable[[str], None],
        what: str,
        running: Callable[[], str],
        every_s: float = EVERY_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``what`` is what goes on, ``running`` tells what runs just now; both in words."""
        super().__init__(say, self.line, every_s, clock)
        self._what, self._running = what, running
        self._ahead = dict(SHARES)
        self._share, self._after = 0.0, 0.0  # so much was over after so many seconds
        self._lock = threading.Lock()  # tables are written by several threads

    def reached(self, what: str) -> None:
        """One of SHARES is reached; of others nothing follows."""
        with self._lock:
            self._ahead.pop(what, None)
            # What is written out of turn says nothing of what was passed over.
            next_share = min(self._ahead.values(), default=2.0)
            share = max((share for share in SHARES.values() if share < next_share), default=0.0)
            if share > self._share:
                self._share, self._after = share, self.seconds()

    def line(self, seconds: float) -> str:
        """What there is to say after so many seconds."""
        with self._lock:
            # What lies ahead is not over, however long it takes; nor is the last of it.
            share = min(self._share * seconds / self._after, *self._ahead.values(), 0.99) if self._share else 0.0
        if not share:
            return f"{self._what}: {self._running()}"
        return f"{self._what}: {share:.0%}, {time_left(seconds, share)}; {self._running()}"
