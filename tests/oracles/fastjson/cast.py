"""Values of any kind to int and long, as fastjson 1.2 casts them. Follows TypeUtils#castToInt and #castToLong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from mqreplay.core.java import INT_MAX, INT_MIN, LONG_MAX, LONG_MIN
from mqreplay.core.java_numbers import parse_int, parse_long
from oracles.fastjson.numbers import decimal_to_int, decimal_to_long, java_digits
from oracles.fastjson.scan import FastjsonError


class Number(NamedTuple):
    """An integer or a decimal, as written."""

    written: str
    is_float: bool


def cast_to_int(value: Any) -> int | None:
    """TypeUtils#castToInt; None is null. Raises FastjsonError or NumberFormat for what is no int.

    >>> cast_to_int("1,000"), cast_to_int("3.0"), cast_to_int(True), cast_to_int("")
    (1000, 3, 1, None)
    """
    if isinstance(value, Number):
        if value.is_float:
            return decimal_to_int(value.written.rstrip("LSBFD"))
        return java_digits(value.written, INT_MIN, INT_MAX)
    if isinstance(value, str):
        if value in ("", "null", "NULL"):
            return None
        plain = value.replace(",", "")
        whole, dot, zeros = plain.rpartition(".")
        return parse_int(whole if dot and not zeros.strip("0") else plain)
    return _cast_rest(value, cast_to_int, "int")


def cast_to_long(value: Any, of_bool: bool = True) -> int | None:
    """TypeUtils#castToLong; None is null. (Dates in quotes, which fastjson casts too, are refused.)

    of_bool: whether true is 1, as in 1.2.83; 1.2.69 refuses it.

    >>> cast_to_long("9223372036854775807"), cast_to_long(False), cast_to_long("null")
    (9223372036854775807, 0, None)
    """
    if isinstance(value, Number):
        if value.is_float:
            return decimal_to_long(value.written.rstrip("LSBFD"))
        return java_digits(value.written, LONG_MIN, LONG_MAX)
    if isinstance(value, str):
        return None if value in ("", "null", "NULL") else parse_long(value.replace(",", ""))
    if isinstance(value, bool) and not of_bool:
        raise FastjsonError(f"can not cast to long, value : {str(value).lower()}")
    return _cast_rest(value, cast_to_long, "long")


def _cast_rest(value: Any, cast: Callable[[Any], int | None], name: str) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool):
        return int(value)
    # An AtomicInteger or AtomicLong that was written as a bean.
    if isinstance(value, dict) and value.keys() == {"andIncrement", "andDecrement"}:
        return cast(list(value.values())[1])
    raise FastjsonError(f"can not cast to {name}, value : {value}")
