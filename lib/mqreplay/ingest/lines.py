"""Read a JSONL file line by line: decoded records, refused lines with reasons, and counts. Runs on the workers.

A line is refused as a whole. A gzip stream is checked before its first line is returned: a damaged stream gives no
line, a truncated one its lines up to the last complete one (gzip_stream.py).
"""

from __future__ import annotations

import hashlib
import io
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from io import BufferedReader
from typing import NamedTuple

from mqreplay.ingest.gzip_stream import MAGIC, check, inflate, not_gzip
from mqreplay.ingest.opening import open_recorded, read_recorded
from mqreplay.lake.store_protocol import FileTooLarge
from mqreplay.machine.local_files import unreadable
from mqreplay.words.errors import DecodeError

LONGEST_LINE = 16 * 1024 * 1024  # bytes; a longer line is not a record, and must not fill the memory
MOST_CONTAINERS = 500_000  # objects and lists of a line; each takes some 200 bytes once it is decoded
CHUNK = 1024 * 1024  # bytes read at once
BLOCK = 4 * CHUNK  # bytes of lines per block; polars is a fifth slower with blocks of 1 MiB
KEPT_OF_LINE = 4096  # bytes of a refused line that go to quarantine
LONGEST_REASON = 1_000  # characters; some name a field, which may be as long as its line
KEPT_OF_FILE = 1024 * 1024  # bytes of all refused lines of a file that go to quarantine
ALIKE = 1_000  # distinct refused lines of a file that are kept: millions of bad lines mostly repeat
ALIKE_BYTES = 1_000  # of a line that is remembered
ADVICE = {
    "torn_gzip": "copy the file again when its writer has closed it; the lines before the cut were read",
    "damaged_gzip": "copy the file again from the host where it was recorded; no line of it was read",
    "changed": "run again when its writer has closed it; the file is then read again",
    "torn": "copy the file again when its writer has closed it",
    "unreadable": "make it readable for the user of mqreplay or copy it again, and run again; other files were read",
    "not_utf8": "recorders write UTF-8; find out which program wrote this line",
    "too_long": "a record has at most 16 MiB and 500,000 objects and lists; find out which program wrote this line",
    "too_large": "find out which program wrote this file; RocketMQ writes no file of this size",
    "checksum": "copy the file again from the host where it was recorded, and run again; no row of it was read",
    "missing": "copy this file too and run again, or remove its line from SHA256SUMS",
    "more": "find out which program wrote the file; [ingest] quarantine_rows sets how many rows are kept",
}
USUAL_ADVICE = "compare it with a complete line of the same file; the other lines were read"

Record = dict[str, object]
Decoder = Callable[[bytes], Record]
Numbered = tuple[int, bytes, bool]


class Block(NamedTuple):
    """Lines of a file: the number of the first one, their count, and their bytes without the last line feed.

    If not ``whole``, it is one line without a line break, or one cut off because of its length.
    """

    first: int
    lines: int
    text: bytes
    whole: bool = True

    def numbered(self) -> Iterator[Numbered]:
        """(number, line without its line break, whether it had one) of every line that is not blank."""
        if not self.whole:
            yield self.first, self.text, False
            return
        for number, line in enumerate(io.BytesIO(self.text), self.first):
            if not line.isspace():
                yield number, line.rstrip(b"\r\n"), True


@dataclass(frozen=True)
class Refused:
    """A refused line: its number from 1 (0: the whole file), a stable code, the reason, and its first bytes."""

    line_number: int
    code: str
    reason: str
    content: bytes

    @property
    def advice(self) -> str:
        """Return what to do about it."""
        return ADVICE.get(self.code, USUAL_ADVICE)


