"""Read a gzip stream: first check it completely, then decompress it.

A damaged stream gives no byte: bytes before the detected damage may already be wrong. A truncated stream, which ends
before its end marker, is correct up to its end and may be used.

One flipped bit can make a stream run past its end marker without an error. It then looks truncated. But a truncated
stream ends anywhere, and a damaged one still ends with its trailer: the last four bytes are the length of the last
member (modulo 2^32). If they fit what was inflated, the stream counts as damaged. If a whole member follows inside the
bytes of the member that seems cut off, the stream is damaged, too.

ISA-L is twice as fast as zlib, but ignores errors in some headers and finds damage at other places. So it reads only
members with the usual headers, and its result counts only if all checksums match. zlib reads everything else.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import BinaryIO

from isal import isal_zlib
from isal.igzip_lib import IsalError

from mqreplay.words.errors import DecodeError

MAGIC = b"\x1f\x8b"
CHUNK = 1024 * 1024  # uncompressed bytes per piece
READ = 64 * 1024  # compressed bytes per read
GZIP = 31  # wbits: zlib then reads the header and checks CRC and length
# A flipped bit changes the inflated length of a stream that runs to the end by up to 30 % in small files, and by 2 % in
# those of half a megabyte. The wider this is, the more truncated streams are refused: 1 of 8 for each GB inflated.
NEAR = 4  # the lengths may differ by this fraction (1/n),
NEAR_BYTES = 64 * 1024  # and by this number of bytes
HEADER = 10  # bytes of a member's header, before the file's name
NAME_FLAG = 8  # the flag of a header with the file's name, which ends with a zero byte
SHORTEST = 18  # bytes of a member: header, trailer, and no data
MOST_HEADERS = 100  # possible headers of members that are tried
ENOUGH = 16 * 1024 * 1024  # bytes; data that decompresses this far without an error is a member


@dataclass(frozen=True)
class Checked:
    """A checked stream: ``size`` is its compressed bytes; ``truncated``: it has no end marker."""

    size: int
    truncated: bool


class _Members:
    """A reader of the members of a stream, which keeps its position."""

    def __init__(self, stream: BinaryIO, most: int | None = None, *, by_zlib: bool) -> None:
        """Take ``most``, the compressed bytes to read (None: all), and ``by_zlib``: zlib reads every member."""
        self._stream, self._left, self._by_zlib = stream, most, by_zlib
        self.read = 0  # compressed bytes
        self.begin = 0  # where the current member begins
        self.inflated = 0  # bytes of the current member
        self.last = b""  # the last four bytes read

    def pieces(self) -> Iterator[bytes]:
        """Yield uncompressed bytes, at most CHUNK at once. Raises zlib.error and OSError; EOFError: truncated."""
        data = self._more()
        while True:
            self.begin, self.inflated = self.read - len(data), 0
            member = (zlib if self._by_zlib or not _is_usual(data) else isal_zlib).decompressobj(GZIP)
            while not member.eof:
                data = data or self._more()
                try:
                    piece = member.decompress(data, CHUNK)
                except IsalError as error:  # type: ignore[misc]  # its stub says that it is an instance
                    raise zlib.error(str(error)) from None
                if not data and not piece and not member.eof:
                    raise EOFError
                data = member.unused_data if member.eof else member.unconsumed_tail
                if piece:
                    self.inflated += len(piece)
                    yield piece
            # Zero bytes may pad a stream to tape blocks.
            while not (data := data.lstrip(b"\0")):
                if not (data := self._more()):
                    return

    def _more(self) -> bytes:
        data = self._stream.read(READ if self._left is None else min(READ, self._left))
        if self._left is not None:
            self._left -= len(data)
        self.read += len(data)
        self.last = (self.last + data)[-4:]
        return data


def check(stream: BinaryIO) -> Checked:
    """Decompress a whole stream only to check it. Raises DecodeError (damaged_gzip), OSError.

    >>> import gzip, io
    >>> whole = gzip.compress(b"a line\\n")
    >>> check(io.BytesIO(whole)), check(io.BytesIO(whole[:-9]))
    (Checked(size=27, truncated=False), Checked(size=18, truncated=True))
    >>> check(io.BytesIO(whole[:-1] + b"!"))
    Traceback (most recent call last):
    mqreplay.words.errors.DecodeError: damaged_gzip: the compressed stream is damaged: incorrect length check
    """
    members = _Members(stream, by_zlib=False)
    with suppress(zlib.error, EOFError):
        for _ in members.pieces():
            pass
        return Checked(members.read, truncated=False)
    stream.seek(0)
    members = _Members(stream, by_zlib=True)
    try:
        for _ in members.pieces():
            pass
    except zlib.error as error:
        # zlib says: Error -3 while decompressing data: incorrect data check
        raise _damaged(str(error).rpartition(": ")[2]) from None
    except EOFError:
        if _runs_past_its_end(stream, members):
            raise _damaged("it continues after its end marker") from None
        return Checked(members.read, truncated=True)
    return Checked(members.read, truncated=False)


def inflate(stream: BinaryIO, checked: Checked) -> Iterator[bytes]:
    """Yield the uncompressed bytes of a checked stream. EOFError ends a truncated stream.

    Raises zlib.error if the bytes have changed since the check.
    """
    stream.seek(0)
    return _Members(stream, checked.size, by_zlib=checked.truncated).pieces()


def not_gzip() -> DecodeError:
    """Return the error for a file whose name ends in .gz but whose bytes are not gzip."""
    return _damaged("its name ends in .gz, but it is not a gzip stream")


def _is_usual(data: bytes) -> bool:
    """Return whether a member has a header without checksum and with at most the file's name."""
    if data[:3] != MAGIC + b"\x08" or len(data) < HEADER:
        return False
    return data[3] == 0 or (data[3] == NAME_FLAG and data.find(0, HEADER) >= 0)


def _damaged(detail: str) -> DecodeError:
    return DecodeError("damaged_gzip", f"the compressed stream is damaged: {detail}")


def _runs_past_its_end(stream: BinaryIO, members: _Members) -> bool:
    """Return whether a stream without an end marker ends with a trailer, or has a member after its last one."""
    off = (int.from_bytes(members.last, "little") - members.inflated) % 2**32
    near = members.inflated // NEAR + NEAR_BYTES
    if members.read - members.begin >= SHORTEST and min(off, 2**32 - off) <= near:
        return True
    return any(_is_member(stream, at) for at in _headers(stream, members.begin + 1, members.read))


def _headers(stream: BinaryIO, begin: int, end: int) -> Iterator[int]:
    """Return the possible starts of members between two positions; the first MOST_HEADERS."""
    sign = MAGIC + b"\x08"
    found, before, at = 0, b"", begin
    while at < end:
        stream.seek(at)
        data = before + stream.read(min(READ, end - at))
        if len(data) == len(before):
            return
        first = at - len(before)
        place = data.find(sign)
        while place >= 0:
            yield first + place
            found += 1
            if found == MOST_HEADERS:
                return
            place = data.find(sign, place + 1)
        at = first + len(data)
        before = data[-(len(sign) - 1) :]


def _is_member(stream: BinaryIO, at: int) -> bool:
    """Return whether a complete member begins there."""
    stream.seek(at)
    member, inflated = zlib.decompressobj(GZIP), 0
    try:
        while not member.eof and inflated < ENOUGH:
            data = stream.read(READ)
            if not data:
                return False
            while data and not member.eof:
                inflated += len(member.decompress(data, CHUNK))
                data = member.unconsumed_tail
    except zlib.error:
        return False
    return True
