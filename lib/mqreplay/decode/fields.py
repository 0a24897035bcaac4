"""Typed fields of a decoded object, with errors that name the field.

For configuration files, whose absent fields have the default that RocketMQ's own Java class has, since a
broker that loads such a file takes that default.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from mqreplay.core.java import INT_MAX, LONG_MAX
from mqreplay.decode.fastjson_text import Key, Value
from mqreplay.words.errors import DecodeError


class DataVersion(NamedTuple):
    """RocketMQ's DataVersion: how often a table changed, and when (epoch ms); None if missing."""

    counter: int | None
    timestamp: int | None


def wrong_type(name: str, wanted: str, found: object) -> DecodeError:
    """Return the error for a field of a wrong type.

    >>> raise wrong_type("queue_id", "a whole number", "7")
    Traceback (most recent call last):
    mqreplay.words.errors.DecodeError: wrong_type: queue_id should be a whole number, and is '7'
    """
    return DecodeError("wrong_type", f"{name} should be {wanted}, and is {str_of(found)}")


def str_of(found: object) -> str:
    """Return a value for an error message: its repr, cut to 60 characters.

    >>> str_of("x" * 100)
    "'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx..."
    """
    # Only the shown part of a text: a line may have 16 MiB.
    text = repr(found[:60] if isinstance(found, str) else found)
    return text if len(text) <= 60 else text[:57] + "..."


def object_of(value: object, name: str) -> Mapping[Key, Value]:
    """Return ``value`` as an object.

    >>> object_of({"a": 1}, "body")
    {'a': 1}
    """
    if not isinstance(value, dict):
        raise wrong_type(name, "an object", value)
    return value


def table_of(root: Value, table: str) -> Mapping[Key, Value]:
    """The object named ``table`` in ``root``; a root without it is ``foreign``: another file.

    >>> table_of({"other": {}}, "topicConfigTable")
    Traceback (most recent call last):
    mqreplay.words.errors.DecodeError: foreign: there is no 'topicConfigTable': it is another file (byte 0)
    """
    if not isinstance(root, dict) or table not in root:
        raise DecodeError("foreign", f"there is no {table!r}: it is another file", 0)
    return object_of(root[table], table)


def text_field(fields: Mapping[Key, Value], name: str, default: str | None) -> str | None:
    """The string called ``name``, or ``default`` if absent or null.

    >>> text_field({"topicName": "orders"}, "topicName", None)
    'orders'
    """
    value = fields.get(name)
    if value is None:
        return default
    if not isinstance(value, str):
        raise wrong_type(name, "a string", value)
    return value


def int_field(fields: Mapping[Key, Value], name: str, default: int, low: int = 0, high: int = INT_MAX) -> int:
    """The integer called ``name`` within ``low`` to ``high``, or ``default`` if absent or null.

    >>> int_field({"perm": 6}, "perm", 0), int_field({}, "perm", 6)
    (6, 6)
    """
    value = fields.get(name)
    if value is None:
        return default
    if type(value) is not int:
        raise wrong_type(name, "a whole number", value)
    if not low <= value <= high:
        raise DecodeError("bad_number", f"{name} should be {low} to {high}, and is {value}")
    return value


def bool_field(fields: Mapping[Key, Value], name: str, default: bool) -> bool:
    """The boolean called ``name``, or ``default`` if absent or null.

    >>> bool_field({"order": True}, "order", False)
    True
    """
    value = fields.get(name)
    if value is None:
        return default
    if not isinstance(value, bool):
        raise wrong_type(name, "true or false", value)
    return value


def data_version_of(root: Mapping[Key, Value]) -> DataVersion:
    """Return the dataVersion of a file. It is only a hint, so an invalid one is ignored.

    Versions 3.x and 4.0 spell its time ``timestatmp``.

    >>> data_version_of({"dataVersion": {"counter": 31, "timestamp": 1795229346683}})
    DataVersion(counter=31, timestamp=1795229346683)
    """
    version = root.get("dataVersion")
    if not isinstance(version, dict):
        return DataVersion(None, None)
    counter, timestamp = version.get("counter"), version.get("timestamp", version.get("timestatmp"))
    return DataVersion(counter if type(counter) is int else None, timestamp if type(timestamp) is int else None)


def bare_int(key: object, what: str) -> int:
    """Return an integer key, with or without quotes, 0 to 2^63 - 1.

    >>> bare_int("17", "a broker id"), bare_int(17, "a broker id")
    (17, 17)
    """
    if isinstance(key, str) and key.isascii() and key.isdigit() and len(key) <= 19 and str(int(key)) == key:
        key = int(key)
    if type(key) is not int:
        raise wrong_type(what, "a whole number", key)
    if not 0 <= key <= LONG_MAX:
        raise DecodeError("bad_number", f"{what} is not 0 to {LONG_MAX}, and is {key}")
    return key
