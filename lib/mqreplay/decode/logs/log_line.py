"""A line with a message of RocketMQ at any place in it, and the fact of the message.

RocketMQ's own layouts come first (line_time.py). Applications, containers and collectors put other text before a
message: their own pattern, a pod's name, another time, colours, JSON. Such a line is found by the beginning of a
message that RocketMQ writes; its time is the last date and time before the message, else that of the wrapping.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import groupby
from typing import Final, NamedTuple

from mqreplay.decode.logs import broker_facts, broker_log, client_facts, client_log, lock_log, namesrv_log, stats_log
from mqreplay.decode.logs.line_time import STATED, Clock, clock_before, own_head
from mqreplay.decode.logs.wrapping import Wrapping, plain_text, wrapping_of
from mqreplay.errors import DecodeError

CLIENT, BROKER, LOCK, STATS, NAMESRV = "rocketmq_client", "broker", "lock", "stats", "namesrv"
Fact = client_facts.Fact | broker_facts.Fact | lock_log.LockLine | stats_log.FallBehind | namesrv_log.Fact
# Messages about offsets and members that no rule uses yet: counted by form. Sources:
# DefaultPullMessageResultHandler, PopMessageProcessor, DefaultMQPushConsumerImpl, AbstractAllocateMessageQueueStrategy.
_UNREAD: Final = (
    ("PULL_OFFSET_MOVED:none correction", "pulls outside the range of a queue that a broker did not correct"),
    ("Pop initial offset, because store is no correct", "offsets that POP found outside of their queue and set again"),
    ("[BUG] pull message result maybe data wrong", "answers of pulls that a client found wrong"),
    ("not in cidAll: ", "rebalances of a client that its list of members lacks"),
)


class UnusableLine(DecodeError):
    """A line with a message of RocketMQ that cannot be used. ``form`` says which messages, and why, for a count."""

    def __init__(self, code: str, form: str, detail: str) -> None:
        super().__init__(code, detail)
        self.form = form

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.code, self.form, self.detail)


class LogLine(NamedTuple):
    """A line with a time. ``log`` is which log of RocketMQ its ``fact`` is of; both are None without a fact.

    ``wrapping`` has the name and the time that a container, collector or tool put before the line. ``unread`` names
    the form of a message that no rule uses.
    """

    clock: Clock
    wrapping: Wrapping
    message: str
    log: str | None
    fact: Fact | None
    unread: str | None = None


class _Log(NamedTuple):
    name: str
    read: Callable[[str], Fact | None]
    starts: tuple[str, ...]


_LOGS: Final = (
    _Log(CLIENT, client_log.read_client_fact, client_log.STARTS),
    _Log(BROKER, broker_log.read_broker_fact, broker_log.STARTS),
    _Log(LOCK, lock_log.read_lock_line, lock_log.STARTS),
    _Log(STATS, stats_log.read_fall_behind, stats_log.STARTS),
    _Log(NAMESRV, namesrv_log.read_namesrv_fact, namesrv_log.STARTS),
)
_BY_START: Final = {start: log for log in _LOGS for start in log.starts}
_STARTS: Final = tuple(sorted(_BY_START, key=len, reverse=True))
_BROKER: Final = _LOGS[1]


def _any_start() -> re.Pattern[str]:
    """Return a pattern of all beginnings, the longest first, grouped by their first letter: that is fastest."""
    by_letter = groupby(sorted(_STARTS, key=lambda start: (start[0], -len(start))), key=lambda start: start[0])
    tails = ((letter, "|".join(re.escape(start[1:]) for start in starts)) for letter, starts in by_letter)
    return re.compile("|".join(f"{re.escape(letter)}(?:{of})" for letter, of in tails))


_START: Final = _any_start()
# A setting is a whole message: its name is part of many others.
_SETTINGS: Final = ("brokerName", "brokerId", "brokerIP1", "brokerClusterName", "listenPort")
_SETTING: Final = re.compile(r"(?:^|[-:|\])] )((?:broker(?:Name|Id|IP1|ClusterName)|listenPort)=[^\s,]{1,255})\s*$")
_LEVEL: Final = re.compile(r"(?i)\b(?:trace|debug|info|warn|warning|error|fatal)\b")
_PADDED: Final = " " * 10
_PADDING: Final = re.compile(" {10,}")
# What a pattern of an application may put behind a message: a trace, a place in the source, fields.
_MOST_BEHIND: Final = 200
_BEHIND: Final = re.compile(r"[\s\"',;\\]*(?:\s[\[({][^\[\](){}]{0,120}[\])}])?[\s\"',;\\]*$")
_PARTS: Final = (
    "MessageQueue [topic=",
    "ClientChannelInfo [",
    "ConsumerData [groupName=",
    "lastUpdateTimestamp=",
    "updateConsumeOffsetToBroker MessageQueue",
    "] Stats In One Minute, SUM: ",
    "update consumer offset less than store",
)


def read_log_line(text: str) -> LogLine | None:
    """Return what a line holds; None for one without a head and a message, such as a line of a stack trace.

    Raises:
        UnusableLine: it has a message of RocketMQ, or a part of one, and it is cut, damaged or without a date.
        DecodeError: bad_time.

    >>> line = read_log_line("node1 | 2026-11-21 02:40:07,407 INFO RocketmqClient - suspend this consumer, pay")
    >>> line.log, line.fact.group, line.wrapping.name
    ('rocketmq_client', 'pay', 'node1')
    >>> read_log_line("    at java.base/java.lang.Thread.run(Thread.java:840)")
    """
    own = own_head(text, 0)
    if own is not None:
        return _line(own.clock, Wrapping(), own.message)
    wrapping, text = plain_text(text)
    own = own_head(text)
    if own is not None:
        return _line(own.clock, wrapping_of(text[: own.begin], wrapping), own.message)
    found = _found(text)
    if found is None:
        if _is_part(text):
            form = "parts of lines of RocketMQ (wrapped or cut)"
            raise UnusableLine("bad_message", form, f"it has no beginning: {text[:100]!r}")
        return None
    start, at = found
    before = text[:at]
    clock, begin = clock_before(before)
    wrapping = wrapping_of(before[: begin if begin is not None else at], wrapping)
    if clock is None and wrapping.epoch_ms is not None:
        clock = Clock(wrapping.epoch_ms, True, STATED)
    if clock is None and wrapping.wall is not None:
        clock, _ = clock_before(wrapping.wall)
    if clock is None:
        form = f"lines of RocketMQ without a date, of the form {_shown(start)}"
        raise UnusableLine("no_date", form, f"no date before {_shown(start)}: {text[:100]!r}")
    try:
        return _line(clock, wrapping, text, at)
    except UnusableLine as error:
        if _LEVEL.search(before) is not None:
            raise
        # Somebody's notes, or a table of a report.
        form = f"lines with no level and thread that quote RocketMQ inexactly, of the form {_shown(start)}"
        raise UnusableLine(error.code, form, error.detail) from None


def _line(clock: Clock, wrapping: Wrapping, text: str, at: int | None = None) -> LogLine:
    """Return a line whose message is in a text, from ``at`` (characters) on; None: wherever it begins."""
    found = _found(text) if at is None else (_start_at(text, at), at)
    try:
        log, message, fact = _message(text, found)
    except UnusableLine:
        if _PADDED not in text:
            raise
        log, message, fact = None, text, None
    if fact is None and _PADDED in text:
        # A terminal that wraps lines may fill up the first part with blanks.
        joined = _PADDING.sub("", text)
        log, message, fact = _message(joined, _found(joined))
    unread = None if fact is not None else unread_form(message)
    return LogLine(clock, wrapping, message, None if fact is None else log, fact, unread)


def _message(text: str, found: tuple[str, int] | None) -> tuple[str | None, str, Fact | None]:
    if found is None:
        return None, text, None
    start, begin = found
    log = _BY_START.get(start, _BROKER)
    return log.name, text[begin:], _fact(log, start, text[begin:])


def _fact(log: _Log, start: str, message: str) -> Fact | None:
    error = None
    try:
        if (fact := log.read(message)) is not None:
            return fact
    except DecodeError as first:
        error = first
    # Only the end is searched: a hostile line may have a million blanks.
    end = message[-_MOST_BEHIND:]
    behind = _BEHIND.search(end)
    if behind is not None and behind.start() < len(end):
        try:
            return log.read(message[: len(message) - len(end) + behind.start()])
        except DecodeError as second:
            error = error or second
    if error is not None:
        form = f"lines of RocketMQ that are cut or damaged, of the form {_shown(start)}"
        raise UnusableLine(error.code, form, error.detail)
    return None


def _found(text: str) -> tuple[str, int] | None:
    """Return the beginning of the first message in a text, and its place (characters)."""
    match = _START.search(text)
    while match is not None and match[0][0].isalnum() and text[match.start() - 1 : match.start()].isalnum():
        match = _START.search(text, match.start() + 1)
    is_setting = text[: max(text.rfind("="), 0)].endswith(_SETTINGS)
    setting = _SETTING.search(text) if is_setting else None
    if setting is not None and (match is None or setting.start(1) < match.start()):
        return setting[1].partition("=")[0], setting.start(1)
    return None if match is None else (match[0], match.start())


def _start_at(text: str, at: int) -> str:
    found = next((start for start in _STARTS if text.startswith(start, at)), None)
    return found or text[at:].partition("=")[0]


def _is_part(text: str) -> bool:
    return any(part in text for part in _PARTS)


def _shown(start: str) -> str:
    return f"{start.rstrip(' ,[')!r}"


def unread_form(message: str) -> str | None:
    """Return the form of a message that no rule uses; None for any other message.

    >>> unread_form("PULL_OFFSET_MOVED:none correction. topic=t, groupId=g, requestOffset=7, suggestBrokerId=1")
    'pulls outside the range of a queue that a broker did not correct'
    """
    return next((form for start, form in _UNREAD if start in message), None)
