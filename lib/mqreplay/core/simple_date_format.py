"""SimpleDateFormat("yyyyMMddHHmmss"): how RocketMQ reads consumeTimestamp, lenient as Java is.

Every field but the last takes its number of characters, the last takes all digits there are, and what does
not fit is carried over: February 30 is March 1, 5999 seconds are an hour, 39 minutes and 59 seconds.
"""

from __future__ import annotations

import unicodedata

from mqreplay.core.java import to_int

_FIELDS = (4, 2, 2, 2, 2, 0)  # characters of year, month, day, hour, minute; seconds take the rest
_DAYS_TO_1970 = 719_468  # from March 1 of the year 0


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
