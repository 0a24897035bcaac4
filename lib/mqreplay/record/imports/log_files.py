"""Log files by name and process: one process writes one log, rotated into several files."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from mqreplay.decode.logs.line_time import LOCAL, MAX_LINE_BYTES, LogLine, read_line, text_of_line, written_epoch_ms
from mqreplay.errors import DecodeError
from mqreplay.record.imports.sources import Source

CLIENT, BROKER, LOCK, STATS, NAMESRV = "rocketmq_client", "broker", "lock", "stats", "namesrv"
# rocketmq_client.log.1, rocketmq_client-1.log.gz, broker.3.log.gz, broker-2026-11-21.1.log, broker.log.2026-11-21.gz
_NAME: Final = re.compile(
    rf"({CLIENT}|{BROKER}|{LOCK}|{STATS}|{NAMESRV})(?:[._-]\d[\d._-]*)?\.log(?:[._-]\d[\d._-]*)?(?:\.(?:gz|bz2|xz))?"
)
_OTHER_DAYS: Final = ("otherdays", "other_days")  # folders of rotated files in RocketMQ's logback settings


def log_of(path: str) -> str | None:
    """Return which log of RocketMQ a file is, by its name; None for any other file.

    >>> log_of("logs/otherdays/broker.3.log.gz"), log_of("logs/store.log")
    ('broker', None)
    """
    match = _NAME.fullmatch(path.rpartition("/")[2])
    return match[1] if match else None


def is_log(path: str) -> bool:
    """Return whether a file is, by its name, a log that can be imported."""
    return log_of(path) is not None


@dataclass
class ScannedFile:
    """A log file and the facts of its first reading; times by its own clock (see LogLine.wall_ms)."""

    source: Source
    lines: int = 0
    first_ms: int | None = None
    last_ms: int = 0
    layout: str = ""
    written: list[tuple[int, int]] = field(default_factory=list)  # (wall_ms, epoch ms in the same line)
    left_out: Counter[str] = field(default_factory=Counter)
    trouble: str | None = None  # why it could not be read to its end


@dataclass
class Process:
    """The files of one log of one process, the oldest first."""

    log: str
    folder: str
    files: list[ScannedFile]

    @property
    def first_ms(self) -> int:
        """Return the time of its first line."""
        return min(one.first_ms for one in self.files if one.first_ms is not None)

    @property
    def last_ms(self) -> int:
        """Return the time of its last line."""
        return max(one.last_ms for one in self.files)

    @property
    def layout(self) -> str:
        """Return LOCAL if any file has it, else FIXED_ZONE."""
        return LOCAL if any(one.layout == LOCAL for one in self.files) else self.files[0].layout

    @property
    def written(self) -> list[tuple[int, int]]:
        """Return the lines in which RocketMQ wrote the epoch time, in order."""
        return [each for one in self.files for each in one.written]

    @property
    def name(self) -> str:
        """Return the path of the log for the user."""
        return f"{self.folder}/{self.log}.log" if self.folder else f"{self.log}.log"

    @property
    def folders(self) -> list[str]:
        """Return its folder and those of its rotated files."""
        return [self.folder, *sorted({one.source.folder for one in self.files} - {self.folder})]

    def lines(self, left_out: Counter[str]) -> Iterator[LogLine]:
        """Yield the lines of all its files that have a head. Unreadable lines are counted."""
        for one in self.files:
            yield from _log_lines(ScannedFile(one.source), left_out)


def processes(sources: Sequence[Source]) -> tuple[list[Process], list[ScannedFile]]:
    """Return the processes that wrote the logs, and the files without a log line."""
    of_process: dict[tuple[str, str], list[ScannedFile]] = {}
    empty = []
    for source in sources:
        log = log_of(source.path)
        if log is None:
            continue
        scanned = _scan(source)
        if scanned.first_ms is None:
            empty.append(scanned)
        else:
            of_process.setdefault((log, _home(source.folder)), []).append(scanned)
    found = []
    for (log, folder), files in sorted(of_process.items()):
        found.append(Process(log, folder, sorted(files, key=lambda one: (one.first_ms or 0, one.last_ms))))
    return found, empty


def _home(folder: str) -> str:
    above, _, name = folder.rpartition("/")
    return above if name in _OTHER_DAYS else folder


def _scan(source: Source) -> ScannedFile:
    scanned = ScannedFile(source)
    for line in _log_lines(scanned, scanned.left_out):
        if scanned.first_ms is None:
            scanned.first_ms, scanned.layout = line.wall_ms, line.layout
        scanned.last_ms = max(scanned.last_ms, line.wall_ms)
        epoch_ms = written_epoch_ms(line.message)
        if epoch_ms is not None:
            scanned.written.append((line.wall_ms, epoch_ms))
    return scanned


def _log_lines(scanned: ScannedFile, left_out: Counter[str]) -> Iterator[LogLine]:
    for raw in _raw_lines(scanned):
        scanned.lines += 1
        try:
            line = read_line(text_of_line(raw))
        except DecodeError as error:
            left_out[f"damaged lines ({error.code})"] += 1
            continue
        if line is not None:
            yield line


def _raw_lines(scanned: ScannedFile) -> Iterator[bytes]:
    """Yield the lines of a file; only the first bytes of an overlong line."""
    try:
        with scanned.source.open() as stream:
            while line := stream.readline(MAX_LINE_BYTES + 1):
                whole = line.endswith(b"\n") or len(line) <= MAX_LINE_BYTES
                yield line
                while not whole:
                    rest = stream.readline(MAX_LINE_BYTES + 1)
                    whole = rest.endswith(b"\n") or not rest
    except EOFError:
        scanned.trouble = "it is cut short; the lines before the cut were read"
    except DecodeError as error:
        scanned.trouble = error.detail
