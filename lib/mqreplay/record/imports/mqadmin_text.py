"""The text that mqadmin prints, split into one output for each command.

Pure. A file may hold one output or many, with or without command lines and dates between them.
"""

from __future__ import annotations

import datetime as dt
import re
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from mqreplay.record.imports.name_times import MINUTE_MS, times_in, zone_of

COMMANDS: Final = frozenset(
    {
        *("clusterList", "consumerProgress", "topicStatus", "brokerStatus", "getBrokerConfig", "consumerConnection"),
        *("topicRoute", "consumerStatus", "resetOffsetByTime", "topicList", "statsAll", "getConsumerConfig"),
        *("producerConnection", "topicClusterList", "brokerConsumeStats", "getNamesrvConfig", "queryMsgById"),
        *("allocateMQ", "resetOffsetByTimeOld", "printMsg", "updateTopic", "updateSubGroup", "haStatus"),
    }
)
# The first line of an output, by command.
HEADERS: Final = (
    ("clusterList", re.compile(r"#Cluster Name\s+#Broker Name\s+#(?:BID|InTotalYest)\b")),
    ("consumerProgress", re.compile(r"#Topic\s+#Broker Name\s+#QID\s+#Broker Offset\b")),
    ("consumerProgress", re.compile(r"#Group\s+#Count\s+#Version\b")),
    ("topicStatus", re.compile(r"#Broker Name\s+#QID\s+#Min Offset\b")),
    ("consumerConnection", re.compile(r"#ClientId\s+#ClientAddr\s+#Language\b")),
    ("topicRoute", re.compile(r"#ClusterName\s+#BrokerName\s+#BrokerAddrs\b")),
    ("topicRoute", re.compile(r"\{\s*$")),
    ("consumerStatus", re.compile(r"#Consumer Properties#|#Index\s+#ClientId\b")),
    ("resetOffsetByTime", re.compile(r"(?:rollback|start reset|reset) consumer offset by specified")),
    ("getBrokerConfig", re.compile(r"=+(?:(?:My )?Master: )?[^\s=]+:[0-9]+=+")),
    ("getConsumerConfig", re.compile(r"=+[^\s=:]+:[^\s=:]+=+$")),
    ("brokerStatus", re.compile(r"(?:\S+:[0-9]+\s+)?(?:EndTransaction\w+|bootTimestamp|brokerVersion\w*)\s*: ")),
    ("statsAll", re.compile(r"#Topic\s+#Consumer Group\b")),
)
_CONTINUES: Final = frozenset({"getBrokerConfig", "brokerStatus", "getConsumerConfig"})  # one header a broker
_NAMES = "|".join(sorted(COMMANDS, key=len, reverse=True))
_COMMAND = re.compile(rf"\bmqadmin(?:\.sh|\.cmd)?\s+({_NAMES})(?![A-Za-z])(.*)")
_NOISE = re.compile(
    r"[0-9]{2}:[0-9]{2}:[0-9]{2},[0-9]{3} \|-(?:INFO|WARN|ERROR) |RocketMQLog:WARN|SLF4J:|OpenJDK 64-Bit Server VM|"
    r"Java HotSpot\(TM\)"
)
_BORN = re.compile(r"\(born:([0-9]{13})\)")  # logback logs when it was configured: at the start of the command
_UNIX_DATE = re.compile(
    r"[A-Z][a-z]{2} "
    r"(?:(?P<month>[A-Z][a-z]{2}) +(?P<day>[0-9]{1,2})|"
    r"(?P<day2>[0-9]{1,2}) (?P<month2>[A-Z][a-z]{2}) (?P<year2>20[0-9]{2}))"
    r" (?P<clock>[0-9]{1,2}:[0-9]{2}:[0-9]{2})(?: (?P<half>[AP]M))?"
    r"(?: (?P<zone>[A-Z]{1,5}|[+-][0-9]{2,4}))?(?: (?P<year>20[0-9]{2}))?"
)
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_MARKS: Final = " \t=#-*+[]>_$"


@dataclass
class Output:
    """The output of one command. ``ts_ms``: the instant of a date line before it, or from the output itself.

    ``options``: those of the command line, if there is one: {"t": "orders"}. ``line`` counts from 1.
    """

    command: str | None
    line: int
    ts_ms: int | None = None
    has_command_line: bool = False
    options: dict[str, str] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)

    @property
    def identity(self) -> tuple[object, ...]:
        """Return what two outputs of the same command have in common."""
        return self.command, tuple(sorted((name, text) for name, text in self.options.items() if name != "n"))


