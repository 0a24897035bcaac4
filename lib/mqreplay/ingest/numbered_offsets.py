"""Offsets of a source's queues as arrays, indexed by the number of each queue (entries.Keys).

A broker may have 100,000 queues and be polled 17,280 times a day: a dict of all of them for each poll would take hours.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from mqreplay.decode.consumer_offset import split_key
from mqreplay.decode.offset_table import Entries
from mqreplay.ingest.entries import Keys, OffsetKey

Numbers = NDArray[np.int32]
Offsets = NDArray[np.int64]
NAMES_NOTHING = -1  # instead of a number: the key is not topic@group


class Numbering:
    """The numbers of queues by the text of their key topic@group."""

    def __init__(self, keys: Keys) -> None:
        """Take ``keys``, which numbers new queues."""
        self.keys = keys
        self._of: dict[str, dict[int, int]] = {}

    def of(self, entries: Entries) -> Numbers:
        """Return the number of each queue, in order.

        >>> Numbering(Keys()).of(Entries(["t@g", "t@g@h"], [2, 1], [0, 1, 0], [5, 6, 7]))
        array([ 0,  1, -1], dtype=int32)
        """
        found: list[int] = []
        at = 0
        for key, count in zip(entries.keys, entries.counts, strict=True):
            queue_ids = entries.queue_ids[at : at + count]
            at += count
            numbers = list(map(self._of.setdefault(key, {}).get, queue_ids))
            found += self._new(key, queue_ids) if None in numbers else numbers  # type: ignore[arg-type]
        return np.array(found, np.int32)

    def of_removed(self, removed: Mapping[str, list[int]]) -> Numbers:
        """Return the numbers of queues by key. Unknown queues have none."""
        found = (self._of.get(key, {}).get(queue_id) for key, ids in removed.items() for queue_id in ids)
        return np.array([number for number in found if number is not None and number >= 0], np.int32)

    def _new(self, key: str, queue_ids: list[int]) -> list[int]:
        topic, group = split_key(key)
        if topic is None or group is None:
            numbers = [NAMES_NOTHING] * len(queue_ids)
        else:
            numbers = self.keys.of([(topic, group, None, queue_id) for queue_id in queue_ids]).tolist()
        self._of[key].update(zip(queue_ids, numbers, strict=True))
        return numbers


class NumberedOffsets:
    """A table of offsets. A missing offset is 0 in ``values`` and false in ``there``."""

    def __init__(self) -> None:
        """Begin with an empty table."""
        self.values: Offsets = np.zeros(0, np.int64)
        self.there: NDArray[np.bool_] = np.zeros(0, np.bool_)

    def __len__(self) -> int:
        """Return the number of offsets."""
        return int(np.count_nonzero(self.there))

    def clear(self) -> None:
        """Remove all offsets."""
        self.values[:] = 0
        self.there[:] = False

    def put(self, numbers: Numbers, offsets: Offsets) -> None:
        """Set the offsets of queues."""
        if len(numbers):
            self._grow(int(numbers.max()) + 1)
            self.values[numbers], self.there[numbers] = offsets, True

    def remove(self, numbers: Numbers) -> None:
        """Remove the offsets of queues, if any."""
        known = numbers[numbers < len(self.values)]
        self.values[known], self.there[known] = 0, False

    def differing(self, other: NumberedOffsets) -> Numbers:
        """Return the numbers of the queues whose offsets differ.

        >>> one, other = NumberedOffsets(), NumberedOffsets()
        >>> one.put(np.array([0, 2], np.int32), np.array([5, 0]))
        >>> other.put(np.array([0], np.int32), np.array([6]))
        >>> one.differing(other)
        array([0, 2], dtype=int32)
        """
        size = max(len(self.values), len(other.values))
        self._grow(size)
        other._grow(size)
        differ = (self.values[:size] != other.values[:size]) | (self.there[:size] != other.there[:size])
        return np.flatnonzero(differ).astype(np.int32)

    def take(self, other: NumberedOffsets, numbers: Numbers) -> None:
        """Copy the offsets of some queues from another table of the same size."""
        self.values[numbers], self.there[numbers] = other.values[numbers], other.there[numbers]

    def by_key(self, keys: Keys) -> Iterator[tuple[OffsetKey, int]]:
        """Yield each queue with an offset, and the offset."""
        numbers = np.flatnonzero(self.there)
        for number, offset in zip(numbers.tolist(), self.values[numbers].tolist(), strict=True):
            yield keys.keys[number], offset

    def _grow(self, size: int) -> None:
        if size > len(self.values):
            room = max(size, len(self.values) * 5 // 4) - len(self.values)
            self.values = np.append(self.values, np.zeros(room, np.int64))
            self.there = np.append(self.there, np.zeros(room, np.bool_))


def numbered(entries: Mapping[OffsetKey, int], keys: Keys) -> NumberedOffsets:
    """Return the offsets of a dict."""
    made = NumberedOffsets()
    made.put(keys.of(entries), np.array(list(entries.values()), np.int64))
    return made
