"""Changes between consecutive snapshot files of one source. Runs on the workers.

A torn file is refused as a whole. The .bak beside it is then the last complete file. It is used only if it is not older
than the last snapshot: no entry is lower or missing. A real rewind is also in the next complete file; a rewind only in
a .bak would be a false alarm.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mqreplay.ingest.entries import Entries, Keys, Moves, SnapshotFile, decode
from mqreplay.ingest.lines import read_whole
from mqreplay.ingest.numbered_offsets import NumberedOffsets, numbered
from mqreplay.ingest.offset_bytes import Difference, OffsetBytes
from mqreplay.ingest.prefetch import Prefetch
from mqreplay.ingest.snapshot_rows import Row, config_row, file_row, refuse, short_key, snapshot_row, strange_rows
from mqreplay.settings import IngestSettings
from mqreplay.words.errors import DecodeError

CONSUMER_OFFSET = "consumer_offset"
OFFSETS = (CONSUMER_OFFSET, "client_offsets")  # the kinds whose entries are offsets
LMQ_REASON = "lmqConsumerOffset.json is beside it: a broker with enableLmq=true reads and writes only that file"
NOTHING_NEWER = "it has no newer offset than the snapshot before"


class Taken(NamedTuple):
    """The last accepted file of a family."""

    data: bytes
    digest: str
    entries: int
    strange: int
    counter: int | None


@dataclass
class Source:
    """The snapshots of a broker or client: its names, and the last known entries of each family."""

    source_name: str
    broker_name: str | None
    broker_id: int | None
    client_id: str | None
    entries: dict[str, dict[object, object]] = field(default_factory=dict)
    last_ts: dict[str, int] = field(default_factory=dict)
    strange_keys: set[str] = field(default_factory=set)
    keys: Keys = field(default_factory=Keys)
    taken: dict[str, Taken] = field(default_factory=dict)
    offsets: OffsetBytes = field(default_factory=OffsetBytes)
    # The number in ``keys`` of each row of the offset table (-1: an invalid key).
    numbers: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))
    behind: bool = False  # whether ``entries`` lacks offsets that ``offsets`` has read
    polled: NumberedOffsets | None = None  # the consumer offsets as arrays, if requested
    polled_since: bool = False  # whether ``entries`` lacks offsets that ``polled`` has
    limits: IngestSettings = field(default_factory=IngestSettings)
    prefetch: Prefetch | None = None  # of files in a store

    def read(self, file: SnapshotFile) -> bytes:
        """Return a file's bytes. Raises DecodeError (too_large, unreadable)."""
        if self.prefetch is not None:
            return self.prefetch.read(file.full_path)
        root = None if self.limits.follow_links else file.recording
        return read_whole(file.full_path, root, self.limits.snapshot_bytes)

    def read_all(self, files: Iterable[SnapshotFile]) -> Iterator[Row | Moves]:
        """Yield changes of offsets, and rows with ``out``: config, snapshot, file or quarantine."""
        moments: dict[tuple[int, str], list[SnapshotFile]] = {}
        for file in files:
            moments.setdefault((file.ts_ms, file.family), []).append(file)
        for _, together in sorted(moments.items()):
            yield from self.read_moment(sorted(together, key=lambda f: f.is_bak))
        self._catch_up()

    def read_moment(self, together: Iterable[SnapshotFile]) -> Iterator[Row | Moves]:
        """Yield the same for the files of one family and time, the .bak last."""
        whole, together = False, list(together)
        has_lmq = any(file.is_lmq for file in together)
        for file in together:
            if has_lmq and file.kind == CONSUMER_OFFSET and not file.is_lmq:
                yield file_row(file, "superseded", LMQ_REASON)
                continue
            if whole and file.is_bak:
                yield file_row(file, "superseded", "the complete file is beside it")
                continue
            try:
                data = self.read(file)
            except DecodeError as error:  # the file existed when the run began
                yield from refuse(file, b"", "", error)
                continue
            taken = self.taken.get(file.family)
            if taken is not None and data == taken.data:
                if file.is_bak:
                    yield file_row(file, "superseded", NOTHING_NEWER, taken.digest)
                else:
                    whole = True
                    yield from self._take_same(file, taken)
                continue
            digest = hashlib.sha256(data).hexdigest()[:32]
            if taken is not None and file.kind == CONSUMER_OFFSET and not (file.is_bak or file.is_lmq):
                difference = self.offsets.difference(data)
                if difference is not None:
                    whole = True
                    now = taken._replace(data=data, digest=digest, counter=difference.counter)
                    yield from self._take_difference(file, now, difference)
                    continue
            try:
                found = decode(data, file)
            except DecodeError as error:
                yield from refuse(file, data, digest, error)
                continue
            if file.is_bak and self._is_old(file, found.entries):
                yield file_row(file, "superseded", NOTHING_NEWER, digest)
                continue
            whole = True
            yield from self._take(file, data, digest, found)

    def _is_old(self, file: SnapshotFile, entries: dict[object, object]) -> bool:
        self._catch_up()
        known = self.entries.get(file.family)
        if known is None:
            return False
        if file.kind not in OFFSETS:
            return True
        ahead = all(entries.get(key, -1) >= offset for key, offset in known.items())  # type: ignore[operator]
        return not ahead or entries == known

    def _take(self, file: SnapshotFile, data: bytes, digest: str, found: Entries) -> Iterator[Row | Moves]:
        self._catch_up()
        entries, strange = found.entries, found.strange
        known = self.entries.get(file.family, {})
        before = self.last_ts.get(file.family)
        moved = [(key, old, new) for key, new in entries.items() if (old := known.get(key)) != new]
        gone = [(key, old, None) for key, old in known.items() if key not in entries]
        new_strange, others = self.new_strange(strange)
        self.entries[file.family], self.last_ts[file.family] = entries, file.ts_ms
        taken = Taken(data, digest, len(entries), len(strange), found.counter)
        self.taken[file.family] = taken
        if file.kind == CONSUMER_OFFSET:
            self.polled = None
        if found.whole is not None:
            # The second table of an LMQ broker's file would be missed: such files are decoded completely.
            self.offsets.remember(b"" if file.is_lmq else data, found.whole)
            named = np.array([topic is not None for topic in found.whole.topic], np.bool_)
            self.numbers = np.full(len(named), -1, np.int32)
            self.numbers[named] = self.keys.of(entries)  # type: ignore[arg-type]
        if file.kind in OFFSETS:
            yield self._moves(before, file.ts_ms, digest, [*moved, *gone])
        else:
            for key, old, new in (*moved, *gone):
                yield {**config_row(file, key, old, new), "from_ts": before, "ts": file.ts_ms, "digest": digest}
        yield from strange_rows(file, digest, new_strange, others)
        yield from _read_rows(file, taken, len(moved) + len(gone), len(gone), len(new_strange) + others)

    def _take_same(self, file: SnapshotFile, taken: Taken) -> Iterator[Row | Moves]:
        """Take a file that equals the one before byte for byte."""
        if file.kind in OFFSETS:
            yield self._moves(self.last_ts.get(file.family), file.ts_ms, taken.digest, [])
        self.last_ts[file.family] = file.ts_ms
        yield from _read_rows(file, taken, 0)

    def _take_difference(self, file: SnapshotFile, taken: Taken, difference: Difference) -> Iterator[Row | Moves]:
        """Take a file of which only changed bytes were read: it has the same keys as before, also invalid ones."""
        entry, previous, new = self.numbers[difference.rows], difference.previous, difference.new
        if not (named := entry >= 0).all():
            entry, previous, new = entry[named], previous[named], new[named]
        before = self.last_ts.get(file.family)
        self.taken[file.family], self.last_ts[file.family], self.behind = taken, file.ts_ms, True
        self.polled = None
        yield Moves(before, file.ts_ms, taken.digest, entry, previous, new)
        yield from _read_rows(file, taken, len(entry))

    def new_strange(self, strange: Iterable[str]) -> tuple[list[str], int]:
        """Return the invalid keys that are not yet reported, and the number of further ones.

        Above a number of keys of a source, further ones are only counted for each file.
        """
        found = [key for key in map(short_key, strange) if key not in self.strange_keys]
        room = max(0, self.limits.quarantine_rows - len(self.strange_keys))
        self.strange_keys.update(found[:room])
        return found[:room], len(found[room:])

    def consumer_offsets(self) -> NumberedOffsets:
        """Return the known consumer offsets as arrays, which the caller may update to a poll (`has_polled`)."""
        if self.polled is None:
            self._catch_up()
            self.polled = numbered(self.entries.get(CONSUMER_OFFSET, {}), self.keys)  # type: ignore[arg-type]
        return self.polled

    def has_polled(self, ts_ms: int) -> None:
        """Set the consumer offsets to the current arrays of ``consumer_offsets``, polled at that time."""
        self.last_ts[CONSUMER_OFFSET], self.polled_since = ts_ms, True
        self.taken.pop(CONSUMER_OFFSET, None)

    def _catch_up(self) -> None:
        """Update ``entries`` to the offsets read as bytes since: updating a dict for each offset would be slow."""
        if self.polled_since and self.polled is not None:
            self.entries[CONSUMER_OFFSET] = dict(self.polled.by_key(self.keys))
            self.polled_since = False
        if self.behind:
            keys = self.keys.keys
            pairs = zip(self.numbers.tolist(), self.offsets.values.tolist(), strict=True)
            self.entries[CONSUMER_OFFSET] = {keys[number]: offset for number, offset in pairs if number >= 0}
            self.behind = False

    def _moves(self, before: int | None, ts: int, digest: str, moved: list[tuple[Any, Any, Any]]) -> Moves:
        return Moves(
            before,
            ts,
            digest,
            self.keys.of([key for key, _, _ in moved]),
            np.array([0 if old is None else old for _, old, _ in moved], np.int64),
            np.array([0 if new is None else new for _, _, new in moved], np.int64),
            np.array([old is None for _, old, _ in moved], np.bool_),
            np.array([new is None for _, _, new in moved], np.bool_),
        )


def _read_rows(file: SnapshotFile, taken: Taken, changed: int, gone: int = 0, new_strange: int = 0) -> Iterator[Row]:
    """Yield the ledger rows of an accepted file."""
    rows_in = taken.entries + taken.strange
    yield snapshot_row(file.ts_ms, file.file_name, taken.digest, rows_in, changed, taken.counter)
    # A removed entry is a row without an entry in this file: it counts as one row in.
    yield file_row(file, "read", None, taken.digest, rows_in + gone, changed, new_strange)
