"""Records that two sources have are written once, such as requests that both a capture and a client's log show.

A client logs each commit, but a pull only if the broker answered it with another offset (DefaultMQPushConsumerImpl,
persistAll and OFFSET_ILLEGAL).
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping
from typing import Final

from mqreplay.importer.files.sources import Writer
from mqreplay.importer.import_report import ImportReport
from mqreplay.words.keys import GROUP_QUEUE

MOST_REQUESTS: Final = 4_000_000  # 16 bytes each; a request beyond these may count twice
NEAR_MS: Final = 5_000  # a client logs a request at once, but its clock may differ from that of the capture
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


class MergingWriter:
    """A writer that adds records to those of a copied recording and of captures, but no events that they have."""

    def __init__(
        self, writer: Writer, report: ImportReport, welcome: frozenset[str], captured: CapturedRequests | None = None
    ) -> None:
        """Take ``welcome``: kinds whose records name their source, or whose records are each a new observation."""
        self._writer, self._report, self._captured = writer, report, captured
        self._there = {name.partition(".")[0] for name in report.taken_over} - welcome
        self.count = 0

    def append(self, stem: str, record: Mapping[str, object]) -> None:
        """Write a record, unless the recording already has its kind, or a capture has it."""
        if stem in self._there:
            self._report.left_out[f"records of {stem}: the copied recording has its own"] += 1
        elif self._captured is not None and self._captured.take(stem, record):
            self._report.left_out[f"records of {stem} in logs of clients: the capture has them, too"] += 1
        else:
            self._writer.append(stem, record)
            self.count += 1


def _is_logged(stem: str, record: Mapping[str, object]) -> bool:
    if stem not in _LOGGED:
        return False
    name, value = _LOGGED[stem][1]
    return record.get(name) == value


def _request(stem: str, record: Mapping[str, object]) -> tuple[int, int, int]:
    """Return the hash of the queue, the time in epoch ms, and the hash of the facts."""
    time, _, facts = _LOGGED[stem]
    queue = hash((stem, *(record.get(name) for name in GROUP_QUEUE)))
    return queue, int(str(record[time])), hash(tuple(record.get(name) for name in facts))
