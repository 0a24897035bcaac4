"""Numbers as fastjson 1.2 converts them: digits with a type's letter, and BigDecimal."""

from __future__ import annotations

import re
from typing import NamedTuple

from mqreplay.core.java import LONG_MAX, LONG_MIN, to_int, to_long
from mqreplay.words.errors import Arithmetic, NumberFormat

_PART = 18  # digits turned at once
_DECIMAL = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?(?:[eE]([+-]?)([0-9]*))?")


def _bounded(digits: str) -> int:
    """Return the number, or at least 2**64 where it is not below: int() refuses a text of thousands of digits."""
    value = 0
    for at in range(0, len(digits), _PART):
        part = digits[at : at + _PART]
        value = min(value * 10 ** len(part) + int(part), 2**64)
    return value


def _wrapped(digits: str) -> int:
    """Return the number modulo 2**64."""
    value = 0
    for at in range(0, len(digits), _PART):
        part = digits[at : at + _PART]
        value = (value * 10 ** len(part) + int(part)) % 2**64
    return value


def java_digits(written: str, least: int, most: int) -> int:
    """JSONLexerBase#intValue, #longValue: digits up to a type's letter; a lone letter counts as a digit by its code.

    least and most bound the result; NumberFormat beyond them, and for a lone minus.

    >>> java_digits("12L", -(2**31), 2**31 - 1), java_digits("", -1, 1), java_digits("L", -100, 100)
    (12, 0, 28)
    """
    negative = written.startswith("-")
    body = written[1:] if negative else written
    if not body:
        if negative:
            raise NumberFormat(written)
        return 0
    value = ord(body[0]) - ord("0")
    if body[1:].rstrip("LSB"):
        value = _bounded(body.rstrip("LSB"))
    if negative:
        value = -value
    if not least <= value <= most:
        raise NumberFormat(written.rstrip("LSB"))
    return value


class Decimal(NamedTuple):
    """A BigDecimal: its sign, the digits of its unscaled value (none for 0), and its scale."""

    is_negative: bool
    digits: str
    scale: int


def read_decimal(s: str) -> Decimal:
    """``new BigDecimal(s)``; NumberFormat with its messages.

    >>> read_decimal("-1.50"), read_decimal("2e3")
    (Decimal(is_negative=True, digits='150', scale=2), Decimal(is_negative=False, digits='2', scale=-3))
    """
    match = _DECIMAL.fullmatch(s)
    if match is None:
        raise NumberFormat(f'Character array contains more than one decimal point: "{s}"')
    sign, whole, fraction, exponent_sign, exponent = match.groups()
    fraction = fraction or ""
    if not whole + fraction:
        raise NumberFormat("No digits found.")
    scale = len(fraction)
    if exponent is not None:
        if not exponent:
            raise NumberFormat("No exponent digits.")
        nonzero = exponent.lstrip("0")
        if len(nonzero) > 10:
            raise NumberFormat("Too many nonzero exponent digits.")
        scale -= int(f"{exponent_sign}{nonzero or 0}")
        if to_int(scale) != scale:
            raise NumberFormat("Scale out of range.")
    return Decimal(sign == "-", (whole + fraction).lstrip("0"), scale)


def decimal_to_long(s: str) -> int:
    """TypeUtils#longValue of a BigDecimal: towards zero and wrapping, but exact where the scale is beyond +-100.

    >>> decimal_to_long("5.7"), decimal_to_long("-0.9"), decimal_to_long("1e19")
    (5, 0, -8446744073709551616)
    """
    is_negative, digits, scale = read_decimal(s)
    if -100 <= scale <= 100:
        whole = _wrapped(digits[: max(len(digits) - scale, 0)] + "0" * -scale)
        return to_long(-whole if is_negative else whole)
    if not digits:
        return 0
    # BigDecimal#longValueExact
    before_point = len(digits) - scale
    if before_point > 19:
        raise Arithmetic("Overflow")
    if before_point <= 0 or digits[before_point:].strip("0"):
        raise Arithmetic("Rounding necessary")
    exact = int(digits[:before_point]) * (-1 if is_negative else 1)
    if not LONG_MIN <= exact <= LONG_MAX:
        raise Arithmetic("Overflow")
    return exact


def decimal_to_int(s: str) -> int:
    """TypeUtils#intValue of a BigDecimal, as decimal_to_long.

    >>> decimal_to_int("4294967297.5")
    1
    """
    return to_int(decimal_to_long(s))
