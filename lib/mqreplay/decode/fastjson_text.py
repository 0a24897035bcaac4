"""Reader of fastjson text, which extends JSON: bare integer keys, and objects as keys.

It accepts exactly what fastjson's writer produces: JSON (RFC 8259), ``{0:56}`` (a map with integer keys) and
``{{"brokerName":"b"}:3}`` (a map with objects as keys). It refuses other text that fastjson's *parser*
accepts (single quotes, comments, trailing commas, ``5.7`` for a long), because no broker writes it.

Codes of the errors: ``empty``, ``too_large``, ``utf_16``, ``nul_bytes``, ``not_utf8``, ``torn`` (cut short),
``trailing_data``, ``bad_syntax``, ``bad_string``, ``bad_number``, ``bad_key``, ``duplicate_key`` and
``too_deep``.
"""

from __future__ import annotations

import json
import re
from math import isfinite
from typing import TypeAlias

from mqreplay.core.java import LONG_MAX, LONG_MIN
from mqreplay.decode.text import TAKE_BAK, expected, fail, refuse_trailing, skip_space, text_of
from mqreplay.words.errors import DecodeError

Scalar: TypeAlias = str | int | float | bool | None
ObjectKey: TypeAlias = tuple[tuple[str, Scalar], ...]
Key: TypeAlias = str | int | ObjectKey
Value: TypeAlias = "Scalar | list[Value] | dict[Key, Value]"

MAX_DEPTH = 32

_WS = r"[ \t\r\n]*"
_INTEGER = r"-?(?:0|[1-9][0-9]*)"
_PLAIN_KEY = re.compile(rf'(?:"([^"\\\x00-\x1f]*)"|({_INTEGER})){_WS}:{_WS}')
_COLON = re.compile(rf"{_WS}:{_WS}")
_MORE_MEMBERS = re.compile(rf"{_WS}([,}}]){_WS}")
_MORE_ITEMS = re.compile(rf"{_WS}([,\]]){_WS}")
_PLAIN_STRING = re.compile(r'"([^"\\\x00-\x1f]*)"')
_STRING_BODY = re.compile(r'"[^"\\\x00-\x1f]*+(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*+)*')
_CUT_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?\Z")
_NUMBER = re.compile(rf"({_INTEGER})((?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)(?![0-9a-zA-Z.+-])")
_NUMBER_LIKE = re.compile(r"[-+0-9.][-+0-9.eE]*")
_WORD = re.compile(r"[A-Za-z]+")
_WORDS: dict[str, bool | None] = {"true": True, "false": False, "null": None}


def read_fastjson(data: bytes) -> Value:
    """Return the single value in ``data``.

    An object is a dict whose keys are str, int (a bare integer) or a tuple of (name, scalar) pairs (an object
    as key, in written order); an array is a list. Source: fastjson 1.2's MapSerializer, which quotes neither
    integer nor object keys.

    Raises:
        DecodeError: the text is not what fastjson writes; ``offset`` is in bytes.

    >>> read_fastjson(b'{"offsetTable":{3:3,4:6}}')
    {'offsetTable': {3: 3, 4: 6}}
    >>> read_fastjson(b'{{"brokerName":"b","queueId":1}:175}')
    {(('brokerName', 'b'), ('queueId', 1)): 175}
    >>> read_fastjson(b'{"a":1,}')
    Traceback (most recent call last):
    mqreplay.words.errors.DecodeError: bad_syntax: expected a key, found '}' (byte 7)
    """
    return read_fastjson_text(text_of(data))


def read_fastjson_text(text: str) -> Value:
    """`read_fastjson` of text that is already decoded, such as a body inside a JSONL line.

    >>> read_fastjson_text('{"brokerAddrs":{0:"127.0.0.1:10911"}}')
    {'brokerAddrs': {0: '127.0.0.1:10911'}}
    """
    start = skip_space(text, 0)
    if start == len(text):
        raise DecodeError("empty", f"there is only white space{TAKE_BAK}", 0)
    value, end = read_value(text, start, 0)
    refuse_trailing(text, end)
    return value


def read_value(text: str, at: int, depth: int) -> tuple[Value, int]:
    """The value that starts at ``at`` (characters, no white space before it), and where it ends.

    ``depth`` is the number of containers around it; more than `MAX_DEPTH` is ``too_deep``.

    >>> read_value('[1,{2:"x"}] ', 0, 0)
    ([1, {2: 'x'}], 11)
    """
    first = text[at : at + 1]
    if first == '"':
        return read_string(text, at)
    if first == "{":
        return _read_object(text, at, depth)
    if first == "[":
        return _read_array(text, at, depth)
    return _read_scalar(text, at)


def _read_object(text: str, at: int, depth: int) -> tuple[dict[Key, Value], int]:
    _refuse_depth(text, at, depth)
    members: dict[Key, Value] = {}
    at = skip_space(text, at + 1)
    if text[at : at + 1] == "}":
        return members, at + 1
    while True:
        key, value_at = read_key(text, at, depth)
        if key in members:
            fail("duplicate_key", f"the key {key!r} is twice in one object", text, at)
        members[key], end = read_value(text, value_at, depth + 1)
        more = _MORE_MEMBERS.match(text, end)
        if more is None:
            expected("',' or '}'", text, end)
        if more[1] == "}":
            return members, more.end(1)
        at = more.end()