def outputs_of(text: str, zone: dt.tzinfo) -> list[Output]:
    """Return the outputs in a text in order; none if it is not mqadmin's.

    >>> [found] = outputs_of("$ mqadmin topicStatus -t orders -n h:9876\\n#Broker Name  #QID  #Min Offset\\n", dt.UTC)
    >>> found.command, found.options["t"], found.lines
    ('topicStatus', 'orders', ['#Broker Name  #QID  #Min Offset'])
    >>> outputs_of("notes of the night\\n{\\n", dt.UTC)
    []
    """
    found: list[Output] = []
    before: int | None = None
    now = Output(None, 1)
    begun = False
    for number, line in enumerate(text.splitlines(), 1):
        if _NOISE.match(line):
            if now.ts_ms is None and (born := _BORN.search(line)):
                now.ts_ms = int(born[1])
            continue
        if (match := _COMMAND.search(line)) is not None:
            found.append(now)
            now = Output(match[1], number, before, True, _options(match[2]))
            before, begun = None, False
            continue
        if (date := date_of_line(line, zone)) is not None:
            before = date
            continue
        command = next((name for name, header in HEADERS if header.match(line)), None)
        if command is not None and (not begun or not _belongs(command, now)):
            if begun or (now.command is None and now.lines):
                found.append(now)
                now = Output(None, number)
            if not now.has_command_line:
                now.command = command
                now.ts_ms, before = (before if before is not None else now.ts_ms), None
            begun = True
        now.lines.append(line)
    found.append(now)
    return [output for output in found if output.command is not None and _is_of_mqadmin(output)]


def _belongs(command: str, output: Output) -> bool:
    """Return whether a header continues an output, and does not begin another."""
    return command == output.command and command in _CONTINUES


def _is_of_mqadmin(output: Output) -> bool:
    """Return whether it is an output: a brace alone may begin any text."""
    if output.has_command_line or output.command != "topicRoute":
        return True
    return any("brokerDatas" in line or "#BrokerAddrs" in line for line in output.lines[:200])


def _options(text: str) -> dict[str, str]:
    """Return the short options of a command line, up to a pipe or redirection.

    >>> _options(" -g pay -n 'h:9876;i:9876' -s > out.txt")
    {'g': 'pay', 'n': 'h:9876;i:9876', 's': ''}
    """
    try:
        words = shlex.split(text)
    except ValueError:
        words = text.split()
    return dict(_pairs(words))


_LONG: Final = {
    "groupName": "g",
    "group": "g",
    "consumerGroup": "g",
    "topic": "t",
    "brokerAddr": "b",
    "clusterName": "c",
    "namesrvAddr": "n",
    "clientId": "i",
}


def _pairs(words: Iterable[str]) -> Iterator[tuple[str, str]]:
    name: str | None = None
    for word in words:
        if word[:1] in (">", "|", "&") or word in ("2>&1", "1>"):
            break
        if word.startswith("-") and len(word) > 1 and not word[1:].isdigit():
            if name is not None:
                yield name, ""
            name, _, value = word.lstrip("-").partition("=")
            name = _LONG.get(name, name)
            if value:
                yield name, value
                name = None
        elif name is not None:
            yield name, word
            name = None
    if name is not None:
        yield name, ""


def date_of_line(line: str, zone: dt.tzinfo) -> int | None:
    """Return the epoch milliseconds of a line that consists of a date and time, as scripts write them.

    >>> date_of_line("=== 2026-11-21 02:39:57 ===", dt.UTC) == date_of_line("Sat Nov 21 02:39:57 UTC 2026", dt.UTC)
    True
    >>> date_of_line("1795228797", dt.UTC), date_of_line("broker-a  0  2026-11-21 02:41:23,490", dt.UTC)
    (1795228797000, None)
    """
    text = line.strip(_MARKS)
    if not 10 <= len(text) <= 40:
        return None
    found = times_in(text, zone)
    if len(found) == 1 and found[0].precision_ms <= MINUTE_MS:
        only = found[0]
        return only.ms if not text[: only.begin] and not text[only.end :].strip() else None
    match = _UNIX_DATE.fullmatch(text)
    return None if match is None else _unix_date(match, zone)


def _unix_date(match: re.Match[str], zone: dt.tzinfo) -> int | None:
    month, year = match["month"] or match["month2"], match["year"] or match["year2"]
    if month not in _MONTHS or year is None:
        return None
    hour, minute, second = map(int, match["clock"].split(":"))
    if match["half"]:
        hour = hour % 12 + (12 if match["half"] == "PM" else 0)
    day = int(match["day"] or match["day2"])
    named = match["zone"] or ""
    try:
        # Other short names, such as CST, mean several zones.
        is_exact = named in ("UTC", "GMT", "Z") or named[:1] in ("+", "-")
        where = zone_of(f"{named}00" if len(named) == 3 and named[0] in "+-" else named) if is_exact else zone
        moment = dt.datetime(int(year), _MONTHS.index(month) + 1, day, hour, minute, second, tzinfo=where)
        return round(moment.timestamp() * 1000)
    except (ValueError, OverflowError):
        return None
