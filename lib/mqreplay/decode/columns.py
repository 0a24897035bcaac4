"""The plain columns of a kind of record: fields, types and bounds.

A column's type is written as in a Spark DDL string (``string``, ``boolean``, ``int``, ``bigint``, ``double``,
``array<struct<broker_name:string,queue_id:int>>``, ``map<bigint,string>``), with one type of our own at the
top level: ``timestamp_ms``, an int of epoch milliseconds (UTC), which a table holds as a timestamp. In Python
a struct is a tuple, an array a list, a map a dict; times inside a struct stay bigint, read as ``maybe_ms``: epoch
milliseconds, or 0 or -1 for none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mqreplay.decode.fastjson_text import Key, Value
from mqreplay.decode.fields import str_of, wrong_type
from mqreplay.decode.jsonl import read_object
from mqreplay.words.errors import DecodeError

# 2000-01-01 and 2100-01-01: seconds, nanoseconds and zero all fall outside.
TIME_MIN, TIME_MAX = 946_684_800_000, 4_102_444_800_000

_BOUNDS: dict[str, tuple[int, int, str]] = {
    "timestamp_ms": (TIME_MIN, TIME_MAX, "bad_time"),
    "maybe_ms": (-1, TIME_MAX, "bad_time"),
    "int": (-(2**31), 2**31 - 1, "bad_number"),
    "bigint": (-(2**63), 2**63 - 1, "bad_number"),
}
_NOT_NEGATIVE = {"queue_id"}
_CLASSES: dict[str, tuple[type, str]] = {"string": (str, "a string"), "boolean": (bool, "true or false")}


class PlainColumns:
    """The fields of a kind that are taken unchanged: built once per kind, applied to every record."""

    def __init__(self, columns: str) -> None:
        """Take ``columns`` as in the DDL of Spark: name, type, and ``not null`` for a required one."""
        each = [column.split() for column in columns.split(",")]
        self.types = types = {name: kind for name, kind, *_ in each}
        self.required = tuple(name for name, _, *rest in each if rest == ["not", "null"])
        self._typed = [
            (tuple(name for name in types if types[name] == kind), python, words)
            for kind, (python, words) in _CLASSES.items()
        ]
        bounds: dict[tuple[int, int, str], list[str]] = {}
        for name, kind in types.items():
            if kind in _BOUNDS:
                low, high, code = _BOUNDS[kind]
                bounds.setdefault((0 if name in _NOT_NEGATIVE else low, high, code), []).append(name)
        self.bounded = [(tuple(names), *bound) for bound, names in bounds.items()]

    def take(self, record: Mapping[str, Any]) -> dict[str, object]:
        """Return the columns of one record: every name of ``types``, None if the field is absent or null.

        Raises:
            DecodeError: missing_field, wrong_type, bad_number or bad_time, naming the field.

        >>> columns = PlainColumns("ts timestamp_ms not null, queue_id int, remark string")
        >>> columns.take({"ts": 1795228808333, "queue_id": 3, "new": 1})
        {'remark': None, 'ts': 1795228808333, 'queue_id': 3}
        >>> columns.take({"ts": 1795228808})
        Traceback (most recent call last):
        mqreplay.words.errors.DecodeError: bad_time: ts should be epoch ms of 2000 to 2100, and is 1795228808
        """
        get = record.get
        out: dict[str, object] = {}
        for names, python, words in self._typed:
            for name in names:
                value = get(name)
                if value is not None and value.__class__ is not python:
                    raise wrong_type(name, words, value)
                out[name] = value
        for names, low, high, code in self.bounded:
            for name in names:
                value = get(name)
                # A bool is of another class, so it is not accepted as 0 or 1.
                if value is not None and (value.__class__ is not int or not low <= value <= high):
                    raise out_of_bounds(name, value, low, high, code)
                out[name] = value
        for name in self.required:
            if out[name] is None:
                raise missing(name)
        return out

    def decode(self, line: bytes) -> dict[str, object]:
        """Return the columns of a line of JSON.

        Raises:
            DecodeError: those of `read_object` and `take`.

        >>> PlainColumns("queue_id int, remark string").decode(b'{"queue_id":3}')
        {'remark': None, 'queue_id': 3}
        """
        return self.take(read_object(line))


def instant_field(fields: Mapping[Key, Value], name: str, default: int) -> int:
    """Return the instant ``name`` in a body: epoch ms, 0 or -1 for none; ``default`` if absent or null.

    Raises:
        DecodeError: wrong_type; bad_time, if a table's timestamp cannot hold it.

    >>> instant_field({"lastUpdateTimestamp": 1795228799803}, "lastUpdateTimestamp", 0)
    1795228799803
    >>> instant_field({"bornTime": 2**63 - 1}, "bornTime", 0)
    Traceback (most recent call last):
    mqreplay.words.errors.DecodeError: bad_time: bornTime should be epoch ms of 1970 to 2100, and is 9223372036854775807
    """
    value = fields.get(name)
    if value is None:
        return default
    low, high, code = _BOUNDS["maybe_ms"]
    if type(value) is not int or not low <= value <= high:
        raise out_of_bounds(name, value, low, high, code)
    return value


def missing(name: str) -> DecodeError:
    """Return the error for a missing required field.

    >>> raise missing("ts")
    Traceback (most recent call last):
    mqreplay.words.errors.DecodeError: missing_field: ts is absent or null, but the record needs it
    """
    return DecodeError("missing_field", f"{name} is absent or null, but the record needs it")


def out_of_bounds(name: str, value: object, low: int, high: int, code: str) -> DecodeError:
    """Return the error for a number outside ``low`` to ``high``; ``code`` bad_time is for instants.

    >>> raise out_of_bounds("ts", 5, TIME_MIN, TIME_MAX, "bad_time")
    Traceback (most recent call last):
    mqreplay.words.errors.DecodeError: bad_time: ts should be epoch ms of 2000 to 2100, and is 5
    """
    if value.__class__ is not int:
        return wrong_type(name, "a whole number", value)
    since = "of 2000" if low == TIME_MIN else "of 1970"
    wanted = f"epoch ms {since} to 2100" if code == "bad_time" else f"{low} to {high}"
    return DecodeError(code, f"{name} should be {wanted}, and is {str_of(value)}")


def one_of(name: str, value: object, known: tuple[str, ...]) -> str:
    """Return ``value`` if it is one of the ``known`` values of the field ``name``.

    Raises:
        DecodeError: unknown_kind.

    >>> one_of("kind", "DELETE", ("UPDATE", "QUERY"))
    Traceback (most recent call last):
    mqreplay.words.errors.DecodeError: unknown_kind: kind should be UPDATE or QUERY, and is 'DELETE'
    """
    if not isinstance(value, str) or value not in known:
        raise DecodeError("unknown_kind", f"{name} should be {' or '.join(known)}, and is {str_of(value)}")
    return value


def source_of(record: Mapping[str, Any], known: tuple[str, ...]) -> str:
    """Return the ``source`` of a line, one of the ``known``; the first one by default.

    Raises:
        DecodeError: unknown_kind.

    >>> source_of({}, ("assignment", "client_log")), source_of({"source": "client_log"}, ("assignment", "client_log"))
    ('assignment', 'client_log')
    """
    value = record.get("source")
    return known[0] if value is None else one_of("source", value, known)
