"""The last minutes of a recording, as a folder of small files that ingest reads: each round adds what is new.

JSONL files are copied in parts, one for each round. A part of polled offsets begins with the complete table. Copies of
brokers' files are copied as they are; the last ones before the window are needed too, since they are valid until the
next.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from stat import S_ISREG
from typing import Any

from mqreplay.decode.kinds import KINDS
from mqreplay.decode.recording.files import POLLED, RECORD_TABLES, SNAPSHOT_FILES, classify
from mqreplay.ingest.lines import file_sha256
from mqreplay.ingest.opening import open_recorded
from mqreplay.ingest.recording import Digested, RecordedFile
from mqreplay.notices.growing import GrowingFile
from mqreplay.recorder.durable import open_own
from mqreplay.words.errors import InputError

GROW = 2  # the newest files of polled offsets of a source; older ones do not grow any more
MOST_NAMES = 6  # names of files that a source may have: three files, and their .bak
LATE_MS = 120_000  # a folder of a snapshot may get its files, or its name, so long after a later one
Line = dict[str, Any]


@dataclass
class Part:
    """A file of the folder, and the last instant that it covers, in epoch ms."""

    digested: Digested
    until_ms: int

    @property
    def file(self) -> RecordedFile:
        """Return the file."""
        return self.digested[0]


@dataclass
class _Offsets:
    """A growing file of polled offsets, and its table after the last line; None before a complete one."""

    file: GrowingFile
    table: dict[str, dict[str, int]] | None = None

    def apply(self, line: Line) -> None:
        """Apply a line to the table."""
        if "offsetTable" in line:
            self.table = {key: dict(queues) for key, queues in line["offsetTable"].items()}
        if self.table is None:
            return
        for key, queues in line.get("changed", {}).items():
            self.table.setdefault(key, {}).update(queues)
        for key, gone in line.get("removed", {}).items():
            for queue in gone:
                self.table.get(key, {}).pop(str(queue), None)
            if not self.table.get(key, True):
                del self.table[key]


@dataclass
class Recent:
    """The last minutes of the recording in ``recording``, copied into ``folder``. ``say`` gets notes."""

    recording: str
    folder: Path
    follow_links: bool
    say: Callable[[str], None]
    lines: int = 0  # of the last call of read
    bytes_read: int = 0  # the same; of gzip files as inflated
    parts: list[Part] = field(default_factory=list)
    _growing: dict[str, GrowingFile] = field(default_factory=dict)
    _offsets: dict[str, _Offsets] = field(default_factory=dict)
    _copied: dict[str, tuple[int, int]] = field(default_factory=dict)  # size and time of copied files
    _newest: dict[str, int] = field(default_factory=dict)  # by source: the last folder, epoch ms
    _written: int = 0  # parts of JSONL files
    _read_ms: int = -1  # when it was last read

    def __post_init__(self) -> None:
        self.recording = str(Path(self.recording).resolve())
        if not os.path.isdir(self.recording):
            raise InputError(f"recording {self.recording} does not exist; start mqreplay record first")

    def read(self, since_ms: int, now_ms: int) -> list[Digested]:
        """Copy what is new, and return the new files of the folder. Lines before ``since_ms`` are left out."""
        is_late = self._read_ms < since_ms
        self.lines = self.bytes_read = 0
        made = [*self._read_lines(since_ms, now_ms, is_late), *self._read_snapshots(since_ms)]
        self.parts += made
        self._read_ms = now_ms
        return [part.digested for part in made]

    def forget(self, since_ms: int) -> list[Digested]:
        """Remove the files that end before ``since_ms`` and are not valid any more; return the others."""
        valid: dict[tuple[str | None, str], Part] = {}
        for part in sorted(self.parts, key=lambda part: part.until_ms):
            if part.until_ms < since_ms and part.file.kind not in RECORD_TABLES:
                valid[part.file.source_name, part.file.file_name] = part
        kept = [p for p in self.parts if p.until_ms >= since_ms or p in valid.values() or p.file.kind == "brokers"]
        for part in self.parts:
            if part not in kept:
                Path(part.file.full_path).unlink(missing_ok=True)
        self.parts = kept
        self._copied = {path: seen for path, seen in self._copied.items() if _epoch(path) >= since_ms - LATE_MS}
        return [part.digested for part in kept]

    def _read_lines(self, since_ms: int, now_ms: int, is_late: bool) -> Iterator[Part]:
        """Yield parts with the new lines. ``is_late``: some may be older than the window."""
        with os.scandir(self.recording) as entries:
            found = sorted((e.name, e) for e in entries if classify(e.name)[0] in (*RECORD_TABLES, "brokers"))
        for name, entry in found:
            try:
                stat = entry.stat(follow_symlinks=self.follow_links)
            except OSError:
                continue
            if not S_ISREG(stat.st_mode):
                continue
            if name == "brokers.json":
                yield from self._copy(name, stat, "brokers", None, now_ms)
                continue
            if stat.st_mtime_ns // 1_000_000 < since_ms:
                self._growing.pop(name, None)  # if it grows again, its older lines are left out
                continue
            growing = self._growing.setdefault(name, GrowingFile(f"{self.recording}/{name}", self._root))
            kind = classify(name)[0]
            time = KINDS[kind].time if is_late or growing.is_unread else None
            data = b"".join(_since(self._appended(growing, stat.st_size), time, since_ms))
            if data:
                self._written += 1
                yield self._write(f"{kind}.{self._written:012}.jsonl", data, kind, now_ms)

    def _read_snapshots(self, since_ms: int) -> Iterator[Part]:
        root = f"{self.recording}/snapshots"
        if not os.path.isdir(root):
            return
        for source in sorted(os.listdir(root)):
            if not os.path.isdir(f"{root}/{source}"):
                continue
            times = sorted(int(name) for name in os.listdir(f"{root}/{source}") if name.isascii() and name.isdigit())
            for path, stat, ts in self._listed(source, times, since_ms):
                kind = classify(path)[0]
                if kind not in SNAPSHOT_FILES:
                    continue
                if path.endswith(POLLED):
                    yield from self._polled(path, stat.st_size, source, since_ms)
                else:
                    yield from self._copy(path, stat, kind, source, ts)
            if times:
                self._newest[source] = times[-1]
            for path in sorted(path for path in self._offsets if path.startswith(f"snapshots/{source}/"))[:-GROW]:
                del self._offsets[path]

    def _listed(self, source: str, times: list[int], since_ms: int) -> Iterator[tuple[str, os.stat_result, int]]:
        """Yield path, status and time of files that may be new: those of new folders, and those that grow."""
        place = f"snapshots/{source}"
        grow = {int(path.split("/")[2]) for path in self._offsets if path.startswith(f"{place}/")}
        if source in self._newest:
            after = self._newest[source] - LATE_MS
            yield from self._files(place, [ts for ts in times if ts >= after or ts in grow])
            return
        yield from self._files(place, [ts for ts in times if ts >= since_ms])
        valid: set[str] = set()  # the last file of each name before the window
        for ts in reversed([ts for ts in times if ts < since_ms]):
            for path, stat, _ in self._files(place, [ts]):
                name = path.rsplit("/", 1)[-1]
                if name not in valid:
                    valid.add(name)
                    yield path, stat, ts
            if len(valid) >= MOST_NAMES:
                break

    def _files(self, place: str, times: Iterable[int]) -> Iterator[tuple[str, os.stat_result, int]]:
        for ts in times:
            try:
                with os.scandir(f"{self.recording}/{place}/{ts}") as entries:
                    every = sorted((e.name, e.stat(follow_symlinks=self.follow_links)) for e in entries)
            except OSError:
                continue
            yield from ((f"{place}/{ts}/{name}", found, ts) for name, found in every if S_ISREG(found.st_mode))

    def _polled(self, path: str, size: int, source: str, since_ms: int) -> Iterator[Part]:
        full = f"{self.recording}/{path}"
        offsets = self._offsets.setdefault(path, _Offsets(GrowingFile(full, self._root)))
        if offsets.file.is_unread:
            offsets.table = None
        written: list[Line] = []
        for data in self._appended(offsets.file, size):
            for line in _records(data):
                offsets.apply(line)
                if offsets.table is None or line["ts"] < since_ms:
                    continue
                written.append(line if written else {"ts": line["ts"], "offsetTable": _copy_of(offsets.table)})
        if written:
            ts = int(written[0]["ts"])
            lines = b"".join(json.dumps(line, separators=(",", ":")).encode() + b"\n" for line in written)
            to = f"snapshots/{source}/{ts}/{POLLED[1]}"
            yield self._write(to, lines, "consumer_offset", int(written[-1]["ts"]), source, ts)

    def _appended(self, growing: GrowingFile, size: int) -> Iterator[bytes]:
        try:
            for data in growing.appended(size):
                self.bytes_read += len(data)
                self.lines += data.count(b"\n")
                yield data
        except OSError as error:
            self.say(f"{growing.path} cannot be read: {error.strerror}; the next round tries again")

    def _copy(self, path: str, stat: os.stat_result, kind: str, source: str | None, until_ms: int) -> Iterator[Part]:
        if self._copied.get(path) == (stat.st_size, stat.st_mtime_ns):
            return
        self._copied[path] = stat.st_size, stat.st_mtime_ns
        to = self.folder / path
        to.parent.mkdir(parents=True, exist_ok=True)
        try:
            with open_recorded(f"{self.recording}/{path}", self._root) as recorded, open_own(to) as copy:
                shutil.copyfileobj(recorded, copy)
        except OSError as error:
            self.say(f"{self.recording}/{path} cannot be read: {error.strerror}; it is left out")
            return
        self.bytes_read += stat.st_size
        sha256 = file_sha256(str(to), None)
        ts = until_ms if source is not None else None
        yield Part((RecordedFile(str(self.folder), path, kind, stat.st_size, source, ts), sha256), until_ms)

    def _write(
        self, path: str, data: bytes, kind: str, until_ms: int, source: str | None = None, ts_ms: int | None = None
    ) -> Part:
        to = self.folder / path
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_bytes(data)
        file = RecordedFile(str(self.folder), path, kind, len(data), source, ts_ms)
        return Part((file, hashlib.sha256(data).hexdigest()), until_ms)

    @property
    def _root(self) -> str | None:
        return None if self.follow_links else self.recording


def _since(data: Iterable[bytes], time: str | None, since_ms: int) -> Iterator[bytes]:
    """Yield the lines from then on; all of them without the name of their ``time``."""
    for piece in data:
        if time is None:
            yield piece
            continue
        for line in piece.splitlines(keepends=True):
            try:
                ts = json.loads(line)[time]
            except (ValueError, KeyError, TypeError):
                ts = None  # ingest refuses it
            if not isinstance(ts, int) or ts >= since_ms:
                yield line


def _records(data: bytes) -> Iterator[Line]:
    for text in data.splitlines():
        try:
            line = json.loads(text)
        except ValueError:
            continue  # the nightly run reports it
        if isinstance(line, dict) and isinstance(line.get("ts"), int):
            yield line


def _copy_of(table: dict[str, dict[str, int]]) -> dict[str, dict[str, int]]:
    return {key: dict(queues) for key, queues in table.items()}


def _epoch(path: str) -> int:
    """Return the epoch ms of a copied file's folder; of brokers.json a time that never passes."""
    parts = path.split("/")
    return int(parts[2]) if len(parts) == 4 else 2**63
