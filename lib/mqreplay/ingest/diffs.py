"""Snapshot files of one source, in time order -> what changed from each to the next. Runs on the workers.

A torn file is refused whole. Beside it the .bak is the last whole one; it is only believed where it is not older than
what is known already: every entry at or above the last snapshot's, none missing. A rewind that is real stands in the
next whole file too; one seen in a .bak alone would be a false alarm.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from mqreplay.decode.consumer_offset import split_key
from mqreplay.decode.offset_lines import Difference, OffsetLines
from mqreplay.errors import DecodeError
from mqreplay.ingest.entries import Entries, SnapshotFile, decode
from mqreplay.ingest.lines import KEPT

ADVICE = {
    "empty": "copy it again, or the .bak beside it; brokers rewrite the file in place",
    "torn": "copy it again, or the .bak beside it; brokers rewrite the file in place",
    "foreign": "this is not the file its name says; see what the recorder copied",
}
USUAL_ADVICE = "copy it again from the broker; the other snapshots were read"

Row = dict[str, object]


@dataclass
class Moves:
    """Offsets that one file changed, as columns of equal length. ``from_ts`` and ``ts`` are epoch ms."""

    from_ts: int | None
    ts: int
    digest: str
    topic: list[str] = field(default_factory=list)
    consumer_group: list[str] = field(default_factory=list)
    broker_name: list[str | None] = field(default_factory=list)
    queue_id: list[int] = field(default_factory=list)
    previous_offset: list[int | None] = field(default_factory=list)
    new_offset: list[int | None] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.queue_id)

    def add(self, key: OffsetKey, old: int | None, new: int | None) -> None:
        """One queue's."""
        self.topic.append(key[0])
        self.consumer_group.append(key[1])
        self.broker_name.append(key[2])
        self.queue_id.append(key[3])
        self.previous_offset.append(old)
        self.new_offset.append(new)


OffsetKey = tuple[str, str, str | None, int]  # topic, consumer group, broker name (a client's), queue id


