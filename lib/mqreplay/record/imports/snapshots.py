"""Byte-exact copies of brokers' files in the layout of a recording: snapshots/<broker>-<id>/<epoch_ms>/."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from mqreplay.decode.consumer_offset import decode_consumer_offset
from mqreplay.decode.delay_offset import decode_delay_offset
from mqreplay.decode.message_request_mode import decode_message_request_mode
from mqreplay.decode.pop_order import decode_pop_order
from mqreplay.decode.subscription_group import decode_subscription_group
from mqreplay.decode.topics import decode_topics
from mqreplay.errors import DecodeError
from mqreplay.record.imports.broker_names import BrokerNames, Named, own_name_of
from mqreplay.record.imports.evidence import UNREADABLE, Evidence, why_unreadable
from mqreplay.record.imports.layout import CLIENT_OFFSETS, OFFSET_LINES, OFFSET_LINES_NAME, SNAPSHOT, Place
from mqreplay.record.imports.name_times import BY_CHANGE, Dated, dated
from mqreplay.record.imports.sources import Source
from mqreplay.record.imports.staging import RecordingWriter

LONGEST_NAME: Final = 255  # bytes, of Linux's file systems
_TOPICS_READ: Final = 3  # bytes of topics.json that are read to find the broker's own topic
_FOREIGN: Final = frozenset({"foreign"})
OFFSETS: Final = "consumerOffset.json"
NO_BROKER: Final = (
    "its broker is unknown; give --broker NAME-ID if all such files are of one broker, or put them into "
    "a folder NAME-ID, such as broker-a-0, or add the outputs of mqadmin clusterList and getBrokerConfig"
)
NO_TIME: Final = "its time is unknown; name its folder by the output of `date +%s`"


class _File(NamedTuple):
    marker: bytes
    decode: Callable[[bytes], object]


_FILES: Final = {
    "consumerOffset.json": _File(b'"offsetTable"', decode_consumer_offset),
    "topics.json": _File(b'"topicConfigTable"', decode_topics),
    "subscriptionGroup.json": _File(b'"subscriptionGroupTable"', decode_subscription_group),
    "messageRequestMode.json": _File(b'"messageRequestModeMap"', decode_message_request_mode),
    "consumerOrderInfo.json": _File(b'"table"', decode_pop_order),
    "delayOffset.json": _File(b'"offsetTable"', decode_delay_offset),
}


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

    names: BrokerNames
    configs: dict[str, tuple[str, int]]
    evidence: Evidence
    writer: RecordingWriter
    copied: dict[str, Copied] = field(default_factory=lambda: defaultdict(Copied))
    unconfirmed: set[str] = field(default_factory=set)
    _written: dict[str, str] = field(default_factory=dict)  # digest by path

    def learn_names(self) -> None:
        """Add the names of brokers from their own topics in topics.json."""
        read: Counter[str] = Counter()
        for source, place in self.evidence.by_kind[SNAPSHOT]:
            above = source.folder.rpartition("/")[0]
            if place.name == "topics.json" and read[above] < _TOPICS_READ:
                read[above] += 1
                if (name := self._own_name(source)) is not None:
                    self.names.add_name(name)

    def write_all(self) -> None:
        """Write all copies; equal content of the same time once."""
        beside = {
            (source.folder, place.name, place.broker_hints): dated(place.time, source.modified_ms)
            for source, place in self.evidence.by_kind[SNAPSHOT]
            if not place.is_bak
        }
        own_topics = {s.folder: s for s, p in self.evidence.by_kind[SNAPSHOT] if p.name == "topics.json"}
        for source, place in self.evidence.by_kind[SNAPSHOT]:
            when = dated(place.time, source.modified_ms)
            main = beside.get((source.folder, place.name.removesuffix(".bak"), place.broker_hints))
            if place.is_bak and when is not None and when.how == BY_CHANGE and main is not None:
                when = main  # a .bak was copied together with its file
            named = self.broker_of(source, place, own_topics.get(source.folder))
            if named is None:
                self.evidence.refuse(source, NO_BROKER)
            elif when is None:
                self.evidence.refuse(source, NO_TIME)
            else:
                self._write(source, place, named.key, when, named.how)
                if not named.confirmed:
                    self.unconfirmed.add(named.key)
        for source, place in self.evidence.by_kind[CLIENT_OFFSETS]:
            when = dated(place.time, source.modified_ms)
            if when is None:
                self.evidence.refuse(source, NO_TIME)
            else:
                self._write(source, place, f"client-{place.owner}", when, "its folder")
        for source, place in self.evidence.by_kind[OFFSET_LINES]:
            self._take_offset_lines(source, place)

    def broker_of(self, source: Source, place: Place, topics: Source | None = None) -> Named | None:
        """Return the broker of a file: a recording's folder, a configuration beside it, or its path."""
        parts = source.parts
        if len(parts) >= 4 and parts[-4] == "snapshots":
            named = self.names.find([parts[-3]], in_recording=True)
            if named is not None:
                return named
        if (config := config_of(source.folder, self.configs)) is not None:
            return Named(*config, "the broker's configuration beside it", True)
        own = None if topics is None or _is_named(self.names.find(place.broker_hints)) else self._own_name(topics)
        return self.names.find(place.broker_hints, own_name=own)

    def _own_name(self, topics: Source) -> str | None:
        try:
            return own_name_of(topics.read())
        except UNREADABLE:
            return None

    def _write(self, source: Source, place: Place, folder: str, when: Dated, named: str) -> None:
        if "/" in folder or not folder.isprintable() or not 0 < len(folder.encode()) <= LONGEST_NAME:
            self.evidence.refuse(source, "its broker's name cannot be a folder name")
            return
        try:
            data = source.read()
        except UNREADABLE as error:
            self.evidence.refuse(source, why_unreadable(error))
            return
        if (why := _why_foreign(place.name, data)) is not None:
            self.evidence.refuse(source, why)
            return
        path = f"snapshots/{folder}/{when.ms}/{place.name}"
        digest = hashlib.sha256(data).hexdigest()
        if (known := self._written.get(path)) is not None:
            if known == digest:
                self.evidence.repeated += 1
            else:
                self.evidence.refuse(
                    source, "another copy of it has this time and other content; put the time into its name"
                )
            return
        self.writer.write(path, data)
        self._written[path] = digest
        self.copied[folder].count(place.name, when, named)

    def _take_offset_lines(self, source: Source, place: Place) -> None:
        parts = source.parts
        named = self.names.find([parts[-3]], in_recording=True) if len(parts) >= 3 else None
        when = dated(place.time, None)
        if named is None or when is None:
            self.evidence.refuse(source, "it is not in a folder snapshots/<broker>-<id>/<epoch_ms>")
            return
        path = f"snapshots/{named.key}/{when.ms}/{OFFSET_LINES_NAME}"
        if path in self._written:
            self.evidence.refuse(source, "another recording has the same file; import the recordings one by one")
            return
        try:
            self.writer.copy(source, path)
        except DecodeError as error:
            self.evidence.refuse(source, error.detail)
            return
        self._written[path] = ""
        self.copied[named.key].count(OFFSET_LINES_NAME, when, named.how)


def config_of(folder: str, configs: dict[str, tuple[str, int]]) -> tuple[str, int] | None:
    """Return the broker whose configuration is in the folder, in its conf/, or in the nearest folder above.

    >>> config_of("night/h1/store/config", {"night/h1/conf": ("broker-a", 0)})
    ('broker-a', 0)
    """
    while folder:
        for at in (folder, f"{folder}/conf"):
            if at in configs:
                return configs[at]
        folder = folder.rpartition("/")[0]
    return None


def _is_named(named: Named | None) -> bool:
    return named is not None and named.confirmed


def _why_foreign(name: str, data: bytes) -> str | None:
    """Return why the content of a file does not match its name; None for a torn file, which is evidence too."""
    kind = _FILES.get(name.removesuffix(".bak"))
    if kind is None or kind.marker in data or not data.strip():
        return None
    try:
        kind.decode(data)
    except DecodeError as error:
        return f"its content does not match its name ({error.detail})" if error.code in _FOREIGN else None
    return None
