"""The packets of several capture files by time: tcpdump's rotated files, or captures of several hosts.

Captures of a client's host and of a broker's have the packets of one connection twice. In order of time the second one
is a repetition, which adds no call (`mqreplay.decode.capture.calls`).
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from heapq import heappop, heappush, heapreplace
from typing import BinaryIO, cast

from mqreplay.decode.capture.packets import Segment, segments
from mqreplay.errors import DecodeError, InputError, UnreadableInput
from mqreplay.record.imports.files.sources import open_input

GZIP = b"\x1f\x8b"


def in_order(captures: Sequence[str]) -> list[tuple[int, str]]:
    """Return the captures sorted by first packet, with its epoch microseconds.

    The names of tcpdump's rotated files do not sort by time.
    """
    firsts = []
    for path in captures:
        first = None
        try:
            with _open(path) as stream:
                first = next(segments(stream), None)
        except EOFError:
            pass
        except DecodeError as error:
            if error.code != "torn":
                raise InputError(f"{path} is not a readable packet capture: {error.detail}") from None
        firsts.append((first.ts_us if first else 0, path))
    return sorted(firsts)


@contextmanager
def _open(path: str) -> Iterator[BinaryIO]:
    """Return a capture's bytes, uncompressed. Raises InputError if they cannot be read or are damaged."""
    try:
        with open_input(path) as raw:
            gzipped = raw.peek(len(GZIP)).startswith(GZIP)
            yield cast(BinaryIO, gzip.GzipFile(fileobj=raw)) if gzipped else raw
    except (gzip.BadGzipFile, zlib.error) as error:
        raise InputError(f"{path} is damaged: {error}; copy it again") from None
    except UnreadableInput as error:
        raise InputError(f"{path} cannot be read: {error.trouble}") from None


def all_segments(files: Sequence[tuple[int, str]], torn: list[str]) -> Iterator[Segment]:
    """Yield the segments of all captures by time: those of several hosts have the same connections."""
    waiting = list(reversed(files))
    read: list[tuple[int, int, Segment, Iterator[Segment]]] = []  # a heap: of each open file the next segment
    while read or waiting:
        # Files of one tcpdump follow each other: few are open at the same time.
        while waiting and (not read or waiting[-1][0] <= read[0][0]):
            _, path = waiting.pop()
            of_file = _segments_of(path, torn)
            if (first := next(of_file, None)) is not None:
                heappush(read, (first.ts_us, len(waiting), first, of_file))
        if read:
            _, number, segment, of_file = read[0]
            yield segment
            if (following := next(of_file, None)) is None:
                heappop(read)
            else:
                heapreplace(read, (following.ts_us, number, following, of_file))


def _segments_of(path: str, torn: list[str]) -> Iterator[Segment]:
    try:
        with _open(path) as stream:
            yield from segments(stream)
    except (DecodeError, EOFError) as error:
        detail = error.detail if isinstance(error, DecodeError) else str(error)
        torn.append(f"{path}: {detail}; the packets before it were read")
