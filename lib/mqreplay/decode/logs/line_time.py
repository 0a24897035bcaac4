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
from mqreplay.errors import DecodeError

MAX_LINE_BYTES: Final = 1024 * 1024
CHINA: Final = dt.timezone(dt.timedelta(hours=8))
LOCAL, FIXED_ZONE = "client 4.9", "GMT+8"  # layouts
_EPOCH: Final = dt.datetime(1970, 1, 1)
_QUARTER_MS: Final = 15 * 60 * 1000
_MOST_OFFSET_MS: Final = 18 * 3600 * 1000
_HEAD: Final = re.compile(
    r"(\d{4})-(\d\d)-(\d\d) (\d\d):(\d\d):(\d\d)(?:([.,])(\d{3}))? "
    r"(TRACE|DEBUG|INFO|WARN|ERROR) {1,2}(?:(.{0,300}?) )?- (.*)",
    re.ASCII | re.DOTALL,
)
_UPDATED: Final = re.compile(r" Rebalance changed, also update version: -?\d{1,19}, (\d{13})$", re.ASCII)
_HEARD: Final = re.compile(r"new (?:consumer|producer) connected, .*lastUpdateTimestamp=(\d{13})\]$", re.ASCII)


class LogLine(NamedTuple):
    """A line with a head. ``wall_ms`` is its time as epoch ms as if in UTC; ``exact`` to the millisecond."""

    wall_ms: int
    exact: bool
    level: str
    thread: str | None
    message: str
    layout: str


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


def read_line(text: str) -> LogLine | None:
    """Return the parts of a line of any of RocketMQ's logs; None for a line without a head.

    Raises:
        DecodeError: bad_time (no date and time that exists, or one outside 2000 to 2100).

    >>> line = read_line("2026-11-21 02:40:07,407 INFO RocketmqClient - the consumer [g] start OK.")
    >>> line.wall_ms, line.exact, line.thread, line.message
    (1795228807407, True, 'RocketmqClient', 'the consumer [g] start OK.')
    >>> read_line("    at java.base/java.lang.Thread.run(Thread.java:840)")
    """
    if len(text) > MAX_LINE_BYTES:
        raise DecodeError("too_large", f"a line of {len(text)} characters, and at most {MAX_LINE_BYTES} are read")
    match = _HEAD.match(text)
    if match is None:
        return None
    year, month, day, hour, minute, second, mark, milli, level, middle, message = match.groups()
    try:
        wall = dt.datetime(int(year), int(month), int(day), int(hour), int(minute), int(second))
    except ValueError:
        raise DecodeError("bad_time", f"{text[:19]} is not a date and time") from None
    wall_ms = (wall - _EPOCH) // dt.timedelta(milliseconds=1) + int(milli or 0)
    if not TIME_MIN <= wall_ms <= TIME_MAX:
        raise DecodeError("bad_time", f"{text[:19]} is not in 2000 to 2100")
    return LogLine(wall_ms, mark is not None, level, middle, message, LOCAL if mark == "," else FIXED_ZONE)


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
    apart = wall_ms - epoch_ms
    offset = round(apart / _QUARTER_MS) * _QUARTER_MS
    return offset if abs(apart - offset) <= 120_000 and abs(offset) <= _MOST_OFFSET_MS else None


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
