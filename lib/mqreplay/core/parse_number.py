"""Long.parseLong and Integer.parseInt: numbers in RocketMQ's properties and settings.

Java reads any decimal digit of the Basic Multilingual Plane, a leading plus sign, and no blanks,
underscores or fractions; Python's int() differs in each of these.
"""

from __future__ import annotations

import unicodedata

from mqreplay.core.java import INT_MAX, INT_MIN, LONG_MAX, LONG_MIN
from mqreplay.errors import NumberFormat

_HEX_LETTERS = frozenset("abcdefABCDEF")


def parse_long(s: str) -> int:
    """Long#parseLong(String): the number, or NumberFormat where Java finds none or it does not fit 64 bits.

    >>> parse_long("+42"), parse_long("\\u0661")
    (42, 1)
    >>> parse_long("1_000")
    Traceback (most recent call last):
    mqreplay.errors.NumberFormat: java.lang.NumberFormatException: For input string: "1_000"
    """
    return _parse(s, LONG_MIN, LONG_MAX)


def parse_int(s: str, radix: int = 10) -> int:
    """Integer#parseInt(String, int): the number, or NumberFormat where Java finds none or it does not fit 32 bits.

    ``radix`` is 10 or 16.

    >>> parse_int("-7"), parse_int("+7f", 16)
    (-7, 127)
    >>> parse_int("2147483648")
    Traceback (most recent call last):
    mqreplay.errors.NumberFormat: java.lang.NumberFormatException: For input string: "2147483648"
    """
    return _parse(s, INT_MIN, INT_MAX, radix)


def _parse(s: str, smallest: int, largest: int, radix: int = 10) -> int:
    digits = s[1:] if s[:1] in ("+", "-") else s
    value = 0
    for char in digits:
        digit = _digit(char, radix)
        if digit is None:
            raise _refused(s, radix)
        # Larger values do not fit anyway: a text may have thousands of digits.
        value = min(value * radix + digit, -2 * LONG_MIN)
    value = -value if s[:1] == "-" else value
    if not digits or not smallest <= value <= largest:
        raise _refused(s, radix)
    return value


def _digit(char: str, radix: int) -> int | None:
    """Return what Character.digit gives; it looks at one UTF-16 unit, so digits beyond U+FFFF are none."""
    if radix == 16 and char in _HEX_LETTERS:
        return int(char, 16)
    return unicodedata.decimal(char, None) if char <= "\uffff" else None


def _refused(s: str, radix: int) -> NumberFormat:
    return NumberFormat(f'For input string: "{s}"' + (f" under radix {radix}" if radix != 10 else ""))
