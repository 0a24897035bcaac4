"""The files that hold lines of RocketMQ's logs, by their content; and the process that wrote each line.

One process writes one log, rotated into several files. A file may hold several logs: of a container, of several pods,
of an application with a client in it.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from mqreplay.decode.logs import broker_facts
from mqreplay.decode.logs.line_time import STATED, written_epoch_ms
from mqreplay.decode.logs.log_line import (
    BROKER_LINES,
    CONTROLLER_LINES,
    LOCK_LINES,
    LOGS,
    REMOTING_LINES,
    STATS_LINES,
    STORE_LINES,
    LogLine,
)
from mqreplay.importer.files.layout import base_name
from mqreplay.importer.files.sources import Source
from mqreplay.importer.logs.line_count import OTHER, LineCount
from mqreplay.importer.logs.log_text import log_lines

# Any line of these shows that a process ran that other evidence names; a controller is none of them.
WRITTEN_ALWAYS: Final = frozenset(LOGS) - {STORE_LINES, REMOTING_LINES, CONTROLLER_LINES}
OF_BROKER: Final = frozenset(
    {BROKER_LINES, LOCK_LINES, STATS_LINES, STORE_LINES, REMOTING_LINES}
)  # logs that one broker writes
OTHER_DAYS: Final = ("otherdays", "other_days")  # folders of rotated files in RocketMQ's logback settings
_OVERLAP_MS: Final = 2_000  # rotated files follow each other; asynchronous appenders write a little later
_FEW_WRITERS: Final = 2
_KEPT: Final = 100_000  # lines of all files
_WRITTEN: Final = 10_000  # pairs of one log; they show a zone, and when it changes


class Writer(NamedTuple):
    """Which log of RocketMQ lines are of, and the container, pod or unit that wrote them (None: not named)."""

    log: str
    name: str | None


@dataclass
class WriterLines:
    """The lines of one writer in one file, by their own clock (see Clock.wall_ms)."""

    source: Source
    writer: Writer
    facts: int = 0
    setting_lines: int = 0
    spans: dict[str, tuple[int, int]] = field(default_factory=dict)  # first and last wall_ms by layout
    written: dict[str, list[tuple[int, int]]] = field(default_factory=dict)  # (wall_ms, epoch ms in it) by layout
    kept: list[LogLine] | None = None  # its lines, if many wrote into the file: it is not read again for each
    alone: bool = True  # no other process wrote lines under this name into the file
    settings: dict[str, str] = field(default_factory=dict)  # that a broker logged at its start
    broker_names: set[str] = field(default_factory=set)
    has_events: bool = False  # lines that count without the id of the broker
    has_refusals: bool = False  # lines that count without its name, too
    registered_ids: set[int] = field(default_factory=set)  # of a broker at name servers

    @property
    def first_ms(self) -> int:
        """Return the time of its first line."""
        return min(first for first, _ in self.spans.values())

    @property
    def last_ms(self) -> int:
        """Return the time of its last line."""
        return max(last for _, last in self.spans.values())

    @property
    def is_only_settings(self) -> bool:
        """Return whether it has settings, and none of them names a broker."""
        return self.facts == self.setting_lines and "brokerName" not in self.settings

    def is_own(self, line: LogLine) -> bool:
        """Return whether the writer wrote a line: one with a fact, and where no other process wrote, any."""
        own = line.log == self.writer.log or (self.alone and line.log is None)
        return own and line.wrapping.name == self.writer.name

    def add(self, line: LogLine) -> None:
        """Add a line of this writer, with a fact or without."""
        clock = line.clock
        first, last = self.spans.get(clock.layout, (clock.wall_ms, clock.wall_ms))
        self.spans[clock.layout] = min(first, clock.wall_ms), max(last, clock.wall_ms)
        epoch_ms = None if clock.layout == STATED else written_epoch_ms(line.message) or line.wrapping.epoch_ms
        if epoch_ms is not None and len(pairs := self.written.setdefault(clock.layout, [])) < _WRITTEN:
            pairs.append((clock.wall_ms, epoch_ms))
        match line.fact:
            case broker_facts.Setting(name, value):
                self.settings.setdefault(name, value)
                self.broker_names |= {value} if name == "brokerName" else set()
                self.setting_lines += 1
            case broker_facts.Booted(broker_name, addr):
                self.broker_names.add(broker_name)
                self.settings |= {"brokerName": broker_name, "addr": addr}
            case broker_facts.Registered(broker_id):
                self.registered_ids.add(broker_id)
            case broker_facts.RoleBegun(_, broker_name):
                self.broker_names.add(broker_name)
                self.has_events = True
            case broker_facts.PullRefused():
                self.has_refusals = True
            case broker_facts.StartFailed() | broker_facts.TopicCreated() | broker_facts.TopicDeleted():
                self.has_events = True
            case _:
                pass
        self.facts += line.fact is not None

    def take(self, rest: WriterLines) -> None:
        """Add the times of lines without a fact."""
        for layout, (first, last) in rest.spans.items():
            known = self.spans.get(layout, (first, last))
            self.spans[layout] = min(first, known[0]), max(last, known[1])
        for layout, pairs in rest.written.items():
            self.written[layout] = sorted(self.written.get(layout, []) + pairs)


@dataclass
class Process:
    """One log of one process, its files the oldest first."""

    writer: Writer
    folder: str
    name: str  # for the user
    parts: list[WriterLines]

    @property
    def log(self) -> str:
        """Return which log of RocketMQ it is."""
        return self.writer.log

    @property
    def digest(self) -> str:
        """Return what tells the process from others in a recording, without its path."""
        return hashlib.sha256(self.name.encode()).hexdigest()[:16]

    @property
    def layouts(self) -> list[str]:
        """Return the layouts of its lines."""
        return sorted({layout for part in self.parts for layout in part.spans})

    def span(self, layout: str) -> tuple[int, int]:
        """Return the first and the last time of its lines of a layout."""
        spans = [part.spans[layout] for part in self.parts if layout in part.spans]
        return min(first for first, _ in spans), max(last for _, last in spans)

    def written(self, layout: str) -> list[tuple[int, int]]:
        """Return (wall_ms, epoch ms) of its lines that contain the epoch time, in order."""
        return [each for part in self.parts for each in part.written.get(layout, [])]

    @property
    def folders(self) -> list[str]:
        """Return its folder and those of its rotated files."""
        return [self.folder, *sorted({part.source.folder for part in self.parts} - {self.folder})]

    @property
    def settings(self) -> dict[str, str]:
        """Return the settings that a broker logged at its start, and its address as addr."""
        return {name: value for part in self.parts for name, value in part.settings.items()}

    @property
    def broker_names(self) -> set[str]:
        """Return the names of all brokers that wrote lines."""
        return {name for part in self.parts for name in part.broker_names}

    @property
    def has_events(self) -> bool:
        """Return whether it has lines that count without the id of the broker."""
        return any(part.has_events for part in self.parts)

    @property
    def has_refusals(self) -> bool:
        """Return whether it has lines that count without the name of the broker."""
        return any(part.has_refusals for part in self.parts)

    @property
    def registered_id(self) -> int | None:
        """Return the id with which a broker registered; None also if there are several."""
        ids = {broker_id for part in self.parts for broker_id in part.registered_ids}
        return ids.pop() if len(ids) == 1 else None

    def lines(self) -> Iterator[LogLine]:
        """Yield its lines: those with a fact, and where no other process wrote, all that have a time."""
        for part in self.parts:
            lines = log_lines(part.source, LineCount()) if part.kept is None else part.kept
            yield from filter(part.is_own, lines)


@dataclass
class LogScan:
    """All processes that wrote lines, what was counted, and the files without a fact, each with its own count."""

    processes: list[Process] = field(default_factory=list)
    lines: LineCount = field(default_factory=LineCount)
    troubles: list[tuple[Source, str]] = field(default_factory=list)
    without: list[tuple[Source, LineCount]] = field(default_factory=list)
    repeated: set[str] = field(default_factory=set)  # paths of files with the content of another one
    read: set[str] = field(default_factory=set)  # paths of files with facts


def scan_logs(sources: Sequence[Source]) -> LogScan:
    """Read all files once, and return the processes that wrote them."""
    scan = LogScan()
    seen: set[str] = set()
    most_kept = _KEPT
    groups: dict[tuple[Writer, str, str], list[WriterLines]] = defaultdict(list)
    for source in sources:
        count = LineCount()
        digest = hashlib.sha256()
        parts = _lines_of_writers(source, count, digest, most_kept)
        most_kept -= sum(len(part.kept) for part in parts.values() if part.kept is not None)
        if count.trouble is not None and count.read:
            scan.troubles.append((source, count.trouble))
        if not parts:
            scan.without.append((source, count))
            continue
        if (key := digest.hexdigest()) in seen:
            scan.repeated.add(source.path)
            continue
        seen.add(key)
        scan.read.add(source.path)
        count.drop_warnings()
        scan.lines.add(count)
        for writer, part in parts.items():
            groups[writer, _home(source.folder), base_name(source.path)].append(part)
    for (writer, folder, base), of_group in sorted(groups.items(), key=lambda group: _sorted_key(group[0])):
        for parts_of_one in _files_by_process(sorted(of_group, key=lambda part: (part.first_ms, part.last_ms))):
            named = parts_of_one[0].source.path if len(parts_of_one) == 1 else f"{folder}/{base}".lstrip("/")
            name = named if writer.name is None else f"{named} ({writer.name})"
            scan.processes.append(Process(writer, folder, name, parts_of_one))
    return scan


def _sorted_key(key: tuple[Writer, str, str]) -> tuple[str, ...]:
    (log, name), folder, base = key
    return log, folder, base, name or ""


def _home(folder: str) -> str:
    above, _, name = folder.rpartition("/")
    return above if name in OTHER_DAYS else folder


def _lines_of_writers(
    source: Source, count: LineCount, digest: hashlib._Hash, most_kept: int
) -> dict[Writer, WriterLines]:
    """Return what each writer wrote into a file. A line without a fact is of the only log that its writer has.

    Of a file with many writers and less than ``most_kept`` lines, the lines are kept.
    """
    parts: dict[Writer, WriterLines] = {}
    plain: dict[str | None, WriterLines] = {}
    kept: list[LogLine] = []
    for line in log_lines(source, count, digest):
        if len(kept) < most_kept:
            kept.append(line)
        name = line.wrapping.name
        if line.log is None:
            plain.setdefault(name, WriterLines(source, Writer("", name))).add(line)
        else:
            writer = Writer(line.log, name)
            parts.setdefault(writer, WriterLines(source, writer)).add(line)
    for writer in [writer for writer, part in parts.items() if writer.log == BROKER_LINES and part.is_only_settings]:
        # A name server, too, writes its listenPort.
        count.give_up(parts.pop(writer).facts, OTHER)
    if not parts and (log := base_name(source.path).partition(".")[0]) in WRITTEN_ALWAYS:
        # Lines without a fact show when the process ran; only the name says which process it was.
        return {Writer(log, name): replace(rest, writer=Writer(log, name)) for name, rest in plain.items()}
    logs_of: dict[str | None, set[str]] = defaultdict(set)
    for writer in parts:
        logs_of[writer.name].add(writer.log)
    for writer, part in parts.items():
        logs = logs_of[writer.name]
        part.alone = len(logs - OF_BROKER) + bool(logs & OF_BROKER) == 1
        if part.alone and (rest := plain.get(writer.name)) is not None:
            part.take(rest)
    if len(parts) > _FEW_WRITERS and len(kept) < most_kept:
        _keep(parts, kept)
    return parts


def _keep(parts: Mapping[Writer, WriterLines], lines: Iterable[LogLine]) -> None:
    """Give each writer its lines."""
    of_name: dict[str | None, list[WriterLines]] = defaultdict(list)
    for writer, part in parts.items():
        part.kept = []
        of_name[writer.name].append(part)
    for line in lines:
        for part in of_name[line.wrapping.name]:
            if part.kept is not None and part.is_own(line):
                part.kept.append(line)


def _files_by_process(parts: Sequence[WriterLines]) -> Iterator[list[WriterLines]]:
    """Yield the files of each process: rotated files follow each other, those of two processes overlap in time."""
    chains: list[list[WriterLines]] = []
    for part in parts:
        fitting = next((chain for chain in chains if part.first_ms >= chain[-1].last_ms - _OVERLAP_MS), None)
        if fitting is None:
            chains.append([part])
        else:
            fitting.append(part)
    yield from chains
