"""The files that an import reads: plain, compressed, or unpacked members of archives."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final, Protocol, cast

from mqreplay.decode.text import MAX_BYTES
from mqreplay.machine.local_files import open_regular, unreadable
from mqreplay.words.errors import DecodeError, OwnDiskError, UnreadableInput

MOST_INFLATED: Final = 64 * 1024**3  # bytes of one file
_CHUNK: Final = 1 << 20
_DAMAGED = (gzip.BadGzipFile, zlib.error, lzma.LZMAError)


class Writer(Protocol):
    """A writer of records of an import."""

    def append(self, stem: str, record: Mapping[str, object]) -> None:
        """Write one line into the file of the kind ``stem``. Values of None are left out."""


@dataclass(frozen=True, slots=True)
class Source:
    """A file to import. ``path`` is its name for the user, such as ``night.tgz/logs/broker.log`` in an archive.

    ``file`` is the path of its bytes on disk, ``size`` their number. ``modified_ms`` is epoch milliseconds. ``hint`` is
    the part of the path below the user's folder, which can show what the file is. ``is_unpacked``: ``file`` is a copy
    that the import made, so that an error of reading it is one of the import's own disk.
    """

    path: str
    size: int
    modified_ms: int | None
    file: Path
    hint: str = ""
    is_unpacked: bool = False

    @property
    def parts(self) -> tuple[str, ...]:
        """Return the names of its folders and its own name."""
        return tuple(part for part in (self.hint or self.path).split("/") if part not in ("", "."))

    @property
    def folder(self) -> str:
        """Return the path of its folder."""
        return self.path.rpartition("/")[0]

    def open(self) -> BinaryIO:
        """Open its bytes, uncompressed if it is gzip, bzip2 or xz.

        Reading raises EOFError if a compressed file is cut short, and DecodeError if it is damaged or too large.
        Raises UnreadableInput.
        """
        return cast(BinaryIO, io.BufferedReader(_Inflated(self.open_as_is()), 1 << 18))

    def open_as_is(self) -> io.BufferedReader:
        """Open its bytes as they are on disk. Opening and reading raise UnreadableInput."""
        return open_input(str(self.file), self.is_unpacked)

    def chunks(self) -> Iterator[bytes]:
        """Yield its bytes as they are on disk. Raises UnreadableInput."""
        with self.open_as_is() as stream:
            while chunk := stream.read(_CHUNK):
                yield chunk

    def read(self, most: int = MAX_BYTES) -> bytes:
        """Return all its bytes, uncompressed. Raises like `open`, and DecodeError if there are more than ``most``."""
        with self.open() as stream:
            data = stream.read(most + 1)
        if len(data) > most:
            raise DecodeError("too_large", f"it holds more than {most} bytes")
        return data

    def head(self, most: int) -> bytes:
        """Return its first bytes, uncompressed; those before the damage if it is damaged. Raises UnreadableInput."""
        data = b""
        with self.open() as stream, suppress(EOFError, DecodeError):
            while len(data) < most and (chunk := stream.read1(most - len(data))):  # type: ignore[attr-defined]
                data += chunk
        return data


class _Inflated(io.RawIOBase):
    """The uncompressed bytes of an open file. The first bytes show the compression."""

    def __init__(self, raw: io.BufferedReader) -> None:
        self._raw = raw
        self._stream: Any = _inflater(raw)
        self._left = MOST_INFLATED

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer; return how many bytes came."""
        try:
            data = self._stream.read(len(buffer))
        except _DAMAGED as error:
            raise DecodeError("damaged", f"it is damaged ({error}); copy it again") from None
        except OSError as error:  # bz2 has no error class; errors of the file are not OSError, see _InputFile
            raise DecodeError("damaged", f"it is damaged ({error}); copy it again") from None
        self._left -= len(data)
        if self._left < 0:
            raise DecodeError("too_large", f"it is uncompressed larger than {MOST_INFLATED} bytes")
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        """Close the file."""
        if not self.closed:
            self._raw.close()
        super().close()


def _inflater(raw: io.BufferedReader) -> Any:
    magic = raw.peek(6)[:6]
    if magic.startswith(b"\x1f\x8b"):
        return gzip.GzipFile(fileobj=raw)
    if magic.startswith(b"BZh"):
        return bz2.BZ2File(raw)
    if magic.startswith(b"\xfd7zXZ\x00"):
        return lzma.LZMAFile(raw)
    return raw


def open_input(path: str, is_unpacked: bool = False) -> io.BufferedReader:
    """Open a file. Opening and reading raise UnreadableInput; OwnDiskError if the import has unpacked the file.

    Raises OSError if this machine lacks open files or memory.
    """
    try:
        return io.BufferedReader(_InputFile(open_regular(path), path, is_unpacked), 1 << 18)
    except OSError as error:
        raise _failed(error, path, is_unpacked) from error


def _failed(error: OSError, path: str, is_unpacked: bool) -> OwnDiskError | UnreadableInput:
    if is_unpacked:
        return OwnDiskError(os.path.dirname(path), error.strerror or str(error))
    return unreadable(error)


class _InputFile(io.RawIOBase):
    """An open file whose errors are not OSError: a reader of damaged content may catch that."""

    def __init__(self, raw: io.BufferedReader, path: str, is_unpacked: bool) -> None:
        self._raw, self._path, self._is_unpacked = raw, path, is_unpacked

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer; return how many bytes came."""
        try:
            return self._raw.readinto(buffer)
        except OSError as error:
            raise _failed(error, self._path, self._is_unpacked) from error

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Change the position. Raises DecodeError for one before the beginning, as damaged archives name."""
        try:
            return self._raw.seek(offset, whence)
        except OSError as error:
            if whence == os.SEEK_END:  # zipfile looks for an end that the file may be too short for
                raise
            raise DecodeError("damaged", f"it names a position outside of it ({error}); copy it again") from None

    def close(self) -> None:
        """Close the file."""
        if not self.closed:
            self._raw.close()
        super().close()


def source_of(path: str, file: Path, hint: str) -> Source:
    """Return the source of a file on disk. Raises OSError."""
    found = os.stat(file)
    return Source(path, found.st_size, found.st_mtime_ns // 1_000_000, file, hint)
