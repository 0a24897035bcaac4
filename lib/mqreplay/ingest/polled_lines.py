"""The usable lines of consumerOffset.jsonl files, in order of time. Runs on the workers.

A change is used only if the table before it is known. After a refused line the table is unknown until the next complete
one. Times of the lines of a file never decrease, and are not before the time of its folder.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush

import numpy as np

from mqreplay.decode.consumer_offset import is_of_broadcasting, split_key
from mqreplay.decode.polled_offsets import PolledOffsets, decode_polled_offsets
from mqreplay.ingest.entries import SnapshotFile
from mqreplay.ingest.lines import LineReader, Record, Refusals
from mqreplay.ingest.numbered_offsets import NAMES_NOTHING, NumberedOffsets, Numbering
from mqreplay.settings import IngestSettings

NO_TABLE = "no_table"
LINE = "line"


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
        self.reader.refuse(first, NO_TABLE, reason, b"")
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
