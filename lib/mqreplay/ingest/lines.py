"""A JSONL file, line by line: what decodes, what is refused and why, and the counts. Runs on the workers.

A torn gzip stream gives the lines before the tear; the tear itself is one refused line. A line is refused whole.
"""

from __future__ import annotations

import gzip
import hashlib
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from io import BufferedReader

from mqreplay.errors import DecodeError

LONGEST_LINE = 16 * 1024 * 1024  # bytes; a line past this is no record, and must not fill the memory
CHUNK = 1024 * 1024  # bytes read at once
KEPT = 4096  # bytes of a refused line that go to quarantine
ADVICE = {
    "torn_gzip": "copy the file again once its writer has closed it; the lines before the tear were read",
    "torn": "copy the file again once its writer has closed it",
    "unreadable": "let the user that runs mqreplay read it, or copy it again, and run again; the other files were read",
    "not_utf8": "recorders write UTF-8; see what wrote this line",
    "too_long": "a record is at most 16 MiB; see what wrote this line",
}
USUAL_ADVICE = "compare it with a whole line of the same file; the other lines were read"

Record = dict[str, object]
Decoder = Callable[[bytes], Record]
Numbered = tuple[int, bytes, bool]


@dataclass(frozen=True)
class Refused:
    """A line refused: its number from 1, a stable code, the reason in words, and how it begins."""

    line_number: int
    code: str
    reason: str
    content: bytes

    @property
    def advice(self) -> str:
        """How to mend it."""
        return ADVICE.get(self.code, USUAL_ADVICE)


@dataclass
class LineReader:
    """Iterates over (line number, record id, decoded) of one file; afterwards ``refused`` and ``lines`` are whole.

    ``decode`` is given the line without its line break and raises DecodeError to refuse it.
    """

    path: str
    decode: Decoder
    lines: int = 0
    refused: list[Refused] = field(default_factory=list)

    def __iter__(self) -> Iterator[tuple[int, str, Record]]:
        """Decoded lines, in file order. Blank lines are passed over, and are not counted."""
        return self.take(self.numbered())

    def take(self, numbered: Iterable[Numbered]) -> Iterator[tuple[int, str, Record]]:
        """The same, of lines that `numbered` gave."""
        for number, line, whole in numbered:
            self.lines += 1
            if len(line) > LONGEST_LINE:
                self._refuse(number, "too_long", f"line of more than {LONGEST_LINE} bytes", line)
                continue
            try:
                decoded = self.decode(line)
            except DecodeError as error:
                code = error.code if whole else "torn"
                reason = str(error) if whole else f"the file ends within this line: {error}"
                self._refuse(number, code, reason, line)
                continue
            yield number, record_id(line), decoded

    def numbered(self) -> Iterator[Numbered]:
        """(number, line without its line break, whether it had one) of every line that is not blank."""
        number, rest, too_long = 0, b"", False
        try:
            opened = open_maybe_gzip(self.path)
        except OSError as error:  # it was there when the run began
            self.lines += 1
            self._refuse(number + 1, "unreadable", str(unreadable(trouble_of(error))), b"")
            return
        with opened as stream:
            while True:
                try:
                    # At most one read below: what lies before a tear is then given before the tear is met.
                    chunk = stream.read1(CHUNK)
                except (EOFError, OSError, zlib.error) as error:
                    self.lines += 1
                    self._refuse(
                        number + 1,
                        "torn_gzip",
                        f"the compressed stream is torn after line {number}: {error}",
                        b"",
                    )
                    return
                if not chunk:
                    break
                lines = (rest + chunk).split(b"\n")
                rest = lines.pop()
                if too_long and lines:
                    del lines[0]
                    too_long = False
                for line in lines:
                    number += 1
                    if line and not line.isspace():
                        yield number, line.rstrip(b"\r"), True
                if too_long:
                    rest = b""
                elif len(rest) > LONGEST_LINE:
                    number += 1
                    yield number, rest[: LONGEST_LINE + 1], False
                    rest, too_long = b"", True
            if rest and not rest.isspace():
                yield number + 1, rest.rstrip(b"\r"), False

    def _refuse(self, number: int, code: str, reason: str, line: bytes) -> None:
        self.refused.append(Refused(number, code, reason, line[:KEPT]))


def trouble_of(error: OSError) -> str:
    """Why a file cannot be read, in the system's words, without its name."""
    return error.strerror or str(error)


def unreadable(trouble: str | None) -> DecodeError:
    """Of a file whose bytes nobody has seen."""
    return DecodeError("unreadable", f"it cannot be read: {trouble}")


def open_maybe_gzip(path: str) -> BufferedReader:
    """Opens a file for reading; what it begins with, not its name, says whether it is gzipped."""
    with open(path, "rb") as stream:
        magic = stream.read(2)
    return gzip.open(path, "rb") if magic == b"\x1f\x8b" else open(path, "rb")  # type: ignore[return-value]


def record_id(line: bytes) -> str:
    """First 128 bits of the line's SHA-256, in hex: the identity of a record.

    >>> record_id(b"{}")
    '44136fa355b3678a1146ad16f7e8649e'
    """
    return hashlib.sha256(line).hexdigest()[:32]


def file_sha256(path: str) -> str:
    """SHA-256 of a file's bytes, in hex."""
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
