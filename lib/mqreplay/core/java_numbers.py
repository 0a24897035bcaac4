"""Numbers as Java reads and writes them: Long.parseLong, Integer.parseInt, Double.valueOf and Double.toString.

In an integer Java reads any decimal digit of the Basic Multilingual Plane, a leading plus sign, and no blanks,
underscores or fractions; Python's int() differs in each of these. In a fraction it takes suffixes and hexadecimal
digits and no underscores, drops control characters at both ends, and prints powers of ten in a form of its own.
"""

from __future__ import annotations

import math
import re
import unicodedata
from decimal import Decimal

from mqreplay.core.java import INT_MAX, INT_MIN, LONG_MAX, LONG_MIN, trim
from mqreplay.words.errors import NumberFormat

_DECIMAL = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[fFdD]?")
_HEX = re.compile(r"([+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+)[fFdD]?")
_WORD = re.compile(r"([+-]?)(NaN|Infinity)")
_HEX_LETTERS = frozenset("abcdefABCDEF")


def parse_long(s: str) -> int:
    """Long#parseLong(String): the number, or NumberFormat where Java finds none or it does not fit 64 bits.

    >>> parse_long("+42"), parse_long("\\u0661")
    (42, 1)
    >>> parse_long("1_000")
    Traceback (most recent call last):
    mqreplay.words.errors.NumberFormat: java.lang.NumberFormatException: For input string: "1_000"
    """
    return _parse(s, LONG_MIN, LONG_MAX)


def parse_int(s: str, radix: int = 10) -> int:
    """Integer#parseInt(String, int): the number, or NumberFormat where Java finds none or it does not fit 32 bits.

    ``radix`` is 10 or 16.

    >>> parse_int("-7"), parse_int("+7f", 16)
    (-7, 127)
    >>> parse_int("2147483648")
    Traceback (most recent call last):
    mqreplay.words.errors.NumberFormat: java.lang.NumberFormatException: For input string: "2147483648"
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


def parse_double(s: str) -> float:
    """Double#valueOf(String): the number, or NumberFormat where Java finds none.

    >>> parse_double(" 1.5d"), parse_double("-Infinity"), parse_double("0x1p3")
    (1.5, -inf, 8.0)
    >>> parse_double("")
    Traceback (most recent call last):
    mqreplay.words.errors.NumberFormat: java.lang.NumberFormatException: empty String
    """
    text = trim(s)
    if not text:
        raise NumberFormat("empty String")
    if word := _WORD.fullmatch(text):
        return math.nan if word[2] == "NaN" else float(word[1] + "inf")
    if decimal := _DECIMAL.fullmatch(text):
        return float(decimal[1])
    if hexadecimal := _HEX.fullmatch(text):
        try:
            return float.fromhex(hexadecimal[1])
        except OverflowError:
            return -math.inf if text.startswith("-") else math.inf
    raise NumberFormat(f'For input string: "{text}"')


def double_text(d: float) -> str:
    """Double#toString: the shortest digits that say which double it is, in Java's form.

    Before Java 19 some doubles got a digit more than needed; that is not followed.

    >>> double_text(1.0), double_text(1e10), double_text(0.0001), double_text(5e-324)
    ('1.0', '1.0E10', '1.0E-4', '4.9E-324')
    """
    if math.isnan(d) or math.isinf(d):
        return "NaN" if math.isnan(d) else ("Infinity" if d > 0 else "-Infinity")
    if d == 0 or 1e-3 <= abs(d) < 1e7:
        return repr(d)
    if abs(d) == 5e-324:
        return "4.9E-324" if d > 0 else "-4.9E-324"  # Java gives two digits at least
    sign, digits, exponent = Decimal(repr(d)).normalize().as_tuple()
    first, *rest = map(str, digits)
    return f"{'-' * sign}{first}.{''.join(rest) or '0'}E{int(exponent) + len(rest)}"
