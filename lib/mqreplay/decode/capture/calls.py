"""Requests with their answers, of all connections of a capture. Source: NettyRemotingAbstract (responseTable)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from mqreplay.decode.capture.commands import Command, CommandReader
from mqreplay.decode.capture.packets import Segment
from mqreplay.decode.capture.streams import Piece, Stream


@dataclass(frozen=True, slots=True)
class Call:
    """A request and its answer: None where it wants none, or none is in the capture.

    ``connection`` numbers connections as they come; ``asker`` and ``asked`` are ``host:port``.
    """

    connection: int
    asker: str
    asked: str
    request: Command
    response: Command | None


class Side:
    """What one end of a connection says."""

    def __init__(self) -> None:
        """Nothing was said yet."""
        self.stream, self.reader, self.spoke = Stream(), CommandReader(), False


class Connection:
    """Two ends, and what one asked and the other has not answered."""

    def __init__(self, number: int) -> None:
        """``number`` tells it from others, of the same ports too."""
        self.number = number
        self.sides: dict[str, Side] = {}
        self.ended: set[str] = set()
        self._waiting: dict[tuple[str, int], tuple[str, Command]] = {}  # by asker and opaque

    def take(self, segment: Segment) -> Iterator[Call]:
        """The calls that end with this segment."""
        side = self.sides.setdefault(segment.source, Side())
        if segment.begins and not side.spoke:
            side.reader.begin()
        side.spoke = side.spoke or segment.length > 0
        yield from self._calls(side, side.stream.take(segment), segment.source, segment.target)
        if segment.ends:
            self.ended.add(segment.source)

    def rest(self) -> Iterator[Call]:
        """Those that are not answered any more."""
        for source, side in list(self.sides.items()):
            target = next((other for other in self.sides if other != source), "")
            yield from self._calls(side, side.stream.rest(), source, target)
        for (asker, _), (asked, request) in self._waiting.items():
            yield Call(self.number, asker, asked, request, None)

    def _calls(self, side: Side, pieces: Iterable[Piece], source: str, target: str) -> Iterator[Call]:
        for piece in pieces:
            for command in side.reader.take(piece):
                if command.is_response:
                    asked = self._waiting.pop((target, command.opaque), None)
                    if asked is not None:  # else asked before the capture began
                        yield Call(self.number, target, source, asked[1], command)
                elif command.is_oneway:
                    yield Call(self.number, source, target, command, None)
                else:
                    self._waiting[source, command.opaque] = target, command


class Calls:
    """Iterates over the calls of a capture, each given when its answer is there; ``cut`` is whole afterwards.

    ``cut`` counts commands that the capture lacks too much of: packets that tcpdump cut or lost.
    """

    def __init__(self, segments: Iterable[Segment]) -> None:
        """``segments`` in the order of the capture."""
        self._segments = segments
        self.connections, self.cut = 0, 0

    def __iter__(self) -> Iterator[Call]:
        """Once."""
        going: dict[tuple[str, ...], Connection] = {}
        for segment in self._segments:
            ends = tuple(sorted((segment.source, segment.target)))
            connection = going.get(ends)
            if segment.begins and connection is not None and any(s.spoke for s in connection.sides.values()):
                yield from self._end(going.pop(ends))
                connection = None
            if connection is None:
                if not (segment.length or segment.begins):
                    continue
                self.connections += 1
                connection = going[ends] = Connection(self.connections)
            yield from connection.take(segment)
            if len(connection.ended) == 2:
                yield from self._end(going.pop(ends))
        for connection in going.values():
            yield from self._end(connection)

    def _end(self, connection: Connection) -> Iterator[Call]:
        yield from connection.rest()
        self.cut += sum(side.reader.cut for side in connection.sides.values())
