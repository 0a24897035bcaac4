"""RocketMQ's remoting commands in a stream: length, header length and serialize type, header, body.

Source: RemotingCommand#decode, RocketMQSerializable, NettyDecoder (frames of at most 16 MiB).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from mqreplay.decode.capture.streams import Piece
from mqreplay.decode.jsonl import read_object
from mqreplay.errors import DecodeError

FRAME_MAX_LENGTH: Final = 16 * 1024 * 1024
_JSON, _ROCKETMQ = 0, 1  # SerializeType
_BEFORE: Final = 8  # bytes before the header: the frame's length, and the header's with its type
_RESPONSE, _ONEWAY = 1, 2  # bits of the flag
_LEAST_HEADER: Final = {_JSON: len('{"code":0}'), _ROCKETMQ: 21}


@dataclass(frozen=True, slots=True)
class Command:
    """A command; the times of its first and last byte in epoch microseconds.

    ``body_bytes`` is the body's length as sent; of ``body`` the capture may have only the beginning.
    """

    begin_us: int
    end_us: int
    code: int
    opaque: int
    flag: int
    remark: str | None
    ext: Mapping[str, str]
    body: bytes
    body_bytes: int

    @property
    def is_whole(self) -> bool:
        """Whether all of the body is there."""
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
    """Finds the commands in one direction of a connection. ``cut`` counts those whose header is not whole."""

    def __init__(self) -> None:
        """Nothing is known of where a command begins until a piece looks like the beginning of one."""
        self.cut = 0
        self._lost = True
        self._clear()

    def begin(self) -> None:
        """The connection begins, and with it a command."""
        self._lost = False
        self._clear()

    def _clear(self) -> None:
        self._bytes = bytearray()
        self._holes: list[tuple[int, int]] = []
        self._times: list[tuple[int, int]] = []  # the place of a piece's first byte, and when it came

    def take(self, piece: Piece) -> Iterator[Command]:
        """The commands that end in this piece."""
        if self._lost:
            if not _may_begin(piece.data):
                return
            self._lost = False
        self._times.append((len(self._bytes), piece.ts_us))
        self._bytes += piece.data
        if piece.missing:
            if piece.missing > FRAME_MAX_LENGTH:
                self._lose()
                return
            self._holes.append((len(self._bytes), len(self._bytes) + piece.missing))
            self._bytes += bytes(piece.missing)
        yield from self._whole_ones(piece.ts_us)

    def _whole_ones(self, ts_us: int) -> Iterator[Command]:
        at = 0
        while len(self._bytes) >= at + _BEFORE:
            length, told = struct.unpack_from(">II", self._bytes, at)
            header = told & 0xFFFFFF
            if self._misses(at, at + _BEFORE) or not _is_sane(length, header, told >> 24):
                self._lose()
                return
            end, body = at + 4 + length, at + _BEFORE + header
            if len(self._bytes) < end:
                break
            if self._misses(at, body):
                self.cut += 1
            else:
                begin_us = max(ts for place, ts in self._times if place <= at)
                there = min((low for low, high in self._holes if high > body), default=end)
                text = bytes(self._bytes[at + _BEFORE : body])
                try:
                    code, opaque, flag, remark, ext = _HEADERS[told >> 24](text)
                except DecodeError:
                    self.cut += 1
                else:
                    known = bytes(self._bytes[body : min(there, end)])
                    yield Command(begin_us, ts_us, code, opaque, flag, remark, ext, known, end - body)
            at = end
        self._forget(at)

    def _forget(self, at: int) -> None:
        if not at:
            return
        del self._bytes[:at]
        self._holes = [(max(begin - at, 0), end - at) for begin, end in self._holes if end > at]
        before = [time for time in self._times if time[0] <= at]
        self._times = [(0, before[-1][1])] + [(place - at, ts) for place, ts in self._times if place > at]

    def _misses(self, begin: int, end: int) -> bool:
        return any(low < end and begin < high for low, high in self._holes)

    def _lose(self) -> None:
        self.cut += 1
        self._lost = True
        self._clear()


def _may_begin(data: bytes) -> bool:
    """A command is sent at once: its first bytes are the first of a segment."""
    if len(data) < _BEFORE:
        return False
    length, told = struct.unpack_from(">II", data)
    if not _is_sane(length, told & 0xFFFFFF, told >> 24):
        return False
    return told >> 24 == _ROCKETMQ or data[_BEFORE : _BEFORE + 1] == b"{"


def _is_sane(length: int, header: int, kind: int) -> bool:
    return (
        length <= FRAME_MAX_LENGTH and kind in _LEAST_HEADER and header >= _LEAST_HEADER[kind] and header + 4 <= length
    )


_Header = tuple[int, int, int, str | None, Mapping[str, str]]


def _of_json(header: bytes) -> _Header:
    told = read_object(header)
    code, opaque, flag = (told.get(name, 0) for name in ("code", "opaque", "flag"))
    ext, remark = told.get("extFields") or {}, told.get("remark")
    numbers = all(type(n) is int for n in (code, opaque, flag))
    texts = isinstance(ext, dict) and all(isinstance(value, str) for value in ext.values())
    if not (numbers and texts and (remark is None or isinstance(remark, str))):
        raise DecodeError("wrong_type", "not a header of a remoting command")
    return code, opaque, flag, remark, ext


def _of_rocketmq(header: bytes) -> _Header:
    """RocketMQSerializable#rocketMQProtocolDecode: code, language, version, opaque, flag, remark, fields."""
    try:
        code, _, _, opaque, flag = struct.unpack_from(">hbhii", header)
        remark, at = _text(header, 13, ">i")
        (size,) = struct.unpack_from(">i", header, at)
        at, end, ext = at + 4, at + 4 + size, dict[str, str]()
        while at < end:
            name, at = _text(header, at, ">h")
            value, at = _text(header, at, ">i")
            ext[name] = value
    except (struct.error, UnicodeDecodeError) as error:
        raise DecodeError("wrong_type", f"not a header of a remoting command: {error}") from None
    return code, opaque, flag, remark or None, ext


def _text(data: bytes, at: int, size: str) -> tuple[str, int]:
    (length,) = struct.unpack_from(size, data, at)
    begin = at + struct.calcsize(size)
    end = begin + max(length, 0)
    if end > len(data):
        raise struct.error("a text goes beyond the header")
    return data[begin:end].decode("utf-8"), end


_HEADERS: Final = {_JSON: _of_json, _ROCKETMQ: _of_rocketmq}
