"""The offset from which a consumer pulls a newly assigned queue: RebalancePushImpl#computePullFromWhere.

A stored offset is always used. consumeFromWhere decides only without one, so it matters only for new groups. If the
store cannot be read there is no start: the queue is not taken, and the next rebalance tries again.

consumeTimestamp is read by SimpleDateFormat("yyyyMMddHHmmss"), lenient as Java is: every field but the last takes its
number of characters, the last takes all digits there are, and what does not fit is carried over: February 30 is
March 1, 5999 seconds are an hour, 39 minutes and 59 seconds.
"""

from __future__ import annotations

import unicodedata
from enum import Enum
from typing import NamedTuple

from mqreplay.core.consumer_offset_manager import QUERY_NOT_FOUND
from mqreplay.core.faq_url import client_exception
from mqreplay.core.java import to_int
from mqreplay.core.retry_topic import is_retry_topic
from mqreplay.core.version import CLIENT_4, at_least
from mqreplay.words.errors import MQClientError, NullPointer

READ_OFFSET_TYPE = "READ_FROM_STORE"
NO_OFFSET = -1  # what the offset store answers for a queue without one; lower: it could not be read
SYSTEM_ERROR = 1
_FIELDS = (4, 2, 2, 2, 2, 0)  # characters of year, month, day, hour, minute; seconds take the rest
_DAYS_TO_1970 = 719_468  # from March 1 of the year 0


class ConsumeFromWhere(Enum):
    """org.apache.rocketmq.common.consumer.ConsumeFromWhere; three deprecated names mean the last offset."""

    LAST_OFFSET = "CONSUME_FROM_LAST_OFFSET"
    LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST = "CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST"
    MIN_OFFSET = "CONSUME_FROM_MIN_OFFSET"
    MAX_OFFSET = "CONSUME_FROM_MAX_OFFSET"
    FIRST_OFFSET = "CONSUME_FROM_FIRST_OFFSET"
    TIMESTAMP = "CONSUME_FROM_TIMESTAMP"


class AdminQuestion(NamedTuple):
    """The request to the broker: ``maxOffset``, or ``searchOffset`` for a time in epoch ms."""

    method: str
    timestamp: int | None = None


def admin_question(
    consume_from_where: ConsumeFromWhere,
    last_offset: int,
    topic: str,
    consume_timestamp: str | None = None,
    utc_offset: int = 0,
) -> AdminQuestion | None:
    """Return the request that computePullFromWhere sends to the broker, None if it sends none.

    Follows RebalancePushImpl#computePullFromWhere. ``last_offset`` (messages) is the offset store's answer;
    ``consume_timestamp`` the consumer's setting, yyyyMMddHHmmss in its own zone, which is ``utc_offset`` ms ahead
    of UTC. Raises NullPointer where that setting is needed and is no time.

    >>> admin_question(ConsumeFromWhere.LAST_OFFSET, -1, "T")
    AdminQuestion(method='maxOffset', timestamp=None)
    >>> admin_question(ConsumeFromWhere.TIMESTAMP, -1, "T", "19700101000001")
    AdminQuestion(method='searchOffset', timestamp=1000)
    """
    if last_offset != NO_OFFSET or consume_from_where is ConsumeFromWhere.FIRST_OFFSET:
        return None
    if consume_from_where is not ConsumeFromWhere.TIMESTAMP:
        # A retry topic is consumed from its start: what failed must not be lost.
        return None if is_retry_topic(topic) else AdminQuestion("maxOffset")
    if is_retry_topic(topic):
        return AdminQuestion("maxOffset")
    timestamp = parse_date(consume_timestamp, utc_offset) if consume_timestamp is not None else None
    if timestamp is None:
        raise NullPointer
    return AdminQuestion("searchOffset", timestamp)


