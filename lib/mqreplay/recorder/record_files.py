"""The files of an unfinished recording: they grow by complete gzip members, so they are always valid.

Lines are buffered until `flush`, which appends one member of complete lines to each file by one write. A killed process
loses the lines since the last flush. Data is synced to the disk only every 30 s, because syncs of every file every few
seconds would slow the disk of a broker's host. A power loss may lose that much.

The hour of a file is that of its lines' ts, and never decreases while a recorder runs.
"""

from __future__ import annotations

import errno
import json
import os
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from mqreplay.decode.recording.files import SNAPSHOT_KINDS
from mqreplay.recorder.durable import UNFINISHED, append_whole, replace_file, sync
from mqreplay.recorder.recording_folder import (
    BLOCK,
    HOUR_MS,
    OFFSETS,
    blocks,
    disk_bytes,
    gzip_member,
    held_folder,
    hourly_name,
    newest_offsets,
    repair,
    restore,
    source_folder,
    times,
)
from mqreplay.words.errors import RecordingFull

SYNC_S: Final = 30.0
RESERVED: Final = 1024 * 1024  # bytes below the bound reserved for EVENTS
EVENTS: Final = "recorder_events"
REASONS: Final = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EFBIG: "the limit of a file's size is reached (ulimit -f)",
    errno.EIO: "the disk reports an error (see dmesg)",
    errno.EROFS: "the file system cannot be written",
}
MOST_PENDING: Final = 512 * 1024 * 1024  # bytes of lines that are kept while the disk is full
OffsetTable = Mapping[str, Mapping[int, int] | Mapping[str, int]]  # {"topic@group": {queue id: offset in messages}}


