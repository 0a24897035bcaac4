"""RocketMQ's remoting commands in a stream: length, header length and serialize type, header, body.

Source: RemotingCommand#decode, NettyDecoder (frames of at most 16 MiB).
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Final, NamedTuple

from mqreplay.decode.capture.headers import LEAST_HEADER, ROCKETMQ, read_header
from mqreplay.decode.capture.streams import Piece
from mqreplay.words.errors import DecodeError

FRAME_MAX_LENGTH: Final = 16 * 1024 * 1024
_BEFORE: Final = 8  # bytes before the header: the frame's length, and the header's with its type
_LENGTHS: Final = struct.Struct(">II")
_RESPONSE, _ONEWAY = 1, 2  # bits of the flag


class Command(NamedTuple):
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

    __slots__ = ("_begin_us", "_body_at", "_is_cut", "_known", "_length", "_lost", "_seen", "cut")

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
        self._known = bytearray()  # its bytes up to the first missing one
        self._is_cut = False
        self._seen = 0  # bytes of the command so far, including missing ones
        self._length = self._body_at = 0  # length of the frame and start of the body; 0: unknown
        self._begin_us = 0

    def take(self, piece: Piece) -> list[Command]:
        """Return the commands that end in this piece."""
        commands: list[Command] = []
        ts_us, data, missing = piece
        if self._lost:
            if not _may_begin(data):
                return commands
            self._lost = False
        at, size = 0, len(data)
        while at < size and not self._lost:
            if not self._seen:
                self._begin_us = ts_us
                if size - at >= _BEFORE:
                    length, header = _LENGTHS.unpack_from(data, at)
                    end = at + 4 + length
                    if end <= size and _is_sane(length, header):  # as for nearly all commands
                        self._add(commands, data[at:end], _BEFORE + (header & 0xFFFFFF), ts_us, 4 + length)
                        at = end
                        continue
            at += self._take_known(data, at)
            if 0 < self._length == self._seen:
                self._finish(commands, ts_us)
        if missing and not self._lost:
            self._miss(missing, commands, ts_us)
        return commands

    def _miss(self, missing: int, commands: list[Command], ts_us: int) -> None:
        rest = self._length - self._seen if self._length else 0
        self._is_cut = True
        self._seen += min(missing, rest)
        if 0 < self._length == self._seen:
            self._finish(commands, ts_us)
        if missing > rest:  # the begin of the next command is unknown
            self._lose()

    def _take_known(self, data: bytes, at: int) -> int:
        """Take the bytes of ``data`` from ``at`` that belong to the command; return their number."""
        most = (self._length or _BEFORE) - self._seen
        part = min(most, len(data) - at)
        if not self._is_cut:
            self._known += data[at : at + part]
        self._seen += part
        if not self._length and self._seen == _BEFORE:
            length, header = _LENGTHS.unpack(self._known)
            if _is_sane(length, header):
                self._length, self._body_at = 4 + length, _BEFORE + (header & 0xFFFFFF)
            else:
                self._lose()
        return part

    def _finish(self, commands: list[Command], ts_us: int) -> None:
        self._add(commands, bytes(self._known), self._body_at, ts_us, self._length)
        self._clear()

    def _add(self, commands: list[Command], known: bytes, body_at: int, ts_us: int, length: int) -> None:
        """Add a command of ``length`` bytes, of which those before the first missing one are known."""
        try:
            if len(known) < body_at:
                raise DecodeError("torn", "the header is incomplete")
            header = read_header(known[4], known[_BEFORE:body_at])
        except DecodeError:
            self.cut += 1
            return
        commands.append(Command(self._begin_us, ts_us, *header, known[body_at:], length - body_at))

    def _lose(self) -> None:
        self.cut += 1
        self._lost = True
        self._clear()


def _may_begin(data: bytes) -> bool:
    """Return whether a command may begin here: its first bytes are the first of a segment."""
    if len(data) < _BEFORE:
        return False
    length, header = _LENGTHS.unpack_from(data)
    return _is_sane(length, header) and (header >> 24 == ROCKETMQ or data[_BEFORE : _BEFORE + 1] == b"{")


def _is_sane(length: int, header: int) -> bool:
    """Return whether a command may have a length, and a length of its header with its type in the first byte."""
    least = LEAST_HEADER.get(header >> 24)
    return least is not None and least <= header & 0xFFFFFF <= length - 4 and length <= FRAME_MAX_LENGTH
