"""Polled consumer offsets of a source, and copies of its consumerOffset.json, in order of time.

Each line is read like a complete consumerOffset.json that was copied at its time. The file on the broker's disk is up
to 5 s older than the polled table in its memory: read together, offsets would seem to move back. So a copy near a poll
is not read.

A change is used only if the table before it is known. After a refused line the table is unknown until the next complete
one. Times of the lines of a file never decrease, and are not before the time of its folder. Runs on the workers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from itertools import groupby

import numpy as np

from mqreplay.decode.consumer_offset import is_of_broadcasting, split_key
from mqreplay.decode.polled_offsets import PolledOffsets, decode_polled_offsets
from mqreplay.ingest.diffs import CONSUMER_OFFSET, Source
from mqreplay.ingest.entries import Moves, SnapshotFile
from mqreplay.ingest.lines import LineReader, Record, Refusals, Refused
from mqreplay.ingest.numbered_offsets import NAMES_NOTHING, NumberedOffsets, Numbering
from mqreplay.ingest.snapshot_rows import Row, file_row, quarantine_row, snapshot_row, strange_rows
from mqreplay.settings import IngestSettings

UNKNOWN_TABLE = "no_table"
LINE = "line"
NEAR_MS = 60_000  # around a poll: copies within this time are superseded
SUPERSEDED = "the broker's table in memory was polled within 60 s of this copy, and is newer"
FILE_NAME = "consumerOffset.json"  # file name in silver.snapshot for a poll
ADVICE = {
    UNKNOWN_TABLE: "offsets of this time are missing; a recorder writes a complete table each hour and when it starts"
}


def read_source(source: Source, files: Iterable[SnapshotFile]) -> Iterator[Row | Moves]:
    """Yield changes of offsets, and rows with ``out``, like `Source.read_all`."""
    listed = list(files)
    polled = [file for file in listed if file.is_polled]
    if not polled:
        yield from source.read_all(listed)
        return
    copies = [file for file in listed if file.kind == CONSUMER_OFFSET and not file.is_polled]
    yield from source.read_all(file for file in listed if file.kind != CONSUMER_OFFSET)
    yield from _Reading(source, polled).beside(copies)


class _Reading:
    """A reading of the polled tables of a source in order of time, with the copies between them."""

    def __init__(self, source: Source, polled: list[SnapshotFile]) -> None:
        self._source = source
        self._numbering = Numbering(source.keys)
        self._lines = PolledLines(polled, source.limits)
        self._last_ts: int | None = None

    def beside(self, copies: list[SnapshotFile]) -> Iterator[Row | Moves]:
        """Read all lines, and the copies that have no poll near them."""
        in_time = sorted(copies, key=lambda file: (file.ts_ms, file.is_bak))
        for ts_ms, together in groupby(in_time, key=lambda file: file.ts_ms):
            yield from self._until(ts_ms)
            if self._is_near(ts_ms):
                for file in together:
                    yield file_row(file, "superseded", SUPERSEDED)
            else:
                yield from self._source.read_moment(together)
        yield from self._until(None)

    def _is_near(self, ts_ms: int) -> bool:
        polls = (self._last_ts, self._lines.next_ts())
        return any(poll is not None and abs(poll - ts_ms) <= NEAR_MS for poll in polls)

    def _until(self, ts_ms: int | None) -> Iterator[Row | Moves]:
        """Read the lines up to a time, inclusive; None: all."""
        while (next_ts := self._lines.next_ts()) is not None and (ts_ms is None or next_ts <= ts_ms):
            file, line = self._lines.take()
            yield from self._take(file, line)
        while self._lines.finished:
            yield from _rows_of_file(self._lines.finished.pop())

    def _take(self, file: PolledFile, line: PolledOffsets) -> Iterator[Row | Moves]:
        source, self._last_ts = self._source, line.ts
        strange = file.apply(line, self._numbering)
        entries = len(line.entries.offsets) + sum(map(len, line.removed.values()))
        before = source.last_ts.get(CONSUMER_OFFSET)
        if before is not None and line.ts <= before:  # another file has this poll
            file.rows_in += entries
            return
        known = source.consumer_offsets()
        moved = known.differing(file.offsets)
        yield Moves(
            before,
            line.ts,
            file.digest,
            moved,
            known.values[moved],
            file.offsets.values[moved],
            ~known.there[moved],
            ~file.offsets.there[moved],
        )
        known.take(file.offsets, moved)
        source.has_polled(line.ts)
        new_strange, others = source.new_strange(strange)
        yield from strange_rows(file.file, file.digest, new_strange, others)
        held = len(file.offsets) + len(file.strange)
        yield snapshot_row(line.ts, FILE_NAME, file.digest, held, len(moved), None)
        file.strange_refused += len(new_strange) + others
        # As for a copy: a removed entry is a row without an entry in this line.
        file.rows_in += max(entries, len(moved) + len(new_strange) + others)
        file.rows_out += len(moved)


def _rows_of_file(found: PolledFile) -> Iterator[Row]:
    """Return the ledger rows of a file that was read to its end."""
    file, reader = found.file, found.reader
    for line in reader.refused.listed():
        yield _refused(found, line)
    refused = reader.refused.total + found.passed_over
    row = file_row(file, "read", reader.reason, found.digest)
    row["rows_in"], row["rows_out"] = found.rows_in + refused, found.rows_out
    row["rows_quarantined"] = refused + found.strange_refused
    if found.first_ts is not None:
        row["ts"], row["last_ts"] = found.first_ts, found.last_ts
    yield row


def _refused(found: PolledFile, line: Refused) -> Row:
    detail_key = "more" if line.code == "more" else ""
    advice = ADVICE.get(line.code, line.advice)
    return quarantine_row(
        found.file, found.digest, detail_key, line.code, line.reason, advice, line.content, line.line_number
    )


@dataclass
class PolledFile:
    """A file, its table after the last line that was read, and its counts. Instants are epoch ms."""

    file: SnapshotFile
    digest: str
    reader: LineReader
    offsets: NumberedOffsets = field(default_factory=NumberedOffsets)
    strange: dict[str, set[int]] = field(default_factory=dict)  # queues of invalid keys
    rows_in: int = 0
    rows_out: int = 0
    strange_refused: int = 0
    passed_over: int = 0  # refused lines without their own row in quarantine
    first_ts: int | None = None
    last_ts: int | None = None

    def lines(self) -> Iterator[PolledOffsets]:
        """Yield the usable lines; refuse the others."""
        known, ts, seen = False, self.file.ts_ms, 0
        first = last = count = 0  # of the changes that are skipped
        for number, _, record in self.reader:
            line: PolledOffsets = record[LINE]  # type: ignore[assignment]
            known = known and self.reader.refused.total == seen
            if line.ts < ts:
                known = False
                self.reader.refuse(number, "bad_time", _backwards(line.ts, ts, self.first_ts is None), b"")
            elif line.is_whole:
                self._pass_over(first, last, count, number)
                known, count = True, 0
            elif not known:
                first, last, count = first if count else number, number, count + 1
            seen = self.reader.refused.total
            if known:
                ts = line.ts
                self.first_ts = line.ts if self.first_ts is None else self.first_ts
                self.last_ts = line.ts
                yield line
        self._pass_over(first, last, count, None)

    def apply(self, line: PolledOffsets, numbering: Numbering) -> list[str]:
        """Apply the line to the table. Return the invalid keys of the line."""
        if line.is_whole:
            self.offsets.clear()
            self.strange.clear()
        numbers, offsets = numbering.of(line.entries), np.array(line.entries.offsets, np.int64)
        named = numbers != NAMES_NOTHING
        if not named.all():
            numbers, offsets = numbers[named], offsets[named]
        self.offsets.put(numbers, offsets)
        self.offsets.remove(numbering.of_removed(line.removed))
        return [] if named.all() and not self.strange else self._apply_strange(line)

    def _apply_strange(self, line: PolledOffsets) -> list[str]:
        found: list[str] = []
        at = 0
        for key, count in zip(line.entries.keys, line.entries.counts, strict=True):
            queue_ids = line.entries.queue_ids[at : at + count]
            at += count
            if count and split_key(key) == (None, None) and not is_of_broadcasting(key):
                self.strange.setdefault(key, set()).update(queue_ids)
                found.append(key)
        for key, gone in line.removed.items():
            if key in self.strange:
                self.strange[key] -= set(gone)
                if not self.strange[key]:
                    del self.strange[key]
        return sorted(found)

    def _pass_over(self, first: int, last: int, count: int, whole: int | None) -> None:
        """Count changes without a known table before them; one row of quarantine has the count."""
        if not count:
            return
        lines = f"line {first} is a change" if count == 1 else f"lines {first} to {last} are changes"
        until = "no complete table follows" if whole is None else f"the next complete table is in line {whole}"
        reason = f"{lines} to an unknown table, because the line before was refused or is missing; {until}"
        self.reader.refuse(first, UNKNOWN_TABLE, reason, b"")
        self.passed_over += count - 1


class PolledLines:
    """The lines of several files in order of time. A file is opened only when its first line is due."""

    def __init__(self, files: Sequence[SnapshotFile], limits: IngestSettings) -> None:
        """Take ``files`` of one source."""
        self._limits = limits
        self._files = sorted(files, key=lambda f: (f.ts_ms, f.path))
        self._open: dict[int, tuple[PolledFile, Iterator[PolledOffsets], PolledOffsets]] = {}
        self._heap = [(file.ts_ms, number) for number, file in enumerate(self._files)]
        heapify(self._heap)
        self._taken: tuple[int, PolledFile, Iterator[PolledOffsets]] | None = None
        self.finished: list[PolledFile] = []

    def next_ts(self) -> int | None:
        """Return the time of the next line; None if there is none."""
        if self._taken is not None:
            number, file, lines = self._taken
            self._taken = None
            self._advance(number, file, lines)
        while self._heap and self._heap[0][1] not in self._open:
            _, number = heappop(self._heap)
            made = self._opened(self._files[number])
            self._advance(number, made, made.lines())
        return self._heap[0][0] if self._heap else None

    def take(self) -> tuple[PolledFile, PolledOffsets]:
        """Return the next line, found by `next_ts`, and its file. A later `next_ts` finishes the file."""
        _, number = heappop(self._heap)
        file, lines, line = self._open.pop(number)
        self._taken = number, file, lines
        return file, line

    def _advance(self, number: int, file: PolledFile, lines: Iterator[PolledOffsets]) -> None:
        line = next(lines, None)
        if line is None:
            self.finished.append(file)
            return
        self._open[number] = file, lines, line
        heappush(self._heap, (line.ts, number))

    def _opened(self, file: SnapshotFile) -> PolledFile:
        root = None if self._limits.follow_links else file.recording
        refused = Refusals(self._limits.quarantine_rows)
        return PolledFile(file, file.digest, LineReader(file.full_path, _decode, refused=refused, root=root))


def _decode(line: bytes) -> Record:
    return {LINE: decode_polled_offsets(line)}


def _backwards(ts: int, before: int, of_folder: bool) -> str:
    what = "the time of its folder" if of_folder else "the line before it"
    return f"its ts is {ts}, and lies {before - ts} ms before {what}: its changes are not used either"
