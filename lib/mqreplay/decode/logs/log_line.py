"""A line with a message of RocketMQ at any place in it, and the fact of the message.

RocketMQ's own layouts come first (line_time.py). Applications, containers and collectors put other text before a
message: their own pattern, a pod's name, another time, colours, JSON. Such a line is found by the beginning of a
message that RocketMQ writes; its time is the last date and time before the message, else that of the wrapping.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from mqreplay.decode.logs import broker_log, client_log, controller_log, namesrv_log, remoting_log, store_log
from mqreplay.decode.logs.client_facts import ClientThrew
from mqreplay.decode.logs.exceptions import Thrown
from mqreplay.decode.logs.form import Fact, Form, Messages
from mqreplay.decode.logs.line_time import STATED, Clock, clock_before, own_head
from mqreplay.decode.logs.wrapping import Wrapping, plain_text, wrapping_of
from mqreplay.words.errors import DecodeError

CLIENT_LINES, BROKER_LINES, LOCK_LINES, STATS_LINES, STORE_LINES, REMOTING_LINES, NAMESRV_LINES, CONTROLLER_LINES = (
    "rocketmq_client",
    "broker",
    "lock",
    "stats",
    "store",
    "remoting",
    "namesrv",
    "controller",
)
# The forms of each log's messages: a new message is one record in one of these. An import reads the logs in this order:
# records of brokers are compared with those of clients.
LOGS: Final[dict[str, tuple[Form, ...]]] = {
    CLIENT_LINES: client_log.FORMS,
    BROKER_LINES: broker_log.FORMS,
    LOCK_LINES: broker_log.LOCK_FORMS,
    STATS_LINES: broker_log.STATS_FORMS,
    STORE_LINES: store_log.FORMS,
    REMOTING_LINES: remoting_log.FORMS,
    NAMESRV_LINES: namesrv_log.FORMS,
    CONTROLLER_LINES: controller_log.FORMS,
}
MESSAGES: Final = Messages(LOGS)


class UnusableLine(DecodeError):
    """A line with a message of RocketMQ that cannot be used. ``form`` says which messages, and why, for a count."""

    def __init__(self, code: str, form: str, detail: str) -> None:
        super().__init__(code, detail)
        self.form = form

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.code, self.form, self.detail)


class LogLine(NamedTuple):
    """A line with a time. ``log`` is which log of RocketMQ its ``fact`` is of; both are None without a fact.

    ``wrapping`` has the name and the time that a container, collector or tool put before the line, ``thread`` the
    thread or logger of the head, see OwnHead.
    """

    clock: Clock
    wrapping: Wrapping
    message: str
    log: str | None
    fact: Fact | None
    thread: str = ""


_LEVEL: Final = re.compile(r"(?i)\b(?:trace|debug|info|warn|warning|error|fatal)\b")
_WRITTEN_LEVEL: Final = re.compile(r"\b(?:TRACE|DEBUG|INFO|WARN|WARNING|ERROR|FATAL)\b|[\[=\"](?:info|warn|error)\b")
# Lines of a stack trace, also with the time of a collector before them.
_STACK: Final = re.compile(
    r"(?:^|\s)(?:at [\w.$<>/]+\(|Caused by: |Suppressed: |\.\.\. \d|See http|For more information)"
)
_TIME: Final = re.compile(r"(?<!\d)\d\d:\d\d:\d\d(?!\d)", re.ASCII)
_PADDED: Final = " " * 10
_PADDING: Final = re.compile(" {10,}")
# What a pattern of an application may put behind a message: a trace, a place in the source, fields.
_MOST_BEHIND: Final = 200
_MOST_BEFORE: Final = 300  # characters that may be before the time of an application's line
_BEHIND: Final = re.compile(r"[\s\"',;\\]*(?:\s[\[({][^\[\](){}]{0,120}[\])}])?[\s\"',;\\]*$")
_PARTS: Final = (
    "MessageQueue [topic=",
    "ClientChannelInfo [",
    "ConsumerData [groupName=",
    ", lastUpdateTimestamp=",
    "updateConsumeOffsetToBroker MessageQueue",
    "] Stats In One Minute, SUM: ",
    "update consumer offset less than store",
)


def read_log_line(text: str, messages: Messages = MESSAGES) -> LogLine | None:
    """Return what a line holds; None for one without a head and a message, such as a line of a stack trace.

    ``messages`` are the forms of messages to find.

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
        return _line(messages, own.clock, Wrapping(), own.message, thread=own.thread)
    wrapping, text = plain_text(text)
    own = own_head(text)
    if own is not None:
        return _line(messages, own.clock, wrapping_of(text[: own.begin], wrapping), own.message, thread=own.thread)
    place = messages.find(text)
    if place is None:
        if _is_part(text):
            form = "parts of lines of RocketMQ without their beginning"
            raise UnusableLine("bad_message", form, f"it has no beginning: {text[:100]!r}")
        return None
    start, at = place
    before = text[:at]
    clock, begin = clock_before(before)
    wrapping = wrapping_of(before[: begin if begin is not None else at], wrapping)
    clock = clock or _clock_around(wrapping)
    if clock is None:
        form = f"lines of RocketMQ without a date, of the form {_shown(start)}"
        raise UnusableLine("no_date", form, f"no date before {_shown(start)}: {text[:100]!r}")
    try:
        return _line(messages, clock, wrapping, text, at)
    except UnusableLine as error:
        if _LEVEL.search(before) is not None:
            raise
        # Somebody's notes, or a table of a report.
        form = f"lines with no level and thread that quote RocketMQ inexactly, of the form {_shown(start)}"
        raise UnusableLine(error.code, form, error.detail) from None