class Refusals(list[Refused]):
    """The first ``most`` refused lines of a file; ``total`` counts all of them."""

    def __init__(self, most: int = sys.maxsize) -> None:
        """Keep at most ``most`` lines, and KEPT_OF_FILE bytes of their contents."""
        super().__init__()
        self.most, self.total, self._room = most, 0, KEPT_OF_FILE

    def append(self, refused: Refused) -> None:
        """Count a refused line, and keep it if it is among the first."""
        self.total += 1
        if len(self) < self.most:
            content = refused.content[: self._room]
            self._room -= len(content)
            super().append(replace(refused, content=content))

    def listed(self) -> list[Refused]:
        """Return the lines kept, and one row about the others if there are any."""
        more = self.total - len(self)
        return [*self, Refused(0, "more", and_more(more, "line"), b"")] if more else list(self)


def and_more(count: int, what: str) -> str:
    """Return the reason of a quarantine row that counts many rows.

    >>> and_more(1, "line"), and_more(1_499_000, "key")
    ('and 1 more line was refused', 'and 1,499,000 more keys were refused')
    """
    return f"and {count:,} more {what}{' was' if count == 1 else 's were'} refused"


@dataclass
class LineReader:
    """Iterate over (line number, record id, decoded) of one file; then ``refused`` and ``lines`` are complete.

    ``decode`` takes the line without its line break and raises DecodeError to refuse it. ``root`` is the folder that
    must contain the opened file, with links resolved. ``reason`` says why the file was not read, or not to its end. A
    file that is refused as a whole counts as one line.
    """

    path: str
    decode: Decoder
    lines: int = 0
    refused: Refusals = field(default_factory=Refusals)
    root: str | None = None
    reason: str | None = None
    _number: int = 0
    _alike: dict[bytes, tuple[str, str]] = field(default_factory=dict)

    def __iter__(self) -> Iterator[tuple[int, str, Record]]:
        """Yield decoded lines in file order. Blank lines are skipped and not counted."""
        return self.take(self.numbered())

    def take(self, numbered: Iterable[Numbered]) -> Iterator[tuple[int, str, Record]]:
        """Yield decoded lines from lines of `numbered`."""
        for number, line, whole in numbered:
            self.lines += 1
            if len(line) > MOST_CONTAINERS and (excess := _excess(line)) is not None:
                self.refuse(number, "too_long", excess, line)
                continue
            if self._alike and whole and line in self._alike:
                self.refuse(number, *self._alike[line], line)
                continue
            try:
                decoded = self.decode(line)
            except DecodeError as error:
                if whole and len(line) <= ALIKE_BYTES and len(self._alike) < ALIKE:
                    self._alike[line] = error.code, str(error)
                code = error.code if whole else "torn"
                reason = str(error) if whole else f"the file ends within this line: {error}"
                self.refuse(number, code, reason, line)
                continue
            yield number, record_id(line), decoded

    def numbered(self) -> Iterator[Numbered]:
        """(number, line without its line break, whether it had one) of every line that is not blank."""
        for block in self.blocks(CHUNK):
            yield from block.numbered()

    def blocks(self, size: int | None = None) -> Iterator[Block]:
        """Yield the file in blocks of complete lines, at least ``size`` bytes each; other lines are separate blocks."""
        self._number = 0
        try:
            with open_recorded(self.path, self.root) as stream:
                yield from self._blocks_of(stream, size or BLOCK)
        except DecodeError as error:
            self._end(error.code, error.detail, whole=True)
        except OSError as error:  # the file existed when the run began
            self._end("unreadable", unreadable(error).detail, whole=self._number == 0)

    def refuse(self, number: int, code: str, reason: str, line: bytes) -> None:
        """Refuse a line."""
        self.refused.append(Refused(number, code, reason[:LONGEST_REASON], line[:KEPT_OF_LINE]))

    def _blocks_of(self, stream: BufferedReader, size: int) -> Iterator[Block]:
        if not is_gzip(self.path, stream.peek(len(MAGIC))[: len(MAGIC)]):
            yield from self._cut(iter(partial(stream.read, CHUNK), b""), size)
            return
        checked = check(stream)
        try:
            yield from self._cut(inflate(stream, checked), size)
        except EOFError:
            if checked.truncated:
                self._end("torn_gzip", f"truncated: the compressed stream ends within line {self._number + 1}")
            else:
                self._end("changed", f"it changed while line {self._number + 1} was read")
        except zlib.error:
            self._end("changed", f"it changed while line {self._number + 1} was read")

    def _cut(self, pieces: Iterator[bytes], size: int) -> Iterator[Block]:
        # Grows in place: gzip members may have one byte each, and a copy per piece would take seconds.
        rest, end, too_long = bytearray(), -1, False  # end of the last complete line in rest
        broken: Exception | None = None
        while True:
            try:
                piece = next(pieces, None)
            except (EOFError, OSError, zlib.error) as error:  # yield the lines before it first
                piece, broken = None, error
            if piece is None:
                break
            if too_long:
                _, feed, piece = piece.partition(b"\n")
                too_long = not feed
            found = piece.rfind(b"\n")
            end = len(rest) + found if found >= 0 else end
            rest += piece
            if end >= 0 and len(rest) >= size:
                yield self._block(rest, end)
                end = -1
            if end < 0 and len(rest) > LONGEST_LINE:
                self._number += 1
                yield Block(self._number, 1, bytes(rest[: LONGEST_LINE + 1]), whole=False)
                rest, too_long = bytearray(), True
        if end >= 0:
            yield self._block(rest, end)
        if broken is not None:
            raise broken
        if rest and not rest.isspace():
            yield Block(self._number + 1, 1, bytes(rest.rstrip(b"\r")), whole=False)

    def _block(self, rest: bytearray, end: int) -> Block:
        """Remove the lines up to ``end`` from ``rest`` and return them."""
        with memoryview(rest) as view, view[:end] as lines:
            text = bytes(lines)
        del rest[: end + 1]
        block = Block(self._number + 1, text.count(b"\n") + 1, text)
        self._number += block.lines
        return block

    def _end(self, code: str, reason: str, *, whole: bool = False) -> None:
        """Refuse the rest of the file, or all of it."""
        self.lines += 1
        self.refuse(0 if whole else self._number + 1, code, reason, b"")
        self.reason = reason


