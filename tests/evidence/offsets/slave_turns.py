"""A slave that copies its master's tables by the laws of core: what it has after each turn of its schedule."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from mqreplay.core.slave_synchronize import asks_master, is_due, schedule

SLAVE, MASTER = "10.0.0.2:10911", "10.0.0.1:10911"
LATE_MS = 900  # a turn waits for the answer of the master


def turns(
    version: str, seconds: int, pick: random.Random, *, master_addr: Callable[[int], str | None] = lambda _: MASTER
) -> Iterator[int]:
    """Yield the times, in ms, at which a slave copies. ``master_addr``: the master that it knows at a time."""
    used, last = schedule(version), -(10**9)
    for turn in range(used.initial_delay, seconds * 1000, used.period):
        now = turn + pick.randrange(LATE_MS)
        if is_due(now, last, version) and asks_master(master_addr(now), SLAVE):
            last = now
            yield now


def at_time(history: Mapping[int, Any], now: int) -> Any:
    """Return the last value of a history (ms: value) at or before a time."""
    return history[max(ms for ms in history if ms <= now)]
