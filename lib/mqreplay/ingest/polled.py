"""Polled consumer offsets of a source, and copies of its consumerOffset.json, in order of time.

Each line is read like a complete consumerOffset.json that was copied at its time. The file on the broker's disk is up
to 5 s older than the polled table in its memory: read together, offsets would seem to move back. So a copy near a poll
is not read.
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
from mqreplay.ingest.snapshot_file_rows import Row, file_row, snapshot_row, strange_rows

NEAR_MS = 60_000  # around a poll: copies within this time are superseded
SUPERSEDED = "the broker's table in memory was polled within 60 s of this copy, and is newer"
FILE_NAME = "consumerOffset.json"  # file name in silver.snapshot for a poll
ADVICE = {NO_TABLE: "offsets of this time are missing; a recorder writes a complete table each hour and when it starts"}


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
