"""What one side of a connection said, in its order: segments that came late, twice or never are put right.

Source: RFC 9293, 3.4 (sequence numbers are modulo 2**32).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mqreplay.decode.capture.packets import Segment

# One that is missed is waited for until so much of what follows is there: by then tcpdump has lost it.
WAITED_SEGMENTS = 256


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes in their order, and behind them ``missing`` bytes that the capture does not have."""

    ts_us: int
    data: bytes
    missing: int = 0


class Stream:
    """One direction of a connection."""

    def __init__(self) -> None:
        """Of a connection that goes on when the capture begins, the first segment seen is the first."""
        self._next: int | None = None
        self._ahead: dict[int, Segment] = {}

    def take(self, segment: Segment) -> Iterator[Piece]:
        """What can be said now that this one is there."""
        if segment.begins:
            self._next, self._ahead = (segment.seq + 1) % 2**32, {}
        if not segment.length:
            return
        if self._next is None:
            self._next = segment.seq
        # Of two that begin alike the longer says more.
        known = self._ahead.get(segment.seq)
        if known is None or len(segment.data) > len(known.data):
            self._ahead[segment.seq] = segment
        yield from self._in_order(patience=WAITED_SEGMENTS)

    def rest(self) -> Iterator[Piece]:
        """What was waited for will not come."""
        yield from self._in_order(patience=0)

    def _in_order(self, patience: int) -> Iterator[Piece]:
        while self._ahead and self._next is not None:
            seq = self._next if self._next in self._ahead else min(self._ahead, key=self._distance)
            distance = self._distance(seq)
            if distance > 0:
                if len(self._ahead) <= patience:
                    return
                yield Piece(self._ahead[seq].ts_us, b"", distance)
                distance = 0
            segment = self._ahead.pop(seq)
            if segment.length + distance > 0:  # else all of it was said before
                data = segment.data[-distance:]
                yield Piece(segment.ts_us, data, segment.length + distance - len(data))
                self._next = (seq + segment.length) % 2**32

    def _distance(self, seq: int) -> int:
        """How many bytes ``seq`` lies ahead of the next one; behind it below 0."""
        return (seq - (self._next or 0) + 2**31) % 2**32 - 2**31
