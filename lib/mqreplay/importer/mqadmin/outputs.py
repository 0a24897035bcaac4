"""The text that mqadmin prints, split into one output for each command.

Pure. A file may hold one output or many, with or without command lines and dates between them.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from mqreplay.decode.logs.wrapping import ESCAPE
from mqreplay.importer.mqadmin.commands import CONTINUES, command_of, header_of
from mqreplay.importer.times.date_lines import LineDate, date_of_line, is_clock, not_read
from mqreplay.importer.times.name_times import times_in
from mqreplay.words.time_span import MINUTE_MS

_CONFIGURED = re.compile(r"\(born:([0-9]{13})\)")  # logback logs when it was configured: at the start of the command
_WATCHED = re.compile(r"Every [0-9.]+m?s: ")  # the first line of `watch`, which ends with the date
_WATCH_DATE = re.compile(r"[^\W\d_]+ [^\W\d_]+ +[0-9]{1,2} [0-9:]{8} [0-9]{4}$")
_TIMED_TABLES: Final = ("consumerProgress", "brokerConsumeStats")  # text follows their rows before a prompt
# Commands whose outputs begin like that of another command.
_SAME_HEADING: Final = ("resetOffsetByTimeOld", "skipAccumulatedMessage", "consumer")
_ENDS = re.compile(r"\r*\n|\r")
_ESCAPES = re.compile(ESCAPE + r"|[\x00-\x08\x0b\x0c\x0e-\x1f]")
_QUOTE = re.compile(r"(?:\s{0,3}>)+(?: |$|(?=#))")
_CELLS = re.compile(r"\s*\|(?=\s)")
_RULE = re.compile(r"\s*\|?[\s:|+-]*-{3}[\s:|+-]*\|?\s*$")
_CONTINUED: Final = ("\\", "`", "^")
_NOISE = re.compile(
    r"[0-9]{2}:[0-9]{2}:[0-9]{2},[0-9]{3} \|-(?:INFO|WARN|ERROR) |RocketMQLog:WARN|SLF4J:|OpenJDK 64-Bit Server VM|"
    r"Java HotSpot\(TM\)|Picked up \w*JAVA|WARNING: "
)
_FENCE = re.compile(r"\s*(?:```|~~~)")
_PROMPT = re.compile(
    r"(?:\(\S+\)\s+)?(?:"
    r"\[[^\]\s]*@[^\]]*\]\s*[$#%>]|"  # [root@host bin]#
    r"[\w.-]+@[\w.-]+[^$#%>]{0,80}[$#%>](?=\s|$)|"  # root@host:/opt#
    r"PS [A-Za-z]:[^>]*>|[A-Za-z]:\\[^>]*>|"
    r"(?:ba|z|k)?sh-[0-9.]+[$#]|"
    r"[~/][\w./~-]*\s[$#%](?=\s|$)|"
    r"[$%❯➜](?=\s|$)|"
    r"-?(?:ba|z|k|da)?sh: )"
)


@dataclass
class Output:
    """The output of one command.

    ``date``: the line with a date before it, or its own instant; None without one. ``line`` counts from 1.
    ``options``: those of the command line, if there is one: {"t": "orders"}. ``path_names``: parts of the file's path,
    nearest first.
    """

    command: str | None
    line: int
    date: LineDate | None = None
    date_after: LineDate | None = None  # the line with a date after it
    has_command_line: bool = False
    options: dict[str, str] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    path_names: Sequence[str] = ()

    @property
    def ts_ms(self) -> int | None:
        """Return the epoch milliseconds of its date, if that can be read."""
        return None if self.date is None else self.date.ms

    @property
    def is_empty(self) -> bool:
        """Return whether nothing follows the command line."""
        return not any(line.strip() for line in self.lines)

    @property
    def identity(self) -> tuple[object, ...]:
        """Return what two outputs of the same command have in common."""
        return self.command, tuple(sorted((name, text) for name, text in self.options.items() if name != "n"))


def outputs_of(text: str, zone: dt.tzinfo, zone_is_set: bool = False) -> list[Output]:
    """Return the outputs in a text in order; none if it is not mqadmin's.

    >>> [found] = outputs_of("$ mqadmin topicStatus -t orders -n h:9876\\n#Broker Name  #QID  #Min Offset\\n", dt.UTC)
    >>> found.command, found.options["t"], found.lines
    ('topicStatus', 'orders', ['#Broker Name  #QID  #Min Offset', ''])
    >>> outputs_of("notes of the night\\n{\\n", dt.UTC)
    []
    """
    splitter = _Splitter(zone, zone_is_set)
    for number, line in lines_of(text):
        splitter.take(number, line)
    return [output for output in splitter.all_outputs() if _is_of_mqadmin(output)]


class _Splitter:
    """The outputs before the current line, and the one that it belongs to."""

    def __init__(self, zone: dt.tzinfo, zone_is_set: bool) -> None:
        self.zone, self.zone_is_set = zone, zone_is_set
        self.found: list[Output] = []
        self.now = Output(None, 1)
        self.before: LineDate | None = None  # the date that the next output has
        self.begun = False  # the first line of the output was seen
        self.closed = False  # a prompt ended it
        self.date_is_next = False  # the line before ran `date`
        self.last_header = ""

    def take(self, number: int, line: str) -> None:
        """Take the next line."""
        date_is_next, self.date_is_next = self.date_is_next, False
        if is_noise(line):
            self._take_configuration_time(line)
            return
        if self._take_command(number, line) or self._take_date(line, date_is_next):
            return
        if is_date_command(line):
            self.date_is_next = True
        if self.begun and line.strip() == self.last_header and not self._has_rows():
            return  # the heading is printed twice
        command = header_of(line, self.now.command, self.begun)
        if command is not None and not (self.begun and command == self.now.command and command in CONTINUES):
            self._begin(command, number, line)
        elif is_prompt(line) and (self.begun or self.now.lines):
            self.now.lines.append("")
            self.closed = True
        if not self.closed:
            self.now.lines.append(line)

    def all_outputs(self) -> list[Output]:
        """Return all outputs, after the last line."""
        outputs = [output for output in (*self.found, self.now) if output.command is not None]
        if outputs and outputs[0].date is None and all(output.date_after is not None for output in outputs):
            # A loop that runs `date` after the command: each date is of the output before it.
            for output in outputs:
                output.date = output.date_after
        return outputs

    def _end(self) -> None:
        """End the output before the current line, so that its last line is a whole one."""
        self.now.lines.append("")
        self.found.append(self.now)

    def _take_configuration_time(self, line: str) -> None:
        """Use the time at which logback was configured for the output, or for the next one if this one has begun."""
        if (configured := _CONFIGURED.search(line)) is None:
            return
        date = LineDate(int(configured[1]), None, True)
        if self.begun:
            self.before = self.before or date
        elif self.now.date is None or self.now.date.ms is None:
            self.now.date = date

    def _take_command(self, number: int, line: str) -> bool:
        called = command_of(line)
        if called is None:
            return False
        self._end()
        date = self._date_beside(line, called.before) or self.before
        self.now = Output(called.name, number, date, None, True, called.options)
        self.before, self.begun, self.closed = None, False, False
        return True

    def _date_beside(self, line: str, before: str) -> LineDate | None:
        """Return the date in the line of a command: before the command, or at the end of the first line of `watch`."""
        if _WATCHED.match(line):
            found = _WATCH_DATE.search(line.rstrip())
            return None if found is None else date_of_line(found[0], self.zone, self.zone_is_set)
        words = before.rpartition(" ")[0] if before.rstrip() == before else before
        exact = [time for time in times_in(words, self.zone) if time.precision_ms <= MINUTE_MS]
        return LineDate(exact[0].ms, None, exact[0].has_zone) if len(exact) == 1 else None

    def _take_date(self, line: str, is_next: bool) -> bool:
        date = date_of_line(line, self.zone, self.zone_is_set)
        if date is not None and is_clock(line) and self.before is not None and self.before.day is not None:
            day = dt.datetime.fromtimestamp(self.before.day.ms / 1000, self.zone)
            date = date_of_line(f"{day:%Y-%m-%d} {line.strip()}", self.zone, self.zone_is_set) or date
        if date is None and is_next and line.strip() and not is_prompt(line) and header_of(line, None, False) is None:
            date = not_read(line.strip())
        if date is None or self._is_rest_of_row(line):
            return False
        self.before = date
        if (self.begun or self.now.has_command_line) and self.now.date_after is None:
            self.now.date_after = date
        return True

    def _is_rest_of_row(self, line: str) -> bool:
        """Return whether a date is the last column of the row before it, which a terminal broke.

        topicStatus prints milliseconds after a comma; after the other tables other text precedes a prompt.
        """
        if not self.begun or self.closed or not self.now.lines:
            return False
        last = self.now.lines[-1].strip()
        if not last or last == self.last_header or re.search(r"[0-9]{2}:[0-9]{2}:[0-9]{2}", last):
            return False
        is_row = re.match(r"\S+\s+\S+", last) is not None and ":" not in last
        return is_row and (
            self.now.command in _TIMED_TABLES or re.search(r":[0-9]{2},[0-9]{3}$", line.strip()) is not None
        )

    def _has_rows(self) -> bool:
        return any(line.strip() and line.strip() != self.last_header for line in self.now.lines)

    def _begin(self, command: str, number: int, line: str) -> None:
        """Begin the output of ``command`` with its first line."""
        is_other = self.now.has_command_line and command != self.now.command not in _SAME_HEADING
        if self.begun or is_other or (self.now.command is None and self.now.lines):
            date = None if self.begun or is_other else self.now.date
            self._end()
            self.now = Output(None, number, date)
        if not self.now.has_command_line:
            self.now.command = command
        if self.before is not None:
            self.now.date, self.before = self.before, None
        self.begun, self.closed, self.last_header = True, False, line.strip()


def _is_of_mqadmin(output: Output) -> bool:
    """Return whether it is an output: a brace alone may begin any text."""
    if output.has_command_line or output.command != "topicRoute":
        return True
    return any("brokerDatas" in line or "#BrokerAddrs" in line for line in output.lines[:200])


def lines_of(text: str) -> Iterator[tuple[int, str]]:
    """Yield number and text of each line; a command over several lines is one.

    >>> list(lines_of("> #Topic\\r> t  b\\r$ mqadmin topicStatus \\\\\\r> -t x"))
    [(1, '#Topic'), (2, 't  b'), (3, '$ mqadmin topicStatus  -t x')]
    """
    begun: tuple[int, str] | None = None
    for number, raw in enumerate(_ENDS.split(text), 1):
        line = _plain(raw)
        if begun is not None:
            number, line = begun[0], f"{begun[1]} {line.lstrip()}"
            begun = None
        stripped = line.rstrip()
        if stripped.endswith(_CONTINUED) and "mqadmin" in stripped.lower():
            begun = number, stripped[:-1]
            continue
        yield number, line
    if begun is not None:
        yield begun


def is_noise(line: str) -> bool:
    """Return whether a line is a message of the JVM or a logger, which may be anywhere in an output."""
    return _NOISE.match(line.lstrip()) is not None


def is_prompt(line: str) -> bool:
    """Return whether a shell's prompt or message ends an output here, or a fence of Markdown does.

    >>> [is_prompt(text) for text in ("[root@h bin]# ls", "PS D:\\\\x> dir", "```", "-bash: x: command not found")]
    [True, True, True, True]
    >>> is_prompt("10.0.0.1@123#456  10.0.0.1:4321  JAVA  V4_9_7"), is_prompt("broker-a  0  0  631")
    (False, False)
    """
    return _FENCE.match(line) is not None or _PROMPT.match(line.lstrip()) is not None


def is_date_command(line: str) -> bool:
    """Return whether a line runs `date`, so that the next one is its output.

    >>> is_date_command("[root@h bin]# date"), is_date_command("$ date; sh mqadmin clusterList")
    (True, False)
    """
    return re.search(r"(?:^|[$#%>;]\s*)(?:date|Get-Date)(?:\s+[^;&|]*)?$", line.strip()) is not None


def _plain(raw: str) -> str:
    line = raw.replace("\ufeff", "").replace("\u00a0", " ").replace("\u3000", " ")
    if "\x1b" in line or not line.isprintable():
        line = _ESCAPES.sub("", line)
    if (quote := _QUOTE.match(line)) is not None:
        line = line[quote.end() :]
    if _CELLS.match(line):
        if _RULE.fullmatch(line):
            return ""
        line = re.sub(r"\s\|\s", "   ", re.sub(r"\|\s*$", "", _CELLS.sub(" ", line, count=1)))
    return line
