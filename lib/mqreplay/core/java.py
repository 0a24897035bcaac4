"""Differences of Java from Python that affect RocketMQ's results.

Integers wrap, casts from double saturate, strings compare and hash by UTF-16 unit, a hash map is walked bucket by
bucket, and white space is another set. Everything here follows the Java Language Specification or the OpenJDK class
named beside it.
"""

from __future__ import annotations

import math
import struct
import unicodedata

INT_MAX = 2**31 - 1
INT_MIN = -(2**31)
LONG_MAX = 2**63 - 1
LONG_MIN = -(2**63)
_HARD_SPACES = "\u00a0\u2007\u202f"
_CONTROL = "\t\n\x0b\x0c\r\x1c\x1d\x1e\x1f"


def to_int(x: int) -> int:
    """Wrap x into a Java int, as int arithmetic and the cast ``(int)`` of a long do.

    No method of RocketMQ: Java itself (JLS 5.1.3).

    >>> to_int(2**31), to_int(-(2**31) - 1), to_int(7)
    (-2147483648, 2147483647, 7)
    """
    return ((x + 0x80000000) & 0xFFFFFFFF) - 0x80000000


def to_long(x: int) -> int:
    """Wrap x into a Java long, as long arithmetic does.

    No method of RocketMQ: Java itself (JLS 15.18.2).

    >>> to_long(2**63), to_long(-(2**63) - 1), to_long(-7)
    (-9223372036854775808, 9223372036854775807, -7)
    """
    return ((x + 0x8000000000000000) & 0xFFFFFFFFFFFFFFFF) - 0x8000000000000000


def double_to_long(d: float) -> int:
    """Cast a double to long as ``(long) d`` does: towards zero, saturating, NaN is 0.

    No method of RocketMQ: Java itself (JLS 5.1.3).

    >>> double_to_long(-1.9), double_to_long(1e300), double_to_long(float("nan"))
    (-1, 9223372036854775807, 0)
    """
    if math.isnan(d):
        return 0
    if d >= LONG_MAX:
        return LONG_MAX
    if d <= LONG_MIN:
        return LONG_MIN
    return int(d)


def utf16_key(s: str) -> bytes:
    """A sort key that orders strings as String#compareTo does: by UTF-16 unit, a prefix first.

    Characters beyond U+FFFF come before U+E000..U+FFFF, unlike in Python's own order. Lone surrogates are
    kept.

    >>> sorted(["\\uff21", "\\U0001f600", "b", "ab", "a"], key=utf16_key)
    ['a', 'ab', 'b', '😀', 'Ａ']
    """
    return s.encode("utf-16-be", "surrogatepass")


def utf16_units(s: str) -> tuple[int, ...]:
    """The UTF-16 units of a string, as String#charAt gives them.

    >>> [hex(unit) for unit in utf16_units("a\\U0001f600")]
    ['0x61', '0xd83d', '0xde00']
    """
    data = utf16_key(s)
    return struct.unpack(f">{len(data) // 2}H", data)


def string_hash(s: str) -> int:
    """String#hashCode: 31-polynomial over UTF-16 units, in wrapping int arithmetic.

    >>> string_hash("Aa") == string_hash("BB") == 2112, string_hash(""), string_hash("hello")
    (True, 0, 99162322)
    """
    units = s.encode("latin-1") if s.isascii() else utf16_units(s)
    h = 0
    for unit in units:
        h = (31 * h + unit) & 0xFFFFFFFF
    return to_int(h)


def split_on_char(s: str, separator: str) -> list[str]:
    """String#split for one plain character: empty parts at the end are dropped, those before are kept.

    >>> split_on_char("@b", "@"), split_on_char("r1@", "@"), split_on_char("@@", "@"), split_on_char("", "@")
    (['', 'b'], ['r1'], [], [''])
    """
    if separator not in s:
        return [s]
    parts = s.split(separator)
    while parts and not parts[-1]:
        parts.pop()
    return parts


def trim(s: str) -> str:
    """String#trim: drop everything up to and including U+0020 at both ends, and nothing beyond it.

    >>> trim(" \\t a b \\x00"), trim("\\u00a0a")
    ('a b', '\\xa0a')
    """
    start, end = 0, len(s)
    while start < end and s[start] <= " ":
        start += 1
    while start < end and s[end - 1] <= " ":
        end -= 1
    return s[start:end]


def long_hash(v: int) -> int:
    """Long#hashCode, a Java int: both halves of the long, xored.

    >>> long_hash(7), long_hash(-1), long_hash(2**32)
    (7, 0, 1)
    """
    return to_int((v ^ (v >> 32)) & 0xFFFFFFFF)


def spread(h: int) -> int:
    """HashMap#hash of a hashCode, as unsigned 32 bits: the upper half is mixed into the lower.

    >>> spread(65536), spread(-1) == 0xFFFF0000
    (65537, True)
    """
    unsigned = h & 0xFFFFFFFF
    return unsigned ^ (unsigned >> 16)


def is_blank(s: str | None) -> bool:
    """Return whether s is None, empty or only Character.isWhitespace, as in UtilAll#isBlank.

    A no-break space is not white space to Java.

    >>> is_blank(None), is_blank(" \\t"), is_blank("\\u00a0")
    (True, True, False)
    """
    return s is None or all(_is_whitespace(char) for char in s)


def _is_whitespace(char: str) -> bool:
    return char in _CONTROL or (unicodedata.category(char) in ("Zs", "Zl", "Zp") and char not in _HARD_SPACES)
