"""Byte-exact copies of brokers' files in the layout of a recording: snapshots/<broker>-<id>/<epoch_ms>/."""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from mqreplay.decode.consumer_offset import FILE_NAME, FILE_NAMES, LMQ_FILE_NAME
from mqreplay.importer.brokers.broker_names import Named
from mqreplay.importer.files.imported_files import UNREADABLE, ImportedFiles, why_unreadable
from mqreplay.importer.files.layout import CLIENT_OFFSETS, OFFSET_LINES, OFFSET_LINES_NAME, SNAPSHOT, Place
from mqreplay.importer.files.sources import Source
from mqreplay.importer.staging import RecordingWriter
from mqreplay.importer.stores.copy_brokers import CopyBrokers
from mqreplay.importer.stores.copy_check import CopyCheck
from mqreplay.importer.times.name_times import BY_CHANGE, Dated, dated
from mqreplay.recorder.recording_folder import LONGEST_NAME
from mqreplay.words.errors import DecodeError

_BESIDE_MS: Final = 60_000  # copies of one round; a broker writes its file of offsets every 5 s
NO_TIME: Final = "its time is unknown; name its folder by the output of `date +%s`"
OF_LMQ: Final = (
    f"{LMQ_FILE_NAME} is beside it: a broker with enableLmq=true reads and writes only that file, and this one is old; "
    f"if enableLmq is off now, import without {LMQ_FILE_NAME}"
)


class _Named(NamedTuple):
    """A copy with its broker (or why it is unknown) and its time."""

    source: Source
    place: Place
    broker: Named | str
    when: Dated | None

    @property
    def file_name(self) -> str:
        return self.place.name.removesuffix(".bak")


@dataclass
class Copied:
    """The copies of one broker or client: number of files by name, first and last instant (epoch ms)."""

    files: Counter[str] = field(default_factory=Counter)
    first_ms: int = 0
    last_ms: int = 0
    assumed: list[int] = field(default_factory=list)  # first and last instant of paths with an assumed zone
    known: list[int] = field(default_factory=list)  # of paths with a known zone
    dated_by: Counter[str] = field(default_factory=Counter)
    named_by: Counter[str] = field(default_factory=Counter)

    @property
    def offsets(self) -> int:
        """Return the number of copies of the file of consumer offsets; a .bak is read where its file is missing."""
        return max(self.files[name] + self.files[f"{name}.bak"] for name in FILE_NAMES)

    def count(self, name: str, when: Dated, named: str) -> None:
        """Count a copy."""
        self.files[name] += 1
        self.first_ms = min(self.first_ms or when.ms, when.ms)
        self.last_ms = max(self.last_ms, when.ms)
        self.dated_by[when.how] += 1
        self.named_by[named] += 1
        if when.how == BY_CHANGE:
            return
        span = self.assumed if when.zone_assumed else self.known
        span[:] = [min([when.ms, *span]), max([when.ms, *span])]


