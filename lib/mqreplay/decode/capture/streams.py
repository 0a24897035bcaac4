"""The bytes of one direction of a connection in order, with late, repeated and missing segments.

Source: RFC 9293, 3.4 (sequence numbers are modulo 2**32).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import heappop, heappush
from typing import NamedTuple

from mqreplay.decode.capture.packets import Segment

# A missing segment is awaited until this many later bytes are there: then tcpdump has lost it.
WAITED_SEGMENTS = 256
SEGMENT_BYTES = 700  # of memory that a waiting segment takes beside its data


class Piece(NamedTuple):
    """Bytes in order, followed by ``missing`` bytes that the capture lacks."""

    ts_us: int
    data: bytes
    missing: int = 0


class Stream:
    """One direction of a connection. ``held`` is the memory in bytes of the segments that wait for an earlier one."""

    __slots__ = ("_ahead", "_next", "_order", "held")

    def __init__(self) -> None:
        """Start with the first segment seen, if the connection is older than the capture."""
        self.held = 0
        self._next: int | None = None  # position of the next byte: a sequence number, but not modulo 2**32
        self._ahead: dict[int, Segment] = {}  # by the position of the first byte
        self._order: list[int] = []  # the same positions as a heap

    def has(self, segment: Segment) -> bool:
        """Return whether all bytes of a segment were taken before."""
        if self._next is None:
            return not segment.length
        return (self._next - segment.seq - segment.length) % 2**32 < 2**31

    def take(self, segment: Segment) -> Sequence[Piece]:
        """Return the bytes that are complete with this segment."""
        if segment.begins:
            self._next, self._ahead, self._order, self.held = segment.seq + 1, {}, [], 0
        if not segment.length:
            return ()
        if self._next is None:
            self._next = segment.seq
        distance = (segment.seq - self._next + 2**31) % 2**32 - 2**31
        if not distance and not self._order:  # as for nearly all segments
            self._next += segment.length
            return (Piece(segment.ts_us, segment.data, segment.length - len(segment.data)),)
        self._wait(self._next + distance, segment)
        return list(self._in_order(patience=WAITED_SEGMENTS))

    def rest(self) -> Iterator[Piece]:
        """Yield the rest: missing segments will not arrive."""
        yield from self._in_order(patience=0)

    def _wait(self, place: int, segment: Segment) -> None:
        known = self._ahead.get(place)
        if known is None:
            heappush(self._order, place)
            self.held += SEGMENT_BYTES
        elif len(segment.data) <= len(known.data):  # keep the longer one of two with the same start
            return
        self._ahead[place] = segment
        self.held += len(segment.data) - (0 if known is None else len(known.data))

    def _in_order(self, patience: int) -> Iterator[Piece]:
        while self._order and self._next is not None:
            distance = self._order[0] - self._next
            if distance > 0:
                if len(self._order) <= patience:
                    return
                self._next += distance
                yield Piece(self._ahead[self._order[0]].ts_us, b"", distance)
                continue
            segment = self._ahead.pop(heappop(self._order))
            self.held -= SEGMENT_BYTES + len(segment.data)
            yield from self._say(segment, -distance)

    def _say(self, segment: Segment, known: int) -> Iterator[Piece]:
        """Return the segment without the first bytes that an earlier segment has."""
        if segment.length > known and self._next is not None:
            data = segment.data[known:]
            self._next += segment.length - known
            yield Piece(segment.ts_us, data, segment.length - known - len(data))
