"""The head of a log line (time, layout, thread), and the time zones of RocketMQ's log files.

    broker.log, lock.log, namesrv.log   +08:00      2026-11-21 10:40:08 INFO HeartbeatThread_2 - message
    stats.log                           +08:00      2026-11-21 10:45:00 INFO - message
    rocketmq_client.log of 5.x          +08:00      2026-11-21 10:48:06.803 INFO  [12739] [Thread-1] [C#?:?] - message
    rocketmq_client.log of 4.9          its own     2026-11-21 02:40:08,249 INFO RocketmqClient - message

A line without such a head continues the record before it, such as a line of a stack trace.
"""

from __future__ import annotations

import datetime as dt
import re
from typing import Final, NamedTuple

from mqreplay.decode.columns import TIME_MAX, TIME_MIN
from mqreplay.words.errors import DecodeError

MAX_LINE_BYTES: Final = 1024 * 1024
CHINA: Final = dt.timezone(dt.timedelta(hours=8))
LOCAL, FIXED_ZONE, STATED = "local", "GMT+8", "stated"  # layouts: zone of the process, RocketMQ's, in the line itself
_EPOCH: Final = dt.datetime(1970, 1, 1)
_QUARTER_MS: Final = 15 * 60 * 1000
_MOST_OFFSET_MS: Final = 18 * 3600 * 1000
_HEAD: Final = re.compile(
    r"(?<!\d)(\d{4})-(\d\d)-(\d\d) (\d\d):(\d\d):(\d\d)(?:([.,])(\d{3}))? "
    r"(?:TRACE|DEBUG|INFO|WARN|ERROR) {1,2}(?:(.{0,300}?) )?- (.*)",
    re.ASCII | re.DOTALL,
)
_OF_CLIENT_5: Final = re.compile(r"\[\d*\] \[[^\]]*\] \[[^\]#]*#[^\]]*\]", re.ASCII)
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_MONTH: Final = "|".join(_MONTHS)
_CLOCK: Final = r"(?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)(?:[.,:](?P<part>\d{1,9}))?(?!\d)"
_ZONE: Final = r"(?: ?(?P<zone>Z|UTC|GMT|[+-]\d\d:?\d\d)(?![\d:A-Za-z]))?"
_DATES: Final = (
    # 2026-10-16 20:40:50.976, 2026/10/16T20:40:50+08:00, 2026-Jun-30 15:40:02.458273
    re.compile(
        rf"(?<!\d)(?P<year>20\d\d)([-/.])(?P<month>\d\d|{_MONTH})\2(?P<day>\d\d)[T _]{{1,2}}{_CLOCK}{_ZONE}", re.ASCII
    ),
    # 16/Oct/2026:20:40:50 +0800, 16-Oct-2026 20:40:50.976
    re.compile(rf"(?<!\d)(?P<day>\d\d)([-/ ])(?P<month>{_MONTH})\2(?P<year>20\d\d)[: ]{_CLOCK}{_ZONE}", re.ASCII),
    # 20261016 20:40:50
    re.compile(rf"(?<!\d)(?P<year>20\d\d)(?P<month>\d\d)(?P<day>\d\d)[T _]{_CLOCK}{_ZONE}", re.ASCII),
)
_UPDATED: Final = re.compile(r" Rebalance changed, also update version: -?\d{1,19}, (\d{13})$", re.ASCII)
_HEARD: Final = re.compile(r"new (?:consumer|producer) connected, .*lastUpdateTimestamp=(\d{13})\]$", re.ASCII)


class Clock(NamedTuple):
    """The time of a line: ``wall_ms`` as epoch ms as if in UTC; ``exact`` to the millisecond.

    ``layout`` shows the zone: LOCAL, FIXED_ZONE, or STATED, where the line names its zone and wall_ms is epoch ms.
    """

    wall_ms: int
    exact: bool
    layout: str


class OwnHead(NamedTuple):
    """The head of a line in RocketMQ's layout: its time, its place (characters) in the text, the message after it.

    ``thread`` is the thread or logger that wrote it, with what else the layout has before the message.
    """

    clock: Clock
    begin: int
    message: str
    thread: str = ""


def text_of_line(line: bytes) -> str:
    """Return the text of a line (bytes), without its line end.

    Raises:
        DecodeError: too_large, nul_bytes, not_utf8.

    >>> text_of_line(bytes([104, 105, 13, 10]))
    'hi'
    """
    if len(line) > MAX_LINE_BYTES:
        raise DecodeError("too_large", f"a line of {len(line)} bytes, and at most {MAX_LINE_BYTES} are read")
    if 0 in line:
        raise DecodeError("nul_bytes", "zero bytes, as a crash leaves them", line.find(0))
    try:
        return line.decode("utf-8").rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise DecodeError("not_utf8", f"byte 0x{line[error.start]:02x} is not UTF-8", error.start) from None


