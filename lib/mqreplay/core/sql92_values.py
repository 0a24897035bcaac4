"""Values of SQL92 filters as Java has them, and how values of two classes are compared.

A string is str, a boolean bool, null None, a Double float, an Integer int, and a Long `Long`: it matters, since a
string beside an Integer is read as an int, and one beside a Long as a long.
"""

from __future__ import annotations

import math

from mqreplay.core.java import to_int, to_long, utf16_key
from mqreplay.core.java_numbers import double_text, parse_double, parse_int, parse_long
from mqreplay.words.errors import ClassCast, NumberFormat, RocketMQError


class Long(int):
    """A java.lang.Long; a plain int is a java.lang.Integer."""


Value = str | bool | int | float | None

_CAST = (
    "class java.lang.Boolean cannot be cast to class java.lang.String "
    "(java.lang.Boolean and java.lang.String are in module java.base of loader 'bootstrap')"
)


def is_number(value: Value) -> bool:
    """Whether Java would call it a Number. No method of RocketMQ: Java's instanceof.

    >>> is_number(1), is_number(True), is_number("1")
    (True, False, False)
    """
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def negate(value: Value) -> Value:
    """UnaryExpression#negate, with Java's wrapping; None for what is no number.

    >>> negate(5), negate(Long(-(2**63))), negate("5")
    (-5, -9223372036854775808, None)
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    if isinstance(value, float):
        return -value
    return Long(to_long(-value)) if isinstance(value, Long) else to_int(-value)


def text_of(value: Value) -> str:
    """A value as Java gives it: String#valueOf.

    >>> text_of(True), text_of(1.5), text_of(Long(7))
    ('true', '1.5', '7')
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return double_text(value)
    return "null" if value is None else value if isinstance(value, str) else str(int(value))


def compare(left: str | bool | int | float, right: str | bool | int | float) -> int:
    """ComparisonExpression#__compare: below 0, 0 or above 0; values that do not go together give -1.

    A string beside a number or a boolean is turned into that class. Raises RocketMQError (RuntimeException) around
    a NumberFormatException, and ClassCast for a boolean on the left of a string.

    >>> compare("2", 10), compare(10, "2"), compare("true", True), compare(1, True)
    (-1, 1, 0, -1)
    """
    if _class(left) == _class(right):
        return _compare_to(left, right)
    if isinstance(left, bool):
        if isinstance(right, str):
            raise ClassCast(_CAST)
        return -1
    try:
        if isinstance(left, str):
            return _compare_to(_turn(left, right), right)
        if isinstance(right, bool):
            return -1
        if isinstance(right, str):
            return _compare_to(left, _turn(right, left))
    except NumberFormat as error:
        raise RocketMQError(str(error)) from error
    if isinstance(left, float) or isinstance(right, float):
        return _compare_to(float(left), float(right))
    return _compare_to(int(left), int(right))


def _class(value: Value) -> type:
    return type(value)


def _turn(text: str, like: str | bool | int | float) -> str | bool | int | float:
    if isinstance(like, bool):
        return text.lower() == "true"
    if isinstance(like, float):
        return parse_double(text)
    return Long(parse_long(text)) if isinstance(like, Long) else parse_int(text)


def _compare_to(left: str | bool | int | float, right: str | bool | int | float) -> int:
    """compareTo of two values of one class."""
    if isinstance(left, str) and isinstance(right, str):
        a, b = utf16_key(left), utf16_key(right)
        return (a > b) - (a < b)
    if isinstance(left, float) and isinstance(right, float):
        # Double.compareTo: NaN is above all and equal to itself, -0.0 below 0.0.
        x = (math.isnan(left), 0.0 if math.isnan(left) else left, math.copysign(1.0, left))
        y = (math.isnan(right), 0.0 if math.isnan(right) else right, math.copysign(1.0, right))
        if x[0] and y[0]:
            return 0
        return (x > y) - (x < y)
    return (left > right) - (left < right)  # type: ignore[operator]
