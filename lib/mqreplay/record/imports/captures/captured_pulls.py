"""Pulls that both a capture and a client's log show: each is one pull.

A client logs a pull only if the broker answered it with another offset (DefaultMQPushConsumerImpl, OFFSET_ILLEGAL).
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Hashable, Mapping
from typing import Final

STEM: Final = "pull_log"
MOST_PULLS: Final = 100_000  # such answers are rare; a pull beyond these may count twice
NEAR_MS: Final = 5_000  # a client logs the answer at once, but its clock may differ from that of the capture
# Without the client: the log names the group, from which `ClientHistory` infers it.
_KEY: Final = (
    *("consumer_group", "topic", "broker_name", "queue_id", "queue_offset"),
    *("response_name", "next_begin_offset", "min_offset", "max_offset"),
)


class CapturedPulls:
    """The pulls of captures that brokers answered with another offset."""

    def __init__(self) -> None:
        """Start without a capture."""
        self._answered: defaultdict[Hashable, list[int]] = defaultdict(list)  # epoch ms, sorted
        self._count = 0

    def add(self, stem: str, record: Mapping[str, object]) -> None:
        """Add a record of a capture, if it is such a pull."""
        is_moved = stem == STEM and record.get("response_name") == "PULL_OFFSET_MOVED"
        if is_moved and self._count < MOST_PULLS:
            self._count += 1
            insort(self._answered[_key(record)], _answered_ms(record))

    def take(self, stem: str, record: Mapping[str, object]) -> bool:
        """Return whether a record of a client's log is one of these pulls, which no other line of a log then is."""
        times = self._answered.get(_key(record), []) if stem == STEM else []
        at = _answered_ms(record) if times else 0
        place = bisect_left(times, at - NEAR_MS)
        if place == len(times) or times[place] > at + NEAR_MS:
            return False
        del times[place]
        return True


def _key(record: Mapping[str, object]) -> Hashable:
    return tuple(record.get(name) for name in _KEY)


def _answered_ms(record: Mapping[str, object]) -> int:
    return int(str(record["response_ts"]))
