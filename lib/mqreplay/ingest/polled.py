"""A source's consumer offsets that were polled, and the copies of its consumerOffset.json beside them, in one order.

Each line is read as if it were a whole consumerOffset.json that was copied at its time. The file on the broker's disk
is up to 5 s older than the table in its memory, which is polled: read together, offsets would seem to go back. So a
copy near a poll is not read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from mqreplay.decode.polled_offsets import PolledOffsets
from mqreplay.ingest.diffs import CONSUMER_OFFSET, Source
from mqreplay.ingest.entries import Moves, SnapshotFile
from mqreplay.ingest.lines import Refused
from mqreplay.ingest.numbered_offsets import Numbering
from mqreplay.ingest.polled_lines import NO_TABLE, PolledFile, PolledLines
from mqreplay.ingest.told_rows import Row, file_row, snapshot_row, strange_rows

NEAR_MS = 60_000  # of a poll: a copy so near to it is superseded
SUPERSEDED = "the broker's table in memory was polled within 60 s of it, and is newer than this file"
FILE_NAME = "consumerOffset.json"  # of a snapshot: what a poll stands for
ADVICE = {NO_TABLE: "offsets of this time are missing; a recorder writes a whole table each hour, and when it starts"}


def read_source(source: Source, files: Iterable[SnapshotFile]) -> Iterator[Row | Moves]:
    """Yield moves of offsets, and rows with ``out``, as `Source.read_all` does."""
    listed = list(files)
    polled = [file for file in listed if file.is_polled]
    if not polled:
        yield from source.read_all(listed)
        return
    copies = [file for file in listed if file.kind == CONSUMER_OFFSET and not file.is_polled]
    yield from source.read_all(file for file in listed if file.kind != CONSUMER_OFFSET)
    yield from _Reading(source, polled).beside(copies)


class _Reading:
    """Reads the polled tables of a source in the order of time, with the copies between them."""

    def __init__(self, source: Source, polled: list[SnapshotFile]) -> None:
        self._source = source
        self._numbering = Numbering(source.keys)
        self._lines = PolledLines(polled, source.limits)
        self._last_ts: int | None = None

    def beside(self, copies: list[SnapshotFile]) -> Iterator[Row | Moves]:
        """All lines, and the copies that no poll is near."""
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
        """The lines until a time, which counts; None: all."""
        while (next_ts := self._lines.next_ts()) is not None and (ts_ms is None or next_ts <= ts_ms):
            file, line = self._lines.take()
            yield from self._take(file, line)
        while self._lines.finished:
            yield from _told(self._lines.finished.pop())

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
        # As for a copy: an entry that is gone is a row that no entry of this line stands for.
        file.rows_in += max(entries, len(moved) + len(new_strange) + others)
        file.rows_out += len(moved)


def _told(found: PolledFile) -> Iterator[Row]:
    """Return the facts of a file that was read to its end."""
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
    return {
        "out": "quarantine",
        "path": found.file.path,
        "kind": found.file.kind,
        "digest": found.digest,
        "line_number": line.line_number,
        "detail_key": "more" if line.code == "more" else "",
        "code": line.code,
        "reason": line.reason,
        "advice": ADVICE.get(line.code, line.advice),
        "content": line.content,
    }
