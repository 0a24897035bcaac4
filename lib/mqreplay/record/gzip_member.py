"""A gzip file that grows by complete members of complete lines, so it is valid after every append.

A process that is killed, or a machine that loses power, leaves a member that is not complete. `restore` removes it.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from mqreplay.errors import InputError
from mqreplay.record.durable import replace_file

GZIP: Final = 31  # wbits: a gzip header and trailer
MAGIC: Final = b"\x1f\x8b\x08\x00"
CHUNK: Final = 64 * 1024  # compressed bytes inflated at once
MOST_TRIED: Final = 1000  # possible starts of a member in a damaged file that are tried


def gzip_member(lines: bytes) -> bytes:
    """Return the lines as one complete gzip member. The same lines give the same bytes."""
    deflater = zlib.compressobj(6, zlib.DEFLATED, GZIP)
    return deflater.compress(lines) + deflater.flush()


def restore(path: Path) -> None:
    """Keep the complete members of a file, and remove everything else; an empty file is removed.

    The usual case is a torn last member. A power loss may also leave damage before complete members, which are kept.
    Raises InputError for a file that is not a gzip file: no recorder wrote it.
    """
    data = path.read_bytes()
    kept = list(_members(data))
    size = sum(end - begin for begin, end in kept)
    if kept and size == len(data):
        return
    if not kept:
        if data.strip(b"\0") and not data.startswith(MAGIC[: len(data)]):
            raise InputError(f"{path} is not a gzip file, so no recorder wrote it; move it to another folder")
        path.unlink()
    elif kept[-1][1] == size:
        _truncate(path, size)
    else:
        replace_file(path, b"".join(data[begin:end] for begin, end in kept))


def _members(data: bytes) -> Iterator[tuple[int, int]]:
    """Yield the begin and end of each complete member."""
    begin, tried = 0, 0
    while 0 <= begin < len(data) and tried < MOST_TRIED:
        end = _member_end(data, begin)
        if end is None:
            tried += 1
            begin = data.find(MAGIC, begin + 1)
        else:
            yield begin, end
            begin = end


def _member_end(data: bytes, begin: int) -> int | None:
    inflater = zlib.decompressobj(GZIP)
    for at in range(begin, len(data), CHUNK):
        chunk = data[at : at + CHUNK]
        try:
            inflater.decompress(chunk)
        except zlib.error:
            return None
        if inflater.eof:
            return at + len(chunk) - len(inflater.unused_data)
    return None


def _truncate(path: Path, size: int) -> None:
    with path.open("r+b") as file:
        file.truncate(size)
        os.fsync(file.fileno())