def read_whole(path: str, root: str | None, most_bytes: int) -> bytes:
    """Return the bytes of a file of at most ``most_bytes``. Raises DecodeError (too_large, unreadable)."""
    try:
        return read_recorded(path, root, most_bytes)
    except OSError as error:
        raise unreadable(error) from None
    except FileTooLarge as error:
        raise DecodeError("too_large", f"{error.bytes:,} bytes, and at most {most_bytes:,} are read") from None


def is_gzip(path: str, magic: bytes) -> bool:
    """Return whether a file with these first two bytes is gzipped. Raises DecodeError if only its name says so."""
    if magic == MAGIC:
        return True
    if not path.endswith(".gz"):
        return False
    if MAGIC.startswith(magic):
        return True  # cut before its second byte
    raise not_gzip()


def _excess(line: bytes) -> str | None:
    """Return the limit that a line exceeds; None if it exceeds none."""
    if len(line) > LONGEST_LINE:
        return f"line of more than {LONGEST_LINE} bytes"
    if line.count(b"{") + line.count(b"[") > MOST_CONTAINERS:
        return f"line of more than {MOST_CONTAINERS} objects and lists"
    return None


def record_id(line: bytes) -> str:
    """Return the first 128 bits of the line's SHA-256 in hex: the identity of a record.

    >>> record_id(b"{}")
    '44136fa355b3678a1146ad16f7e8649e'
    """
    return hashlib.sha256(line).hexdigest()[:32]


def file_sha256(path: str, root: str | None = None) -> str:
    """Return the SHA-256 of a file's bytes in hex. ``root`` is the folder that must contain it. Raises OSError."""
    with open_recorded(path, root) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
