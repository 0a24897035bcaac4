"""A line of a recorder's JSONL file as an object: strict, unambiguous JSON that Spark can hold.

Codes of the errors: ``not_utf8``, ``bom``, ``torn`` (cut short), ``bad_syntax``, ``bad_number`` (NaN,
Infinity, more digits than any number has), ``bad_string`` (half a surrogate pair), ``duplicate_key``,
``too_deep``, ``too_large``, ``wrong_type`` (no object).
"""

from __future__ import annotations

import json
from typing import Any, NoReturn

from mqreplay.decode.fields import str_of
from mqreplay.decode.text import refuse_many
from mqreplay.words.errors import DecodeError

MAX_DEPTH = 100


def read_object(line: bytes) -> dict[str, Any]:
    """Return the JSON object on ``line`` (bytes, with or without line feed).

    Raises:
        DecodeError: the line is incomplete, or not one JSON object.

    >>> read_object(b'{"ts":1795228808333,"kind":"QUERY"}')
    {'ts': 1795228808333, 'kind': 'QUERY'}
    >>> read_object(b'{"ts":1,"ts":2}')
    Traceback (most recent call last):
    mqreplay.words.errors.DecodeError: duplicate_key: 'ts' is twice in one object
    """
    record: dict[str, Any]
    try:
        text = line.decode("utf-8")
        refuse_many(text, commas=False)
        record = _DECODER.decode(text)
    except UnicodeDecodeError as error:
        detail = f"byte 0x{line[error.start]:02x} is not UTF-8: the line is damaged"
        raise DecodeError("not_utf8", detail, error.start) from None
    except json.JSONDecodeError as error:
        raise _syntax_error(error) from None
    except RecursionError:
        raise _too_deep() from None
    except ValueError:
        # json gives this for an integer of more than 4,300 digits.
        raise DecodeError("bad_number", "an integer of thousands of digits") from None
    if _is_too_deep(record, text):
        raise _too_deep()
    if record.__class__ is not dict:
        raise DecodeError("wrong_type", f"a line should be one object, and is {str_of(record)}", 0)
    if b"\\u" in line:
        _refuse_half_pairs(text)
    return record


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) != len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise DecodeError("duplicate_key", f"{name!r} is twice in one object")
            seen.add(name)
    return record


def _too_deep() -> DecodeError:
    return DecodeError("too_deep", f"more than {MAX_DEPTH} containers in each other, RocketMQ writes a handful")


def _refuse_constant(word: str) -> NoReturn:
    raise DecodeError("bad_number", f"{word} is not a number in JSON")


def _is_too_deep(value: Any, text: str) -> bool:
    # Most lines have few containers in all. No recursion here: Python's allowed depth depends on the caller.
    if text.count("{") + text.count("[") <= MAX_DEPTH:
        return False
    level = [value]
    for _ in range(MAX_DEPTH):
        inner = (one.values() if isinstance(one, dict) else one for one in level)
        level = [one for values in inner for one in values if isinstance(one, (dict, list))]
        if not level:
            return False
    return True


_DECODER = json.JSONDecoder(object_pairs_hook=_members, parse_constant=_refuse_constant)


def _syntax_error(error: json.JSONDecodeError) -> DecodeError:
    at = len(error.doc[: error.pos].encode("utf-8"))
    if error.doc.startswith("\ufeff"):
        return DecodeError("bom", "a byte order mark, which no recorder writes: an editor saved this file", 0)
    rest = error.doc[error.pos :].strip()
    if not rest or error.msg.startswith("Unterminated string") or _is_cut(rest):
        return DecodeError("torn", f"the line is cut short ({error.msg}); the recorder died in it", at)
    return DecodeError("bad_syntax", f"{error.msg}, found {str_of(rest)}", at)


def _is_cut(rest: str) -> bool:
    # A word or an escape that is cut at the end of the line.
    return any(word.startswith(rest) for word in ("true", "false", "null")) or rest in ("-", "\\")


def _refuse_half_pairs(text: str) -> None:
    # Decoded again, because half a pair may be in any string; such escapes are rare.
    try:
        json.dumps(json.loads(text), ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        raise DecodeError("bad_string", "half a surrogate pair is not a character") from None
