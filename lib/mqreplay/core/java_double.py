"""Double.valueOf and Double.toString: how RocketMQ reads and writes fractions in a filter.

Java takes suffixes and hexadecimal fractions and no underscores, drops control characters at both ends, and
prints powers of ten in a form of its own.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal

from mqreplay.core.java import trim
from mqreplay.errors import NumberFormat

_DECIMAL = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[fFdD]?")
_HEX = re.compile(r"([+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+)[fFdD]?")
_WORD = re.compile(r"([+-]?)(NaN|Infinity)")


def parse_double(s: str) -> float:
    """Double#valueOf(String): the number, or NumberFormat where Java finds none.

    >>> parse_double(" 1.5d"), parse_double("-Infinity"), parse_double("0x1p3")
    (1.5, -inf, 8.0)
    >>> parse_double("")
    Traceback (most recent call last):
    mqreplay.errors.NumberFormat: java.lang.NumberFormatException: empty String
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
