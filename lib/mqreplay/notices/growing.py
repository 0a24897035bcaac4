"""Read what was appended to a growing file: whole lines of a JSONL file, complete members of a gzip file.

An append costs what it adds: the bytes before it are not read again. That they are unchanged is concluded from the last
bytes before the append; if these differ, or the file is shorter, the file is read from its beginning. The nightly run
reads and hashes the whole file.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator

from mqreplay.ingest.gzip_stream import GZIP
from mqreplay.ingest.opening import open_recorded
from mqreplay.words.errors import InputError

COMPARED_BYTES = 4096  # bytes before an append that are compared
READ_BYTES = 1024 * 1024
MOST_MEMBER = 256 * 1024 * 1024  # inflated bytes


class GrowingFile:
    """A file of lines and the number of its bytes that were read."""

    def __init__(self, path: str, root: str | None) -> None:
        """Take the file's path, and the folder that it must be in (None: any)."""
        self.path, self._root = path, root
        self._read, self._before, self._size = 0, b"", -1

    @property
    def is_unread(self) -> bool:
        """Return whether nothing of the file was read."""
        return self._read == 0

    def appended(self, size: int) -> Iterator[bytes]:
        """Yield what was appended, in pieces of whole lines. ``size`` is the file's size in bytes.

        Raises OSError, and InputError for a gzip member of more than MOST_MEMBER bytes.
        """
        if size == self._size:
            return
        with open_recorded(self.path, self._root) as file:
            start = max(0, self._read - COMPARED_BYTES)
            file.seek(start)
            if file.read(self._read - start) != self._before:
                self._read, self._before = 0, b""
            file.seek(self._read)
            chunks = iter(lambda: file.read(READ_BYTES), b"")
            yield from self._members(chunks) if self.path.endswith(".gz") else self._lines(chunks)
        self._size = size

    def _lines(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        rest = b""
        for chunk in chunks:
            whole, newline, rest = (rest + chunk).rpartition(b"\n")
            if newline:
                self._take(whole + newline)
                yield whole + newline

    def _members(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        member, inflater, inflated = bytearray(), zlib.decompressobj(GZIP), bytearray()
        for chunk in chunks:
            rest = chunk
            while rest:
                try:
                    inflated += inflater.decompress(rest, MOST_MEMBER + 1 - len(inflated))
                except zlib.error:
                    return  # the nightly run reports damage
                if len(inflated) > MOST_MEMBER:
                    raise InputError(
                        f"{self.path} has a gzip member of more than {MOST_MEMBER // 1024**2} MiB; --watch reads files"
                        " that grow by members, as those of mqreplay record do: leave this file out"
                    )
                used = len(rest) - len(inflater.unused_data)
                member += rest[:used]
                rest = inflater.unused_data
                if inflater.eof:
                    self._take(bytes(member))
                    if inflated:
                        yield bytes(inflated) if inflated.endswith(b"\n") else bytes(inflated) + b"\n"
                    member, inflater, inflated = bytearray(), zlib.decompressobj(GZIP), bytearray()

    def _take(self, data: bytes) -> None:
        self._read += len(data)
        self._before = (self._before + data)[-COMPARED_BYTES:]
