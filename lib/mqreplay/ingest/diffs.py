"""Snapshot files of one source, in time order -> what changed from each to the next. Runs on the workers.

A torn file is refused whole. Beside it the .bak is the last whole one; it is only believed where it is not older than
what is known already: every entry at or above the last snapshot's, none missing. A rewind that is real stands in the
next whole file too; one seen in a .bak alone would be a false alarm.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from mqreplay.decode.client_offsets import decode_client_offsets
from mqreplay.decode.consumer_offset import decode_consumer_offset
from mqreplay.decode.subscription_group import decode_subscription_group
from mqreplay.decode.topics import decode_topics
from mqreplay.errors import DecodeError
from mqreplay.ingest.lines import KEPT

ADVICE = {
    "empty": "copy it again, or the .bak beside it; brokers rewrite the file in place",
    "torn": "copy it again, or the .bak beside it; brokers rewrite the file in place",
    "foreign": "this is not the file its name says; see what the recorder copied",
}
USUAL_ADVICE = "copy it again from the broker; the other snapshots were read"

TOPIC_COLUMNS = (
    "read_queue_nums",
    "write_queue_nums",
    "perm",
    "topic_sys_flag",
    "order",
    "topic_filter_type",
)
GROUP_COLUMNS = (
    "consume_enable",
    "consume_from_min_enable",
    "consume_broadcast_enable",
    "retry_queue_nums",
    "retry_max_times",
    "group_broker_id",
    "which_broker_when_consume_slowly",
    "notify_consumer_ids_changed_enable",
)

Row = dict[str, object]
OffsetKey = tuple[str, str, str, int]  # topic, consumer group, broker name, queue id
Decoded = tuple[dict[object, object], list[str], int | None]  # entries, keys that name nothing, dataVersion.counter


@dataclass(frozen=True)
class SnapshotFile:
    """One file to read: where it lies, its place inside the recording, what it is, when it was copied (epoch ms)."""

    full_path: str
    path: str
    kind: str
    file_name: str
    ts_ms: int

    @property
    def family(self) -> str:
        """What its entries are compared within: a client keeps one file for each group."""
        return self.file_name.removesuffix(".bak") if self.kind == "client_offsets" else self.kind

    @property
    def is_bak(self) -> bool:
        """Whether it is the copy that RocketMQ keeps of the file before."""
        return self.file_name.endswith(".bak")


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

    def read_all(self, files: Iterable[SnapshotFile]) -> Iterator[Row]:
        """Rows of every file, each with ``out``: change, config, snapshot, file or quarantine."""
        moments: dict[tuple[int, str], list[SnapshotFile]] = {}
        for file in files:
            moments.setdefault((file.ts_ms, file.family), []).append(file)
        for _, together in sorted(moments.items()):
            yield from self._read_moment(sorted(together, key=lambda f: f.is_bak))

    def _read_moment(self, together: list[SnapshotFile]) -> Iterator[Row]:
        whole = False
        for file in together:
            if whole and file.is_bak:
                yield _file_row(file, "superseded", "the file it is the copy of lies whole beside it")
                continue
            data = _read(file.full_path)
            try:
                entries, strange, counter = DECODERS[file.kind](data, file)
            except DecodeError as error:
                yield from self._refuse(file, data, error)
                continue
            if file.is_bak and self._is_old(file, entries):
                yield _file_row(file, "superseded", "it holds nothing newer than the snapshot before", data)
                continue
            whole = True
            yield from self._take(file, data, entries, strange, counter)

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
        entries: dict[object, object],
        strange: list[str],
        counter: int | None,
    ) -> Iterator[Row]:
        known = self.entries.get(file.family, {})
        before = self.last_ts.get(file.family)
        make = self._change if file.kind in ("consumer_offset", "client_offsets") else _config
        rows = [make(file, key, known.get(key), new) for key, new in entries.items() if known.get(key) != new]
        rows += [make(file, key, old, None) for key, old in known.items() if key not in entries]
        new_strange = [key for key in strange if key not in self.strange_keys]
        self.strange_keys.update(new_strange)
        self.entries[file.family], self.last_ts[file.family] = entries, file.ts_ms
        digest = _digest(data)
        for row in rows:
            yield {**row, "from_ts": before, "ts": file.ts_ms, "digest": digest}
        for key in new_strange:
            yield _strange(file, digest, key)
        rows_in = len(entries) + len(strange)
        changed = sum(1 for row in rows if row.get("new_offset", row.get("payload")) is not None)
        gone = len(rows) - changed
        yield {
            "out": "snapshot",
            "ts": file.ts_ms,
            "file_name": file.file_name,
            "digest": digest,
            "entries": rows_in,
            "changed": len(rows),
            "counter": counter,
        }
        # An entry that is gone is a row that no entry of this file stands for: it counts as one read.
        yield _file_row(file, "read", None, data, rows_in + gone, len(rows), len(new_strange))

    def _change(self, file: SnapshotFile, key: object, old: object, new: object) -> Row:
        topic, group, broker, queue_id = key  # type: ignore[misc]
        return {
            "out": "change",
            "topic": topic,
            "consumer_group": group,
            "broker_name": broker or self.broker_name,
            "queue_id": queue_id,
            "previous_offset": old,
            "new_offset": new,
        }

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


def _consumer_offset(data: bytes, file: SnapshotFile) -> Decoded:
    got = decode_consumer_offset(data)
    entries: dict[object, object] = {}
    strange: list[str] = []
    for key, topic, group, queue_id, offset in zip(
        got.key, got.topic, got.consumer_group, got.queue_id, got.offset, strict=True
    ):
        if topic is None or group is None:
            strange.append(key)
        else:
            entries[(topic, group, None, queue_id)] = offset
    return entries, sorted(set(strange)), got.data_version_counter


def _client_offsets(data: bytes, file: SnapshotFile) -> Decoded:
    group = file.file_name.removesuffix(".bak").removesuffix("offsets.json").removesuffix(".")
    entries: dict[object, object] = {
        (row.topic, group, row.broker_name, row.queue_id): row.offset for row in decode_client_offsets(data)
    }
    return entries, [], None


def _topics(data: bytes, file: SnapshotFile) -> Decoded:
    got = decode_topics(data)
    return {t.topic_name: _payload(t, TOPIC_COLUMNS) for t in got.rows}, [], got.data_version.counter


def _subscription_groups(data: bytes, file: SnapshotFile) -> Decoded:
    got = decode_subscription_group(data)
    return {g.group_name: _payload(g, GROUP_COLUMNS) for g in got.rows}, [], got.data_version.counter


def _payload(config: object, columns: tuple[str, ...]) -> str:
    """The silver columns of a topic or group that are set, as JSON in a fixed order: equal texts, equal configs."""
    given = {name: getattr(config, name.removeprefix("group_")) for name in columns}
    return json.dumps({name: value for name, value in given.items() if value is not None}, sort_keys=True)


DECODERS: dict[str, Callable[[bytes, SnapshotFile], Decoded]] = {
    "consumer_offset": _consumer_offset,
    "client_offsets": _client_offsets,
    "topics": _topics,
    "subscription_groups": _subscription_groups,
}
