"""Long.parseLong and Integer.parseInt: numbers in RocketMQ's properties and settings.

Java reads any decimal digit of the Basic Multilingual Plane, a leading plus sign, and no blanks,
underscores or fractions; Python's int() differs in each of these.
"""

from __future__ import annotations

import unicodedata

from mqreplay.core.java import INT_MAX, INT_MIN, LONG_MAX, LONG_MIN
from mqreplay.errors import NumberFormat


def parse_long(s: str) -> int:
    """Long#parseLong(String): the number, or NumberFormat where Java finds none or it does not fit 64 bits.

    >>> parse_long("+42"), parse_long("\\u0661")
    (42, 1)
    >>> parse_long("1_000")
    Traceback (most recent call last):
    mqreplay.errors.NumberFormat: java.lang.NumberFormatException: For input string: "1_000"
    """
    return _parse(s, LONG_MIN, LONG_MAX)


def parse_int(s: str) -> int:
    """Integer#parseInt(String): the number, or NumberFormat where Java finds none or it does not fit 32 bits.

    >>> parse_int("-7")
    -7
    >>> parse_int("2147483648")
    Traceback (most recent call last):
    mqreplay.errors.NumberFormat: java.lang.NumberFormatException: For input string: "2147483648"
    """
    return _parse(s, INT_MIN, INT_MAX)


def _parse(s: str, smallest: int, largest: int) -> int:
    digits = s[1:] if s[:1] in ("+", "-") else s
    value = 0
    for char in digits:
        # Character.digit looks at one UTF-16 unit, so digits beyond U+FFFF are none.
        digit = unicodedata.decimal(char, None) if char <= "\uffff" else None
        if digit is None:
            raise NumberFormat(f'For input string: "{s}"')
        value = value * 10 + digit
    value = -value if s[:1] == "-" else value
    if not digits or not smallest <= value <= largest:
        raise NumberFormat(f'For input string: "{s}"')
    return value