def compute_pull_from_where_with_exception(
    consume_from_where: ConsumeFromWhere,
    last_offset: int,
    topic: str,
    admin_answer: int | MQClientError | None = None,
    consume_timestamp: str | None = None,
    version: str = CLIENT_4,
) -> int:
    """Return the queue offset to pull from, below 0 for none (RebalancePushImpl#computePullFromWhereWithException).

    ``last_offset`` (messages) is the offset store's answer: 0 or more as it is, -1 none, lower for a failure, which is
    -1 in 4.9 and an MQClientError in 5.x. ``admin_answer``: the broker's answer to admin_question, an
    offset or the error it raised, which is raised again. NullPointer: see admin_question.

    >>> compute_pull_from_where_with_exception(ConsumeFromWhere.LAST_OFFSET, 7, "T", 100)
    7
    >>> compute_pull_from_where_with_exception(ConsumeFromWhere.LAST_OFFSET, -1, "T", 100)
    100
    >>> compute_pull_from_where_with_exception(ConsumeFromWhere.LAST_OFFSET, -1, "%RETRY%g")
    0
    """
    later = at_least(version, "5.0.0")
    if last_offset >= 0:
        return last_offset
    if last_offset != NO_OFFSET:
        if later:
            raise client_exception(QUERY_NOT_FOUND, _store_failed(consume_from_where), version)
        return -1
    if admin_question(consume_from_where, last_offset, topic, consume_timestamp) is None:
        return 0
    if isinstance(admin_answer, MQClientError):
        raise admin_answer
    result = -1 if admin_answer is None else admin_answer
    if later and result < 0:
        raise client_exception(SYSTEM_ERROR, f"Found unexpected result {result}", version)
    return result


def compute_pull_from_where(
    consume_from_where: ConsumeFromWhere,
    last_offset: int,
    topic: str,
    admin_answer: int | MQClientError | None = None,
    consume_timestamp: str | None = None,
    version: str = CLIENT_4,
) -> int:
    """Return the same, but -1 for an MQClientError; raise a NullPointer (RebalancePushImpl#computePullFromWhere).

    Offsets in messages; the arguments as above.

    >>> compute_pull_from_where(ConsumeFromWhere.FIRST_OFFSET, -2, "T", version="5.3.3")
    -1
    """
    try:
        return compute_pull_from_where_with_exception(
            consume_from_where, last_offset, topic, admin_answer, consume_timestamp, version
        )
    except MQClientError:
        return -1


def _store_failed(consume_from_where: ConsumeFromWhere) -> str:
    if consume_from_where in (ConsumeFromWhere.FIRST_OFFSET, ConsumeFromWhere.TIMESTAMP):
        return "Failed to query offset from offset store"
    return "Failed to query consume offset from offset store"


def parse_date(text: str, utc_offset: int = 0) -> int | None:
    """Epoch ms of a yyyyMMddHHmmss text, None where Java finds no date (UtilAll#parseDate).

    ``utc_offset``: ms that the reader's zone is ahead of UTC. Text after the seconds is ignored. (Java's
    exponents in numbers, and its Julian calendar before 1582, are not followed.)

    >>> parse_date("20240102030405"), parse_date("20240230000000") == parse_date("20240301000000")
    (1704164645000, True)
    >>> parse_date("2024010203"), parse_date("bad")
    (None, None)
    """
    values: list[int] = []
    at = 0
    for width in _FIELDS:
        if width and at + width > len(text):
            return None
        number = _number(text[: at + width] if width else text, at)
        if number is None:
            return None
        value, at = number
        values.append(value)
    year, month, day, hour, minute, second = values
    days = _days_from_civil(year, month - 1, 1) + day - 1
    return ((days * 24 + hour) * 60 + minute) * 60_000 + second * 1_000 - utc_offset


def _number(text: str, at: int) -> tuple[int, int] | None:
    """The integer at a place, after blanks and with a minus sign at most, and where it ends."""
    while at < len(text) and text[at] in " \t":
        at += 1
    negative = text[at : at + 1] == "-"
    start = at = at + negative
    value = 0
    while at < len(text) and (digit := unicodedata.decimal(text[at], None)) is not None:
        value = value * 10 + digit
        at += 1
    if at == start:
        return None
    return to_int(-value if negative else value), at


def _days_from_civil(year: int, month0: int, day: int) -> int:
    """Days since 1970-01-01 of a Gregorian date; month0 counts from 0 and may lie outside the year."""
    year, month0 = year + month0 // 12, month0 % 12
    from_march = (month0 + 10) % 12
    year -= month0 < 2
    leap_days = year // 4 - year // 100 + year // 400
    return 365 * year + leap_days + (153 * from_march + 2) // 5 + day - 1 - _DAYS_TO_1970