@dataclass
class Snapshots:
    """A writer of copies. ``copied`` counts them by folder name."""

    brokers: CopyBrokers
    imported: ImportedFiles
    writer: RecordingWriter
    copied: dict[str, Copied] = field(default_factory=lambda: defaultdict(Copied))
    unconfirmed: set[str] = field(default_factory=set)
    check: CopyCheck = field(default_factory=CopyCheck)
    _written: dict[str, str] = field(default_factory=dict)  # digest by path

    def write_all(self) -> None:
        """Write all copies; equal content of the same time once."""
        copies = list(self._named())
        of_lmq: dict[str, list[int]] = defaultdict(list)
        for copy in copies:
            if copy.file_name == LMQ_FILE_NAME and isinstance(copy.broker, Named) and copy.when is not None:
                of_lmq[copy.broker.key].append(copy.when.ms)
        for times in of_lmq.values():
            times.sort()
        for copy in copies:
            if isinstance(copy.broker, str):
                self.imported.refuse(copy.source, copy.broker)
            elif copy.when is None:
                self.imported.refuse(copy.source, NO_TIME)
            elif copy.file_name == FILE_NAME and _is_near(copy.when.ms, of_lmq.get(copy.broker.key, ())):
                self.imported.refuse(copy.source, OF_LMQ)
            else:
                self._write(copy.source, copy.place, copy.broker.key, copy.when, copy.broker.how)
                if not copy.broker.confirmed:
                    self.unconfirmed.add(copy.broker.key)
        for source, place in self.imported.by_kind[CLIENT_OFFSETS]:
            when = dated(place.time, source.modified_ms)
            if when is None:
                self.imported.refuse(source, NO_TIME)
            else:
                self._write(source, place, f"client-{place.owner}", when, "its folder")
        for source, place in self.imported.by_kind[OFFSET_LINES]:
            self._take_offset_lines(source, place)

    def _named(self) -> Iterator[_Named]:
        """Yield the copies of brokers' files, each with its broker and time."""
        found = self.imported.by_kind[SNAPSHOT]
        beside = {
            (source.folder, place.name, place.broker_hints): dated(place.time, source.modified_ms)
            for source, place in found
            if not place.is_bak
        }
        for source, place in found:
            when = dated(place.time, source.modified_ms)
            name = place.name.removesuffix(".bak")
            # A .bak was copied together with its file, and an old consumerOffset.json with that of an LMQ broker.
            of_main = beside.get((source.folder, LMQ_FILE_NAME if name == FILE_NAME else name, place.broker_hints))
            of_main = of_main or (beside.get((source.folder, name, place.broker_hints)) if place.is_bak else None)
            if when is not None and when.how == BY_CHANGE and of_main is not None:
                when = of_main
            yield _Named(source, place, self.brokers.broker_of(source, place), when)

    def _write(self, source: Source, place: Place, folder: str, when: Dated, named: str) -> None:
        if "/" in folder or not folder.isprintable() or not 0 < len(folder.encode()) <= LONGEST_NAME:
            self.imported.refuse(source, "its broker's name cannot be a folder name")
            return
        try:
            data = source.read()
        except UNREADABLE as error:
            self.imported.refuse(source, why_unreadable(error))
            return
        path = f"snapshots/{folder}/{when.ms}/{place.name}"
        digest = hashlib.sha256(data).hexdigest()
        if (known := self._written.get(path)) is not None:
            if known == digest:
                self.imported.repeated += 1
            else:
                self.imported.refuse(
                    source, "another copy of it has this time and other content; put the time into its name"
                )
            return
        if (why := self.check.add(folder, when.ms, place.name, source.path, data)) is not None:
            self.imported.refuse(source, why)
            return
        self.writer.write(path, data)
        self._written[path] = digest
        self.copied[folder].count(place.name, when, named)

    def _take_offset_lines(self, source: Source, place: Place) -> None:
        parts = source.parts
        named = self.brokers.names.find([parts[-3]], in_recording=True) if len(parts) >= 3 else None
        when = dated(place.time, None)
        if named is None or when is None:
            self.imported.refuse(source, "it is not in a folder snapshots/<broker>-<id>/<epoch_ms>")
            return
        path = f"snapshots/{named.key}/{when.ms}/{OFFSET_LINES_NAME}"
        if path in self._written:
            self.imported.refuse(source, "another recording has the same file; import the recordings one by one")
            return
        try:
            self.writer.copy(source, path)
        except DecodeError as error:
            self.imported.refuse(source, error.detail)
            return
        self._written[path] = ""
        self.copied[named.key].count(OFFSET_LINES_NAME, when, named.how)


def _is_near(ms: int, others: Sequence[int]) -> bool:
    """Return whether a time is near one of ``others``, which are sorted."""
    at = bisect_left(others, ms - _BESIDE_MS)
    return at < len(others) and others[at] <= ms + _BESIDE_MS
