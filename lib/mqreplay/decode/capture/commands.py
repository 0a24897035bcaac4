"""RocketMQ's remoting commands in a stream: length, header length and serialize type, header, body.

Source: RemotingCommand#decode, NettyDecoder (frames of at most 16 MiB).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from mqreplay.decode.capture.headers import LEAST_HEADER, ROCKETMQ, read_header
from mqreplay.decode.capture.streams import Piece
from mqreplay.words.errors import DecodeError

FRAME_MAX_LENGTH: Final = 16 * 1024 * 1024
_BEFORE: Final = 8  # bytes before the header: the frame's length, and the header's with its type
_LENGTHS: Final = struct.Struct(">II")
_RESPONSE, _ONEWAY = 1, 2  # bits of the flag


@dataclass(frozen=True, slots=True)
class Command:
    """A command; the times of its first and last byte in epoch microseconds.

    ``body_bytes`` is the body's length as sent; ``body`` may have only its beginning.
    """

    begin_us: int
    end_us: int
    code: int
    opaque: int
    flag: int
    remark: str | None
    ext: Mapping[str, str]
    language: str | None
    body: bytes
    body_bytes: int

    @property
    def is_whole(self) -> bool:
        """Return whether the body is complete."""
        return len(self.body) == self.body_bytes

    @property
    def is_response(self) -> bool:
        """RemotingCommand#isResponseType."""
        return bool(self.flag & _RESPONSE)

    @property
    def is_oneway(self) -> bool:
        """RemotingCommand#isOnewayRPC."""
        return bool(self.flag & _ONEWAY)


class CommandReader:
    """A reader of the commands in one direction of a connection. ``cut`` counts incomplete headers.

    It keeps the first bytes of an unfinished command, up to the first missing byte. Later bytes are only counted, so
    that a hole takes no memory.
    """

    __slots__ = ("_begin_us", "_body_at", "_cut_at", "_known", "_length", "_lost", "_seen", "cut")

    def __init__(self) -> None:
        """Start without a known begin of a command: wait for a piece that looks like one."""
        self.cut = 0
        self._lost = True
        self._clear()

    @property
    def held(self) -> int:
        """Return the kept bytes of the unfinished command."""
        return len(self._known)

    def begin(self) -> None:
        """Start a connection, and with it a command."""
        self._lost = False
        self._clear()

    def give_up(self) -> None:
        """Drop the unfinished command; find the next one as in a capture that begins in the middle."""
        if self._known:
            self._lose()

    def _clear(self) -> None:
        """Start a command at the next byte."""
        self._known = bytearray()
        self._seen = 0  # bytes of the command so far, including missing ones
        self._cut_at: int | None = None  # position of the first missing byte
        self._length = self._body_at = 0  # length of the frame and start of the body; 0: unknown
        self._begin_us = 0

    def take(self, piece: Piece) -> Iterator[Command]:
        """Yield the commands that end in this piece."""
        if self._lost:
            if not _may_begin(piece.data):
                return
            self._lost = False
        at, data = 0, piece.data
        while at < len(data) and not self._lost:
            at += self._take_known(data, at, piece.ts_us)
            if self._is_complete:
                yield from self._end(piece.ts_us)
        if piece.missing and not self._lost:
            yield from self._miss(piece.missing, piece.ts_us)

    def _miss(self, missing: int, ts_us: int) -> Iterator[Command]:
        rest = self._length - self._seen if self._length else 0
        if self._cut_at is None:
            self._cut_at = self._seen
        self._seen += min(missing, rest)
        if self._is_complete:
            yield from self._end(ts_us)
        if missing > rest:  # the begin of the next command is unknown
            self._lose()

    @property
    def _is_complete(self) -> bool:
        return 0 < self._length <= self._seen

    def _take_known(self, data: bytes, at: int, ts_us: int) -> int:
        """Take the bytes of ``data`` from ``at`` that belong to the command; return their number."""
        if not self._seen:
            self._begin_us = ts_us
        most = (self._length or _BEFORE) - self._seen
        part = min(most, len(data) - at)
        if self._cut_at is None:
            self._known += data[at : at + part]
        self._seen += part
        if not self._length and self._seen == _BEFORE:
            length, header = _LENGTHS.unpack(self._known)
            if _is_sane(length, header & 0xFFFFFF, header >> 24):
                self._length, self._body_at = 4 + length, _BEFORE + (header & 0xFFFFFF)
            else:
                self._lose()
        return part

    def _end(self, ts_us: int) -> Iterator[Command]:
        known, body_at, begin_us, length = self._known, self._body_at, self._begin_us, self._length
        self._clear()
        try:
            if len(known) < body_at:
                raise DecodeError("torn", "the header is incomplete")
            header = read_header(known[4], bytes(known[_BEFORE:body_at]))
        except DecodeError:
            self.cut += 1
            return
        yield Command(begin_us, ts_us, *header, bytes(known[body_at:]), length - body_at)

    def _lose(self) -> None:
        self.cut += 1
        self._lost = True
        self._clear()


def _may_begin(data: bytes) -> bool:
    """Return whether a command may begin here: its first bytes are the first of a segment."""
    if len(data) < _BEFORE:
        return False
    length, header = _LENGTHS.unpack_from(data)
    if not _is_sane(length, header & 0xFFFFFF, header >> 24):
        return False
    return header >> 24 == ROCKETMQ or data[_BEFORE : _BEFORE + 1] == b"{"


def _is_sane(length: int, header: int, kind: int) -> bool:
    return length <= FRAME_MAX_LENGTH and kind in LEAST_HEADER and header >= LEAST_HEADER[kind] and header + 4 <= length