def own_head(text: str, at: int | None = None) -> OwnHead | None:
    """Return the head of a line in a layout of RocketMQ's own log settings; None for a line without one.

    ``at``: the place (characters) at which it must begin; None: anywhere.

    Raises:
        DecodeError: bad_time (no date and time that exists, or one outside 2000 to 2100), too_large.

    >>> head = own_head("2026-11-21 02:40:07,407 INFO RocketmqClient - the consumer [g] start OK.")
    >>> head.clock.wall_ms, head.clock.exact, head.message
    (1795228807407, True, 'the consumer [g] start OK.')
    >>> own_head("    at java.base/java.lang.Thread.run(Thread.java:840)")
    """
    if len(text) > MAX_LINE_BYTES:
        raise DecodeError("too_large", f"a line of {len(text)} characters, and at most {MAX_LINE_BYTES} are read")
    match = _HEAD.search(text) if at is None else _HEAD.match(text, at)
    if match is None:
        return None
    year, month, day, hour, minute, second, mark, milli, middle, message = match.groups()
    wall_ms = _wall_ms(match[0][:19], year, month, day, hour, minute, second) + int(milli or 0)
    # Of the layouts with milliseconds only that of 5.x clients is in RocketMQ's zone.
    fixed = mark is None or (mark == "." and _OF_CLIENT_5.fullmatch(middle or "") is not None)
    clock = Clock(wall_ms, mark is not None, FIXED_ZONE if fixed else LOCAL)
    return OwnHead(clock, match.start(), message, middle or "")


def clock_before(text: str) -> tuple[Clock | None, int | None]:
    """Return the last date and time in the text before a message, and its place (characters); None without one.

    Raises:
        DecodeError: bad_time.

    >>> clock_before("[2026-10-16 20:40:50:976] [main] INFO - ")
    (Clock(wall_ms=1792183250976, exact=True, layout='local'), 1)
    >>> clock_before("time=2026-10-16T20:40:50+08:00 ")[0]
    Clock(wall_ms=1792154450000, exact=False, layout='stated')
    """
    last = None
    for pattern in _DATES:
        for match in pattern.finditer(text):
            if last is None or match.start() > last.start():
                last = match
    if last is None:
        return None, None
    fields = last.groupdict()
    month = fields["month"]
    number = month if month.isdigit() else f"{_MONTHS.index(month) + 1:02d}"
    wall_ms = _wall_ms(
        last[0], *(fields["year"], number, fields["day"], fields["hour"], fields["minute"], fields["second"])
    )
    part, zone = fields["part"], fields["zone"]
    wall_ms += int((part or "0").ljust(3, "0")[:3])
    if zone is None:
        return Clock(wall_ms, part is not None, LOCAL), last.start()
    sign, digits = (1, "0000") if zone.isalpha() else (-1 if zone[0] == "-" else 1, zone[1:].replace(":", ""))
    offset_ms = sign * (int(digits[:2]) * 60 + int(digits[2:])) * 60_000
    return Clock(wall_ms - offset_ms, part is not None, STATED), last.start()


def _wall_ms(shown: str, *parts: str) -> int:
    try:
        wall = dt.datetime(*map(int, parts))  # type: ignore[arg-type]
    except ValueError:
        raise DecodeError("bad_time", f"{shown} is not a date and time") from None
    wall_ms = (wall - _EPOCH) // dt.timedelta(milliseconds=1)
    if not TIME_MIN <= wall_ms <= TIME_MAX:
        raise DecodeError("bad_time", f"{shown} is not in 2000 to 2100")
    return wall_ms


def written_epoch_ms(message: str) -> int | None:
    """Return the current epoch ms that RocketMQ wrote into a message: the line's instant; None without one.

    A client gives its subscription the current time as version when its queues change
    (RebalancePushImpl#messageQueueChanged); a broker logs the time of a new client's heartbeat (ClientChannelInfo).

    >>> written_epoch_ms("t Rebalance changed, also update version: 1795228807062, 1795228809901")
    1795228809901
    """
    match = _UPDATED.search(message[-200:]) or _HEARD.match(message)
    epoch_ms = int(match[1]) if match else TIME_MIN - 1
    return epoch_ms if TIME_MIN <= epoch_ms <= TIME_MAX else None


def utc_offset_ms(wall_ms: int, epoch_ms: int) -> int | None:
    """Return the offset of a zone from UTC, in ms, in which ``epoch_ms`` shows as ``wall_ms``; None if none does.

    The offsets of zones are quarters of an hour. The two may differ by 2 minutes: a line is written a little later.

    >>> utc_offset_ms(1795257608000, 1795228808369)
    28800000
    """
    difference = wall_ms - epoch_ms
    offset = round(difference / _QUARTER_MS) * _QUARTER_MS
    return offset if abs(difference - offset) <= 120_000 and abs(offset) <= _MOST_OFFSET_MS else None


def epoch_ms_of(wall_ms: int, zone: dt.tzinfo) -> int:
    """Return the epoch ms at which clocks of ``zone`` show ``wall_ms``; the earlier one if there are two.

    >>> epoch_ms_of(1795257608000, CHINA)
    1795228808000
    """
    wall = _EPOCH + dt.timedelta(milliseconds=wall_ms)
    offset = wall.replace(tzinfo=zone).utcoffset() or dt.timedelta()
    return wall_ms - offset // dt.timedelta(milliseconds=1)


def zone_text(offset_ms: int) -> str:
    """Return an offset as in an ISO 8601 time.

    >>> zone_text(8 * 3600000), zone_text(-12600000)
    ('+08:00', '-03:30')
    """
    hours, minutes = divmod(abs(offset_ms) // 60_000, 60)
    return f"{'-' if offset_ms < 0 else '+'}{hours:02d}:{minutes:02d}"
