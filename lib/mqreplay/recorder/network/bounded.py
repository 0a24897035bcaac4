"""Values of a body that the recorder can compute with and write, for any answer of a server.

Whole numbers have at most 64 bits, and an object's keys are strings, so they can be sorted. A body with anything else
is refused. Half of a surrogate pair, which UTF-8 cannot write, becomes its escape: one bad name must not hide others.
"""

from __future__ import annotations

import json
import math
from typing import Final

from mqreplay.core.java import LONG_MAX, LONG_MIN
from mqreplay.decode.fastjson_text import Value, read_fastjson
from mqreplay.words.errors import DecodeError

MOST_DIGITS: Final = 19  # of a number of 64 bits


def read_bounded(body: bytes, object_keys: bool = False) -> Value:
    r"""Return the value of a body: JSON, or the extensions that fastjson writes.

    ``object_keys``: keys may be objects, which the value has as sorted tuples of pairs.

    Raises:
        DecodeError: it is neither, or it has a number or key out of bounds.

    >>> read_bounded(b'{0:"h:1"}')
    {'0': 'h:1'}
    >>> print(read_bounded(b'{"a":"\\ud800"}')["a"])
    \ud800
    >>> read_bounded(b'{"a":9223372036854775808}')
    Traceback (most recent call last):
    mqreplay.words.errors.DecodeError: bad_number: a number does not fit into 64 bits
    """
    try:
        value: Value = json.loads(body, parse_int=_int)
    except (ValueError, RecursionError):
        value = read_fastjson(body)
    try:
        return _bounded(value, object_keys)
    except RecursionError:
        raise DecodeError("too_deep", "the body is nested too deeply") from None


def is_long(number: int) -> bool:
    """Return whether a number fits into a Java long."""
    return LONG_MIN <= number <= LONG_MAX


def _int(digits: str) -> int:
    if len(digits) > MOST_DIGITS + 1:
        raise DecodeError("bad_number", f"a number of {len(digits)} digits does not fit into 64 bits")
    return int(digits)


def _bounded(value: Value, object_keys: bool) -> Value:
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, dict):
        found: dict[object, Value] = {}
        for key, each in value.items():
            name = _key(key, object_keys)
            if name in found:
                raise DecodeError("duplicate_key", "a key is twice in an object")
            found[name] = _bounded(each, object_keys)
        return found  # type: ignore[return-value]
    if isinstance(value, list):
        return [_bounded(each, object_keys) for each in value]
    if type(value) is int and not is_long(value):
        raise DecodeError("bad_number", "a number does not fit into 64 bits")
    if isinstance(value, float) and not math.isfinite(value):
        raise DecodeError("bad_number", "a number is not finite")
    return value


def _key(key: object, object_keys: bool) -> object:
    if isinstance(key, str):
        return _text(key)
    if type(key) is int and is_long(key):
        return str(key)
    if object_keys and isinstance(key, tuple):
        return tuple(sorted((_text(str(name)), _bounded(each, False)) for name, each in key))
    raise DecodeError("bad_key", "a key of an object is neither a string nor a whole number of 64 bits")


def _text(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()
