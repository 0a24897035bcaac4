"""The records of packet captures, without a recorder in the clients.

Names may come after the requests that need them, so the calls wait on disk until all captures are read. Several files
are read by time: tcpdump's rotated files, or captures of several hosts. Captures of a client's host and of a broker's
have the packets of one connection twice. In order of time the second one is a repetition, which adds no call
(`mqreplay.decode.capture.calls`).
"""

from __future__ import annotations

import gzip
import io
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from heapq import heappop, heappush, heapreplace
from pathlib import Path
from typing import Any, BinaryIO, Final

from mqreplay.decode.capture.calls import Call, Calls
from mqreplay.decode.capture.cluster import CapturedCluster
from mqreplay.decode.capture.lines import Cut, Unnamed, record_of
from mqreplay.decode.capture.names import Names
from mqreplay.decode.capture.packets import Segment, segments
from mqreplay.decode.capture.translated import TranslatedCalls
from mqreplay.importer.captures.call_spool import CallSpool
from mqreplay.importer.files.sources import open_input
from mqreplay.words.errors import DecodeError, InputError, UnreadableInput

REASONS: Final = 100  # reasons for skipped data that are printed; a reason may name an address
PULLS: Final = "pull_log"
GZIP = b"\x1f\x8b"
_BUFFER: Final = 1 << 18


def refuse_damaged(capture: str) -> None:
    """Read a capture to its end. Raises InputError if its bytes cannot be read, or are of no capture."""
    for _ in all_segments(in_order([capture]), []):
        pass


class Captures:
    """The records of several packet captures, what has no record, and notes for the user."""

    def __init__(self, captures: Sequence[str], folder: Path | None = None) -> None:
        """Read the captures; their calls wait in a file in ``folder``. Raises InputError for a file that is none."""
        self.cluster = CapturedCluster()
        self.left_out: Counter[str] = Counter()
        self.torn: list[str] = []
        self.notes: list[str] = []
        self._calls = Calls(all_segments(in_order(captures), self.torn))
        self._spool = CallSpool(folder)
        self._names = Names(self._spool.keep(self.cluster.watch(self._calls)))

    def records(self) -> Iterator[tuple[str, dict[str, object]]]:
        """Yield the kind and the fields of each record."""
        calls = self._calls
        translated, unanswered = TranslatedCalls(), Counter[str]()
        for call in self._spool:
            if (record := self._record(call)) is None:
                continue
            # Of two copies one may have the address of a broker that nothing names: it gives no record.
            if translated.repeats(call, self._names.client(call.connection)):
                self.left_out["requests seen again after a translation of addresses: they count once"] += 1
                continue
            if record[0] == PULLS and call.unanswered is not None:
                unanswered[call.unanswered] += 1
            yield record
        counts = {
            "commands that tcpdump cut or lost: capture with -s 0": calls.cut - calls.dropped,
            "incomplete commands that were given up: too many at the same time": calls.dropped,
            "answers that were given up: too many open requests at the same time": calls.unanswered,
        }
        self.left_out += Counter({what: count for what, count in counts.items() if count})
        self._spool.close()
        if unanswered:
            self.notes.append(_unanswered_note(unanswered))

    def _record(self, call: Call) -> tuple[str, dict[str, object]] | None:
        try:
            return record_of(call, self._names)
        except Unnamed as error:
            what = f"requests that cannot be attributed: {error}"
            known = what in self.left_out or len(self.left_out) < REASONS
            self.left_out[what if known else "requests that cannot be attributed: other brokers"] += 1
        except Cut:
            self.left_out["records whose body tcpdump cut: capture with -s 0"] += 1
        except DecodeError as error:
            self.left_out[f"answers that do not match their requests ({error.code})"] += 1
        return None


def _unanswered_note(counts: Counter[str]) -> str:
    """Return why pulls have no answer. A hook in a client logs a pull when its call ends, which a kill prevents.

    >>> _unanswered_note(Counter({"the broker was killed": 1, "the client was killed": 2}))
    '3 pulls have no answer: the client was killed (2), the broker was killed (1)'
    """
    total = counts.total()
    pulls = "1 pull has no answer" if total == 1 else f"{total:,} pulls have no answer"
    return f"{pulls}: {', '.join(f'{reason} ({count:,})' for reason, count in counts.most_common())}"


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
            yield io.BufferedReader(_Inflated(gzip.GzipFile(fileobj=raw)), _BUFFER) if gzipped else raw
    except (gzip.BadGzipFile, zlib.error) as error:
        raise InputError(f"{path} is damaged: {error}; copy it again") from None
    except UnreadableInput as error:
        raise InputError(f"{path} cannot be read: {error.trouble}") from None


class _Inflated(io.RawIOBase):
    """The uncompressed bytes of a gzip file, for a buffer: packets are read in many small parts."""

    def __init__(self, gzipped: gzip.GzipFile) -> None:
        self._gzipped = gzipped

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer with the bytes that there are; return their number."""
        data = self._gzipped.read1(len(buffer))
        buffer[: len(data)] = data
        return len(data)


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
        if len(read) == 1 and not waiting:
            _, _, segment, of_file = read.pop()
            yield segment
            yield from of_file
        elif read:
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