@dataclass
class Source:
    """A broker's or client's snapshots: its names, and the last known entries of each family."""

    source_name: str
    broker_name: str | None
    broker_id: int | None
    client_id: str | None
    entries: dict[str, dict[object, object]] = field(default_factory=dict)
    last_ts: dict[str, int] = field(default_factory=dict)
    strange_keys: set[str] = field(default_factory=set)
    lines: OffsetLines = field(default_factory=OffsetLines)
    strange_now: int = 0

    def read_all(self, files: Iterable[SnapshotFile]) -> Iterator[Row | Moves]:
        """Moves of offsets, and rows with ``out``: config, snapshot, file or quarantine."""
        moments: dict[tuple[int, str], list[SnapshotFile]] = {}
        for file in files:
            moments.setdefault((file.ts_ms, file.family), []).append(file)
        for _, together in sorted(moments.items()):
            yield from self._read_moment(sorted(together, key=lambda f: f.is_bak))

    def _read_moment(self, together: list[SnapshotFile]) -> Iterator[Row | Moves]:
        whole = False
        for file in together:
            if whole and file.is_bak:
                yield _file_row(file, "superseded", "the file it is the copy of lies whole beside it")
                continue
            data = _read(file.full_path)
            if file.kind == "consumer_offset" and not file.is_bak:
                difference = self.lines.difference(data)
                if difference is not None:
                    whole = True
                    yield from self._take_difference(file, data, difference)
                    continue
            try:
                found = decode(data, file)
            except DecodeError as error:
                yield from self._refuse(file, data, error)
                continue
            if file.is_bak and self._is_old(file, found.entries):
                yield _file_row(file, "superseded", "it holds nothing newer than the snapshot before", data)
                continue
            whole = True
            if found.whole is not None:
                self.lines.remember(data, found.whole)
            yield from self._take(file, data, found)

    def _is_old(self, file: SnapshotFile, entries: dict[object, object]) -> bool:
        known = self.entries.get(file.family)
        if known is None:
            return False
        if file.kind not in ("consumer_offset", "client_offsets"):
            return True
        ahead = all(entries.get(key, -1) >= offset for key, offset in known.items())  # type: ignore[operator]
        return not ahead or entries == known

    def _take(
        self,
        file: SnapshotFile,
        data: bytes,
        found: Entries,
    ) -> Iterator[Row | Moves]:
        entries, strange = found.entries, found.strange
        known = self.entries.get(file.family, {})
        before, digest = self.last_ts.get(file.family), _digest(data)
        moved = [(key, known.get(key), new) for key, new in entries.items() if known.get(key) != new]
        gone = [(key, old, None) for key, old in known.items() if key not in entries]
        new_strange = [key for key in strange if key not in self.strange_keys]
        self.strange_keys.update(new_strange)
        self.entries[file.family], self.last_ts[file.family] = entries, file.ts_ms
        if file.kind in ("consumer_offset", "client_offsets"):
            moves = Moves(before, file.ts_ms, digest)
            for key, old, new in (*moved, *gone):
                moves.add(key, old, new)  # type: ignore[arg-type]
            yield moves
        else:
            for key, old, new in (*moved, *gone):
                yield {**_config(file, key, old, new), "from_ts": before, "ts": file.ts_ms, "digest": digest}
        for key in new_strange:
            yield _strange(file, digest, key)
        self.strange_now = len(strange) if file.kind == "consumer_offset" else self.strange_now
        rows_in, rows = len(entries) + len(strange), len(moved) + len(gone)
        yield _snapshot(file, digest, rows_in, rows, found.counter)
        # An entry that is gone is a row that no entry of this file stands for: it counts as one read.
        yield _file_row(file, "read", None, data, rows_in + len(gone), rows, len(new_strange))

    def _take_difference(self, file: SnapshotFile, data: bytes, difference: Difference) -> Iterator[Row | Moves]:
        """A file that was read by the lines that differ: the same keys as before, strange ones among them."""
        entries = self.entries[file.family]
        moves = Moves(self.last_ts.get(file.family), file.ts_ms, _digest(data))
        for one in difference.changed:
            topic, group = split_key(one.key)
            if topic is None or group is None:
                continue
            for queue_id, old, new in zip(one.queue_id, one.previous_offset, one.new_offset, strict=True):
                key = (topic, group, None, queue_id)
                entries[key] = new
                moves.add(key, old, new)
        self.last_ts[file.family] = file.ts_ms
        rows_in = len(entries) + self.strange_now
        yield moves
        yield _snapshot(file, moves.digest, rows_in, len(moves), difference.data_version_counter)
        yield _file_row(file, "read", None, data, rows_in, len(moves), 0)

    def _refuse(self, file: SnapshotFile, data: bytes, error: DecodeError) -> Iterator[Row]:
        yield {
            "out": "quarantine",
            "path": file.path,
            "kind": file.kind,
            "digest": _digest(data),
            "detail_key": "",
            "code": error.code,
            "reason": str(error),
            "advice": ADVICE.get(error.code, USUAL_ADVICE),
            "content": data[:KEPT],
        }
        yield _file_row(file, "refused", str(error), data, 1, 0, 1)


def _snapshot(file: SnapshotFile, digest: str, entries: int, changed: int, counter: int | None) -> Row:
    return {
        "out": "snapshot",
        "ts": file.ts_ms,
        "file_name": file.file_name,
        "digest": digest,
        "entries": entries,
        "changed": changed,
        "counter": counter,
    }


def _config(file: SnapshotFile, key: object, old: object, new: object) -> Row:
    change = "first" if old is None else "removed" if new is None else "changed"
    return {"out": "config", "kind": file.kind, "topic": key, "change": change, "payload": new}


def _strange(file: SnapshotFile, digest: str, key: str) -> Row:
    return {
        "out": "quarantine",
        "path": file.path,
        "kind": file.kind,
        "digest": digest,
        "detail_key": key,
        "code": "orphan_key",
        "reason": f"the key {key!r} is not topic@group: no consumer can ever commit to it or read it",
        "advice": "see which client made it; ConsumerOffsetManager passes over such keys",
        "content": key.encode()[:KEPT],
    }


def _file_row(
    file: SnapshotFile,
    status: str,
    reason: str | None,
    data: bytes | None = None,
    rows_in: int = 0,
    rows_out: int = 0,
    quarantined: int = 0,
) -> Row:
    return {
        "out": "file",
        "path": file.path,
        "kind": file.kind,
        "digest": None if data is None else _digest(data),
        "ts": file.ts_ms,
        "status": status,
        "reason": reason,
        "rows_in": rows_in,
        "rows_out": rows_out,
        "rows_quarantined": quarantined,
    }


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:32]


def _read(path: str) -> bytes:
    with open(path, "rb") as stream:
        return stream.read()
