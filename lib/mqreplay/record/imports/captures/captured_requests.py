"""Requests that both a capture and a client's log show: each is one.

A client logs each commit, but a pull only if the broker answered it with another offset (DefaultMQPushConsumerImpl,
persistAll and OFFSET_ILLEGAL).
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping
from typing import Final

MOST_REQUESTS: Final = 4_000_000  # 16 bytes each; a request beyond these may count twice
NEAR_MS: Final = 5_000  # a client logs a request at once, but its clock may differ from that of the capture
_QUEUE: Final = ("consumer_group", "topic", "broker_name", "queue_id")
# By stem the time, the field that says whether a client logs it, and what only this request of the queue has. The log
# does not name the client of a pull.
_LOGGED: Final = {
    "pull_log": (
        "response_ts",
        ("response_name", "PULL_OFFSET_MOVED"),
        ("queue_offset", "next_begin_offset", "min_offset", "max_offset"),
    ),
    "offset_commits": ("ts", ("kind", "UPDATE"), ("client_id", "commit_offset")),
}
_TAKEN: Final = -1  # no hash of a tuple


class CapturedRequests:
    """The requests of captures that clients log, too."""

    def __init__(self) -> None:
        """Start without a capture."""
        self._times: defaultdict[int, array[int]] = defaultdict(lambda: array("q"))  # of a queue, epoch ms, sorted
        self._facts: defaultdict[int, array[int]] = defaultdict(lambda: array("q"))  # hashes, in the same order
        self._count = 0

    def add(self, stem: str, record: Mapping[str, object]) -> None:
        """Add a record of a capture, if a client logs it."""
        if self._count < MOST_REQUESTS and _is_logged(stem, record):
            queue, at, fact = _request(stem, record)
            times = self._times[queue]
            place = len(times) if not times or times[-1] <= at else bisect_left(times, at)
            times.insert(place, at)
            self._facts[queue].insert(place, fact)
            self._count += 1

    def take(self, stem: str, record: Mapping[str, object]) -> bool:
        """Return whether a record of a client's log is one of these requests, which no other line of a log then is."""
        if not self._count or not _is_logged(stem, record):
            return False
        queue, at, fact = _request(stem, record)
        if queue not in self._times:
            return False
        times, facts = self._times[queue], self._facts[queue]
        place = bisect_left(times, at - NEAR_MS)
        while place < len(times) and times[place] <= at + NEAR_MS:
            if facts[place] == fact:
                facts[place] = _TAKEN
                return True
            place += 1
        return False


def _is_logged(stem: str, record: Mapping[str, object]) -> bool:
    if stem not in _LOGGED:
        return False
    name, value = _LOGGED[stem][1]
    return record.get(name) == value


def _request(stem: str, record: Mapping[str, object]) -> tuple[int, int, int]:
    """Return the hash of the queue, the time in epoch ms, and the hash of the facts."""
    time, _, facts = _LOGGED[stem]
    queue = hash((stem, *(record.get(name) for name in _QUEUE)))
    return queue, int(str(record[time])), hash(tuple(record.get(name) for name in facts))