def _read_array(text: str, at: int, depth: int) -> tuple[list[Value], int]:
    _refuse_depth(text, at, depth)
    items: list[Value] = []
    at = skip_space(text, at + 1)
    if text[at : at + 1] == "]":
        return items, at + 1
    while True:
        item, end = read_value(text, at, depth + 1)
        items.append(item)
        more = _MORE_ITEMS.match(text, end)
        if more is None:
            expected("',' or ']'", text, end)
        if more[1] == "]":
            return items, more.end(1)
        at = more.end()


def _refuse_depth(text: str, at: int, depth: int) -> None:
    if depth >= MAX_DEPTH:
        fail("too_deep", f"more than {MAX_DEPTH} containers in each other, RocketMQ writes a handful", text, at)


def read_key(text: str, at: int, depth: int) -> tuple[Key, int]:
    """The key at ``at`` (characters) and where its value starts, past the colon.

    >>> read_key('0:56', 0, 0)
    (0, 2)
    """
    plain = _PLAIN_KEY.match(text, at)
    if plain is not None:
        bare = plain[2]
        return (plain[1] if bare is None else long_of(bare, text, at)), plain.end()
    first = text[at : at + 1]
    key: Key
    if first == '"':
        key, end = read_string(text, at)
    elif first == "{":
        members, end = _read_object(text, at, depth + 1)
        key = _object_key(members, text, at)
    else:
        number = _NUMBER_LIKE.match(text, at)
        if number is None:
            expected("a key", text, at)
        end = number.end()
        key = 0 if skip_space(text, end) == len(text) else long_of(number[0], text, at)
    colon = _COLON.match(text, end)
    if colon is None:
        expected("':'", text, end)
    return key, colon.end()


def _object_key(members: dict[Key, Value], text: str, at: int) -> ObjectKey:
    pairs: list[tuple[str, Scalar]] = []
    for name, value in members.items():
        if not isinstance(name, str) or isinstance(value, (dict, list)):
            fail("bad_key", "an object as a key has more than names and plain values", text, at)
        pairs.append((name, value))
    return tuple(pairs)


def read_string(text: str, at: int) -> tuple[str, int]:
    """The string whose opening quote is at ``at`` (characters), and where it ends. Escapes are JSON's.

    >>> read_string('"a\\\\tb",', 0)
    ('a\\tb', 6)
    """
    plain = _PLAIN_STRING.match(text, at)
    if plain is not None:
        return plain[1], plain.end()
    body = _STRING_BODY.match(text, at)
    if body is None:
        expected("a string", text, at)
    end = body.end()
    if end >= len(text) or _CUT_ESCAPE.match(text, end):
        fail("torn", f"cut short inside a string{TAKE_BAK}", text, len(text))
    if text[end] != '"':
        fail("bad_string", f"{text[end : end + 2]!r} may not stand in a string", text, end)
    value: str = json.loads(text[at : end + 1])
    if any("\ud800" <= char <= "\udfff" for char in value):
        fail("bad_string", "half a surrogate pair is not a character", text, at)
    return value, end + 1


def _read_scalar(text: str, at: int) -> tuple[Scalar, int]:
    number = _NUMBER.match(text, at)
    if number is not None:
        if not number[2]:
            return long_of(number[1], text, at), number.end()
        real = float(number[0])
        if not isfinite(real):
            fail("bad_number", f"{number[0][:40]} is too large for a double", text, at)
        return real, number.end()
    word = _WORD.match(text, at)
    if word is not None:
        if word[0] in _WORDS:
            return _WORDS[word[0]], word.end()
        if word.end() == len(text) and any(whole.startswith(word[0]) for whole in _WORDS):
            fail("torn", f"cut short inside a word{TAKE_BAK}", text, len(text))
    like = _NUMBER_LIKE.match(text, at)
    if like is not None:
        if like.end() == len(text):
            fail("torn", f"cut short inside a number{TAKE_BAK}", text, len(text))
        fail("bad_number", f"{like[0][:40]!r} is not a number as fastjson writes it", text, at)
    expected("a value", text, at)


def long_of(digits: str, text: str, at: int) -> int:
    """``digits`` as a 64-bit integer in the form Java writes it; ``text`` and ``at`` say where it stands.

    >>> long_of("9223372036854775808", "9223372036854775808", 0)
    Traceback (most recent call last):
    mqreplay.words.errors.DecodeError: bad_number: 9223372036854775808 is not a 64-bit integer (byte 0)
    """
    bare = digits.removeprefix("-")
    canonical = bare.isascii() and bare.isdigit() and (bare[0] != "0" or digits == "0")
    if not canonical or len(bare) > 19 or not LONG_MIN <= int(digits) <= LONG_MAX:
        fail("bad_number", f"{digits[:40]} is not a 64-bit integer", text, at)
    return int(digits)