def _clock_around(wrapping: Wrapping) -> Clock | None:
    """Return the time that a collector noted, or that JSON around the line has."""
    if wrapping.epoch_ms is not None:
        return Clock(wrapping.epoch_ms, True, STATED)
    return None if wrapping.wall is None else clock_before(wrapping.wall)[0]


def begins_record(text: str) -> bool:
    """Return whether a line begins a record of a log, by a level or a time; others continue the record before them.

    >>> begins_record("14:02:11.325 ERROR send failed"), begins_record("    at java.lang.Thread.run(Thread.java:748)")
    (True, False)
    """
    return has_level(text) or (_STACK.search(text) is None and _TIME.search(text[:_MOST_BEFORE]) is not None)


def has_level(text: str) -> bool:
    """Return whether a text has the level of a line, as the patterns of applications write it.

    >>> has_level("2022-06-07 14:02:11 [WARN] c.x.Sender: "), has_level("Caused by: ")
    (True, False)
    """
    return _WRITTEN_LEVEL.search(text) is not None


def with_exception(line: LogLine | None, text: str, thrown: Thrown) -> LogLine | None:
    """Return a line with the exception in it or below it; None if the exception completes no fact.

    ``line`` is None for a line of an application, ``text``: it has a fact only if the exception shows the request.

    Raises:
        DecodeError: bad_time.
    """
    if line is not None and line.fact is not None:
        return line._replace(fact=line.fact._replace(thrown=thrown)) if hasattr(line.fact, "thrown") else None  # type: ignore[attr-defined]
    if thrown.request is None:
        return None
    if line is None:
        wrapping, plain = plain_text(text)
        clock, begin = clock_before(plain[:_MOST_BEFORE])
        wrapping = wrapping_of(plain[: begin or 0], wrapping)
        clock = clock or _clock_around(wrapping)
        if clock is None:
            return None
        line = LogLine(clock, wrapping, plain, None, None)
    return line._replace(log=CLIENT_LINES, fact=ClientThrew(thrown.request, topic=thrown.topic, thrown=thrown))


def _line(
    messages: Messages, clock: Clock, wrapping: Wrapping, text: str, at: int | None = None, thread: str = ""
) -> LogLine:
    """Return a line whose message is in a text, from ``at`` (characters) on; None: wherever it begins."""
    place = messages.find(text) if at is None else (messages.start_at(text, at), at)
    try:
        log, message, fact = _message(messages, text, place)
    except UnusableLine:
        if _PADDED not in text:
            raise
        log, message, fact = None, text, None
    if fact is None and _PADDED in text:
        # A terminal that wraps lines may fill up the first part with blanks.
        joined = _PADDING.sub("", text)
        log, message, fact = _message(messages, joined, messages.find(joined))
    if fact is None:
        return LogLine(clock, wrapping, text, None, None, thread)
    return LogLine(clock, wrapping, message, log, fact, thread)


def _message(messages: Messages, text: str, place: tuple[str, int] | None) -> tuple[str | None, str, Fact | None]:
    if place is None:
        return None, text, None
    start, begin = place
    return messages.log_of(start), text[begin:], _fact(messages, start, text[begin:])


def _fact(messages: Messages, start: str, message: str) -> Fact | None:
    error = None
    try:
        if (fact := messages.read(start, message)) is not None:
            return fact
    except DecodeError as first:
        error = first
    # Only the end is searched: a hostile line may have a million blanks.
    end = message[-_MOST_BEHIND:]
    behind = _BEHIND.search(end)
    if behind is not None and behind.start() < len(end):
        try:
            return messages.read(start, message[: len(message) - len(end) + behind.start()])
        except DecodeError as second:
            error = error or second
    if error is not None:
        is_cut = any(message.count(opening) > message.count(closing) for opening, closing in ("[]", "{}", "()"))
        state = "that are cut" if is_cut else "with another text than import knows"
        form = f"lines of RocketMQ {state}, of the form {_shown(start)}"
        raise UnusableLine(error.code, form, error.detail)
    return None


def _is_part(text: str) -> bool:
    return "SendResult [" not in text and any(part in text for part in _PARTS)


def _shown(start: str) -> str:
    return f"{start.rstrip(' ,[')!r}"
