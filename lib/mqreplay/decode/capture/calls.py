"""Requests with their answers, of all connections of a capture. Source: NettyRemotingAbstract (responseTable).

The state is bounded: connections, bytes of segments and of unfinished commands, open requests. Dropped data is counted.

A packet may come again: sent again, or captured on a second interface or host. It adds no call, also not after the end
of its connection.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Final, NamedTuple

from mqreplay.decode.capture.commands import Command, CommandReader
from mqreplay.decode.capture.packets import Segment
from mqreplay.decode.capture.streams import Piece, Stream

MOST_CONNECTIONS: Final = 20_000  # open connections; a broker has some thousands
MOST_WAITING_BYTES: Final = 64 * 1024 * 1024  # bytes of waiting segments and unfinished commands
MOST_REQUEST_BYTES: Final = 64 * 1024 * 1024  # bytes of open requests
# Twice the longest life of a segment (RFC 9293, 3.4.2): until then, ports are not used again.
LATE_US: Final = 240 * 10**6
# Bytes of memory of a request without its texts and body, and of each field.
_REQUEST_BYTES, _FIELD_BYTES = 900, 150
# Why a capture has no answer to a request.
ASKER_CLOSED: Final = "the client ended the connection first, or was killed"
ASKED_CLOSED: Final = "the broker ended the connection first, or was killed"
STILL_OPEN: Final = "no packet ends the connection"


class Call(NamedTuple):
    """A request and its answer; None for a one-way request, or if the capture lacks it.

    ``connection`` numbers connections in order of appearance; ``asker`` and ``asked`` are ``host:port``. ``unanswered``
    says why a request that wants an answer has none. ``messages`` are the facts of its messages, once they are read
    (`mqreplay.decode.capture.messages.without_messages`).
    """

    connection: int
    asker: str
    asked: str
    request: Command
    response: Command | None
    unanswered: str | None = None
    messages: Any = None


class Side:
    """The data that one end of a connection sends. ``first_seq`` is that of its SYN; None if the capture lacks it.

    ``held`` are the bytes of waiting segments and of the unfinished command, as the connection counted them last.
    """

    __slots__ = ("first_seq", "held", "reader", "spoke", "stream")

    def __init__(self) -> None:
        """Start without data."""
        self.stream, self.reader, self.spoke = Stream(), CommandReader(), False
        self.first_seq: int | None = None
        self.held = 0


class Connection:
    """A connection with its open requests.

    ``held`` are the bytes of waiting segments and unfinished commands, ``waiting_bytes`` the memory of the requests.
    """

    __slots__ = ("_waiting", "counted", "ended", "ends", "held", "number", "sides", "waiting_bytes")

    def __init__(self, number: int, ends: tuple[str, str]) -> None:
        """Take ``number``, which distinguishes connections, also with the same ports."""
        self.number, self.ends = number, ends
        self.sides: dict[str, Side] = {}
        self.ended: dict[str, None] = {}  # the ends that closed it, in order
        self.held = self.waiting_bytes = 0
        self.counted = 0, 0  # held and waiting_bytes, as Calls counted them last
        self._waiting: dict[tuple[str, int], tuple[str, Command, int]] = {}  # by asker and opaque, with its size

    @property
    def spoke(self) -> bool:
        """Return whether any end has sent data."""
        return any(side.spoke for side in self.sides.values())

    @property
    def cut(self) -> int:
        """Return the number of commands of both ends with an incomplete header."""
        return sum(side.reader.cut for side in self.sides.values())

    def begins_again(self, segment: Segment) -> bool:
        """Return whether a SYN is the one that began this connection, seen again."""
        side = self.sides.get(segment.source)
        return segment.begins and side is not None and side.first_seq == segment.seq

    def has(self, segment: Segment) -> bool:
        """Return whether all of a segment was taken before."""
        side = self.sides.get(segment.source)
        if segment.begins or side is None:
            return self.begins_again(segment)
        return side.stream.has(segment)

    def take(self, segment: Segment) -> list[Call]:
        """Return the calls that end with this segment."""
        source = segment.source
        side = self.sides.get(source)
        if side is None:
            side = self.sides[source] = Side()
        if segment.begins:
            side.first_seq = segment.seq
            if not side.spoke:
                side.reader.begin()
        side.spoke = side.spoke or segment.length > 0
        calls = self._calls(side, side.stream.take(segment), source, segment.target)
        if segment.ends:
            self.ended[source] = None
        return calls

    def rest(self) -> list[Call]:
        """Return the calls that were never answered."""
        return [*self._late(), *self.give_up_requests(len(self._waiting))]

    def forget(self) -> None:
        """Drop the unfinished commands; `has` still knows which segments were taken."""
        for side in self.sides.values():
            side.reader = CommandReader()

    def give_up_bytes(self) -> list[Call]:
        """Drop waiting segments and unfinished commands."""
        calls = self._late()
        for side in self.sides.values():
            side.reader.give_up()
            side.held = 0
        self.held = 0
        return calls

    def give_up_requests(self, count: int) -> list[Call]:
        """Return the oldest requests as calls without an answer."""
        calls = []
        for key in list(islice(self._waiting, count)):
            asked, request = self._forget(key)
            calls.append(Call(self.number, key[0], asked, request, None, self._why_unanswered(asked)))
        return calls

    def _why_unanswered(self, asked: str) -> str:
        first = next(iter(self.ended), None)
        if first is None:
            return STILL_OPEN
        return ASKED_CLOSED if first == asked else ASKER_CLOSED

    @property
    def requests(self) -> int:
        """Return the number of open requests."""
        return len(self._waiting)

    def _late(self) -> list[Call]:
        calls = []
        for source, side in self.sides.items():
            target = self.ends[source == self.ends[0]]
            calls += self._calls(side, side.stream.rest(), source, target)
        return calls

    def _calls(self, side: Side, pieces: Iterable[Piece], source: str, target: str) -> list[Call]:
        calls = []
        for piece in pieces:
            for command in side.reader.take(piece):
                if command.is_response:
                    if (target, command.opaque) in self._waiting:  # else the request was before the capture
                        calls.append(
                            Call(self.number, target, source, self._forget((target, command.opaque))[1], command)
                        )
                elif command.is_oneway:
                    calls.append(Call(self.number, source, target, command, None))
                else:
                    key = source, command.opaque
                    if key in self._waiting:
                        self._forget(key)
                    size = _size(command)
                    self._waiting[key] = target, command, size
                    self.waiting_bytes += size
        held = side.stream.held + side.reader.held
        self.held += held - side.held
        side.held = held
        return calls

    def _forget(self, key: tuple[str, int]) -> tuple[str, Command]:
        asked, request, size = self._waiting.pop(key)
        self.waiting_bytes -= size
        return asked, request


class Calls:
    """The calls of a capture, each yielded with its answer; the counts are complete afterwards.

    ``cut`` counts commands with too many missing bytes: tcpdump cut or lost packets. ``dropped`` counts
    commands and ``unanswered`` requests that were left out: too many were open at the same time.
    """

    def __init__(self, segments: Iterable[Segment]) -> None:
        """Take ``segments`` in the order of the capture."""
        self._segments = segments
        self._going: OrderedDict[tuple[str, str], Connection] = OrderedDict()  # the last active one is the last
        self._ended: OrderedDict[tuple[str, str], tuple[int, Connection]] = OrderedDict()  # with the time of the end
        self._now_us = 0
        self._held = self._waiting = 0
        self.connections = self.cut = self.dropped = self.unanswered = 0

    def __iter__(self) -> Iterator[Call]:
        """Yield the calls; only once."""
        for segment in self._segments:
            source, target = segment.source, segment.target
            ends = (source, target) if source <= target else (target, source)
            if segment.ts_us > self._now_us:
                self._now_us = segment.ts_us
            connection = self._going.get(ends)
            if segment.begins and connection is not None and connection.spoke:
                if connection.begins_again(segment):
                    continue
                yield from self._end(connection)
                connection = None
            if connection is None:
                if not (segment.length or segment.begins) or self._is_late(ends, segment):
                    continue
                if len(self._going) >= MOST_CONNECTIONS:
                    idle = next(iter(self._going.values()))
                    self.unanswered += idle.requests
                    yield from self._end(idle)
                self.connections += 1
                connection = self._going[ends] = Connection(self.connections, ends)
            else:
                self._going.move_to_end(ends)
            yield from self._counted(connection, connection.take(segment))
            if len(connection.ended) == 2:
                yield from self._end(connection)
            if self._held > MOST_WAITING_BYTES:
                yield from self._give_up_bytes()
            if self._waiting > MOST_REQUEST_BYTES:
                yield from self._give_up_requests()
        for connection in sorted(self._going.values(), key=lambda one: one.number):
            yield from self._end(connection)

    def _counted(self, connection: Connection, calls: list[Call]) -> list[Call]:
        """Count by how much the memory of a connection has changed with these calls."""
        held, waiting = connection.counted
        connection.counted = connection.held, connection.waiting_bytes
        self._held += connection.counted[0] - held
        self._waiting += connection.counted[1] - waiting
        return calls

    def _is_late(self, ends: tuple[str, str], segment: Segment) -> bool:
        """Return whether a connection that has ended had the segment."""
        ended_us, connection = self._ended.get(ends, (0, None))
        return connection is not None and self._now_us - ended_us <= LATE_US and connection.has(segment)

    def _end(self, connection: Connection) -> Iterator[Call]:
        del self._going[connection.ends]
        yield from self._counted(connection, connection.rest())
        self._held -= connection.held
        self.cut += connection.cut
        connection.forget()
        self._ended[connection.ends] = self._now_us, connection
        self._ended.move_to_end(connection.ends)
        if len(self._ended) > MOST_CONNECTIONS:
            self._ended.popitem(last=False)

    def _give_up_bytes(self) -> Iterator[Call]:
        """Drop half of the waiting bytes, from the connections that hold the most."""
        for connection in sorted(self._going.values(), key=lambda one: -one.held):
            if self._held <= MOST_WAITING_BYTES // 2:
                return
            before = connection.cut
            yield from self._counted(connection, connection.give_up_bytes())
            self.dropped += connection.cut - before

    def _give_up_requests(self) -> Iterator[Call]:
        """Drop half of the open requests, from the connections that have the most, the oldest first."""
        for connection in sorted(self._going.values(), key=lambda one: -one.waiting_bytes):
            if self._waiting <= MOST_REQUEST_BYTES // 2:
                return
            count = (connection.requests + 1) // 2
            yield from self._counted(connection, connection.give_up_requests(count))
            self.unanswered += count


def _size(request: Command) -> int:
    texts = len("".join(request.ext)) + len("".join(request.ext.values()))
    return _REQUEST_BYTES + len(request.body) + len(request.ext) * _FIELD_BYTES + texts + len(request.remark or "")