class RecordFiles:
    """A writer of a recording into a folder, which it locks. Its methods are thread-safe.

    After RecordingFull nothing is lost or torn: unwritten lines wait for the next `flush`. The caller should not poll
    until a flush succeeds.
    """

    def __init__(self, folder: Path, max_bytes: int | None = None) -> None:
        """Repair the files of a killed run. ``max_bytes`` bounds the folder's disk usage; nothing is deleted for it.

        Raises InputError if another recorder writes into the folder, or it cannot be written.
        """
        self.folder = folder
        self._lock, self._writing = threading.Lock(), threading.Lock()
        self._pending: dict[Path, bytearray] = {}
        self._waiting = 0  # bytes pending
        self._hours: dict[str, int] = {}
        self._offsets: dict[Path, tuple[Path, OffsetTable]] = {}  # by source: its file and the table of the last line
        self._restored: set[Path] = set()  # files that end with a complete member
        self._unsynced: set[Path] = set()
        self._synced = time.monotonic()
        self._held: int | None = held_folder(folder)
        try:
            repair(folder)
            self._max, self._bytes = max_bytes, 0 if max_bytes is None else disk_bytes(folder)
        except BaseException:
            self._release()
            raise

    def __enter__(self) -> RecordFiles:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def append(self, stem: str, record: Mapping[str, Any]) -> None:
        """Add a record with ``ts`` in epoch milliseconds. The next flush writes it."""
        with self._lock:
            hour = self._hours[stem] = max(self._hours.get(stem, 0), record["ts"] // HOUR_MS)
            self._append(self.folder / hourly_name(stem, hour), record)

    def append_offsets(
        self, broker_name: str, broker_id: int, ts_ms: int, offset_table: OffsetTable, response_ts: int | None = None
    ) -> None:
        """Add a poll of a broker's complete offset table: {"topic@group": {queue id: offset}}.

        The first line of a file, and the first of a recorder, is the complete table. The others are changes.
        """
        source = source_folder(self.folder, broker_name, broker_id)
        with self._lock:
            path, before = self._offsets.get(source, (None, None))
            if path is None:
                path = newest_offsets(source)
            if path is None or ts_ms // HOUR_MS > int(path.parent.name) // HOUR_MS:
                path, before = source / str(ts_ms) / OFFSETS, None
            if path not in self._pending and not path.exists():
                before = None
            line = {"ts": ts_ms} | ({} if response_ts is None else {"response_ts": response_ts})
            self._append(path, line | offset_line(before, offset_table))
            self._offsets[source] = path, {key: dict(queues) for key, queues in offset_table.items()}

    def write_snapshot(self, broker_name: str, broker_id: int, ts_ms: int, file_name: str, data: bytes) -> None:
        """Write a copy of a broker's file, as of ``ts_ms``, at once."""
        if file_name not in SNAPSHOT_KINDS:
            raise ValueError(f"{file_name!r} is not a file of a snapshot")
        self._replace(source_folder(self.folder, broker_name, broker_id) / str(ts_ms) / file_name, data)

    def write_brokers(self, brokers: Mapping[str, Any]) -> None:
        """Replace brokers.json at once."""
        self._replace(self.folder / "brokers.json", json.dumps(brokers, ensure_ascii=False, indent=1).encode())

    def flush(self) -> None:
        """Write all appended lines, and sync them if the last sync is 30 s ago.

        Blocks on the disk. Raises RecordingFull after trying every file.
        """
        with self._writing:
            failure: RecordingFull | None = None
            with self._lock:
                pending = list(self._pending)
            for path in pending:
                try:
                    self._write(path)
                except RecordingFull as error:
                    failure = failure or error
            if time.monotonic() - self._synced >= SYNC_S:
                self._sync()
            if failure is not None:
                raise failure

    def close(self) -> None:
        """Flush, sync, and unlock the folder, even if the flush fails."""
        try:
            if self._held is not None:
                self._synced -= SYNC_S
                self.flush()
        finally:
            self._release()

    def last_snapshot(self, broker_name: str, broker_id: int, file_name: str) -> bytes | None:
        """Return the newest copy of a broker's file; None if there is none."""
        for folder in times(source_folder(self.folder, broker_name, broker_id)):
            with suppress(FileNotFoundError):
                return (folder / file_name).read_bytes()
        return None

    def _append(self, path: Path, record: Mapping[str, Any]) -> None:
        if self._waiting > MOST_PENDING:
            raise RecordingFull(str(self.folder), "512 MiB of records wait for the disk; new ones are refused")
        line = _line(record)
        self._pending.setdefault(path, bytearray()).extend(line)
        self._waiting += len(line)

    def _write(self, path: Path) -> None:
        with self._lock:
            lines = bytes(self._pending[path])
        member = gzip_member(lines)
        with self._changing(path, len(member), EVENTS in path.name):
            if path not in self._restored:
                path.parent.mkdir(parents=True, exist_ok=True)
                if path.exists():
                    restore(path)
                self._restored.add(path)
            append_whole(path, member)
        self._unsynced |= {path, path.parent}
        with self._lock:
            del self._pending[path][: len(lines)]
            self._waiting -= len(lines)
            if not self._pending[path]:
                del self._pending[path]

    def _replace(self, path: Path, data: bytes) -> None:
        with self._writing, self._changing(path, len(data)):
            path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(path, data, self.folder / (path.name + UNFINISHED))

    @contextmanager
    def _changing(self, path: Path, growth: int, is_event: bool = False) -> Iterator[None]:
        """Check the bound before a file grows and count its disk usage afterwards. Report a failure in one line."""
        before = _disk_use(path)
        reserved = 0 if is_event else RESERVED
        if self._max is not None and self._bytes + growth + 2 * BLOCK > self._max - reserved:
            detail = f"it has reached its bound of {self._max:,} bytes; move older files elsewhere, or raise the bound"
            raise RecordingFull(str(self.folder), f"{detail}; nothing was deleted", at_bound=True)
        try:
            yield
        except OSError as error:
            self._restored.discard(path)  # its end is checked before the next append
            raise RecordingFull(str(self.folder), _reason(error)) from error
        self._bytes += _disk_use(path) - before

    def _sync(self) -> None:
        try:
            while self._unsynced:
                sync(next(iter(self._unsynced)))
                self._unsynced.pop()
        except OSError as error:
            raise RecordingFull(str(self.folder), _reason(error)) from error
        self._synced = time.monotonic()

    def _release(self) -> None:
        if self._held is not None:
            os.close(self._held)
            self._held = None


def _line(record: Mapping[str, Any]) -> bytes:
    try:
        return json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
    except UnicodeEncodeError:  # half a surrogate pair, as Java may write it
        return json.dumps(record, separators=(",", ":")).encode() + b"\n"


def _disk_use(path: Path) -> int:
    """Return the disk usage of a file, and of its folder if it is the only file there."""
    try:
        return BLOCK + blocks(path.stat().st_size)
    except OSError:
        return 0


def _reason(error: OSError) -> str:
    happened = REASONS.get(error.errno or 0, "a file cannot be written")
    return f"{happened} ({error.strerror or error}); earlier files are complete"


def offset_line(before: OffsetTable | None, table: OffsetTable) -> dict[str, Any]:
    """Return the complete table if there is none before it, else the changes.

    >>> offset_line(None, {"orders@pay": {0: 12, 1: 7}})
    {'offsetTable': {'orders@pay': {0: 12, 1: 7}}}
    >>> offset_line({"orders@pay": {0: 12, 1: 7}}, {"orders@pay": {0: 13}})
    {'changed': {'orders@pay': {0: 13}}, 'removed': {'orders@pay': [1]}}
    >>> offset_line({"orders@pay": {0: 12}}, {"orders@pay": {0: 12}})
    {}
    """
    if before is None:
        return {"offsetTable": {key: dict(queues) for key, queues in table.items()}}
    changed: dict[str, dict[Any, int]] = {}
    removed: dict[str, list[int]] = {}
    for key, queues in table.items():
        known: Mapping[Any, int] = before.get(key, {})
        if queues != known:
            moved = {queue: offset for queue, offset in queues.items() if known.get(queue) != offset}
            gone = [int(queue) for queue in known if queue not in queues]
            changed.update({key: moved} if moved else {})
            removed.update({key: gone} if gone else {})
    removed.update(
        {key: [int(queue) for queue in queues] for key, queues in before.items() if key not in table and queues}
    )
    return ({"changed": changed} if changed else {}) | ({"removed": removed} if removed else {})
