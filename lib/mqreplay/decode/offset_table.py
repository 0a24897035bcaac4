"""The table {"topic@group": {queue id: offset}} inside consumerOffset.json, read fast and strictly.

A regular expression reads an entry at a time, and all numbers are converted together: 25 MB/s on one core, instead
of 8 MB/s with single tokens. A table that it does not match completely goes to the careful reader, which accepts rare
forms (an escape in a key) or reports the error and its position. A property test compares both readers.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field

from mqreplay.core.java import INT_MAX, LONG_MAX, LONG_MIN
from mqreplay.decode.fastjson_text import Key, Value, long_of, read_key, read_value
from mqreplay.decode.text import expected, fail, skip_space

_WS = r"[ \t\r\n]*+"
_ID = r'(?:(?:0|[1-9][0-9]{0,9})|"(?:0|[1-9][0-9]{0,9})")'
_QUEUE = rf"{_ID}{_WS}:{_WS}(?:0|-?[1-9][0-9]{{0,18}}){_WS}"
_QUEUES = rf"\{{{_WS}((?:{_QUEUE}(?:,{_WS}{_QUEUE})*)?)\}}"
# No possessive repeat of a group: Python before 3.11.4 forgets the end of its last round.
_ENTRY = re.compile(rf'"([^"\\\x00-\x1f]*+)"{_WS}:{_WS}{_QUEUES}{_WS}([,}}]){_WS}')
_MORE = re.compile(rf"{_WS}([,}}]){_WS}")
_QUEUE_KEY = re.compile(rf'(?:"(-?[0-9]+)"|(-?[0-9]+)){_WS}:{_WS}')
_OFFSET = re.compile(r"[-+0-9][-+0-9.eE]*")


@dataclass(slots=True)
class Entries:
    """Keys as written, how many queues each has, and all queues' ids and offsets (messages) in one run."""

    keys: list[str] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    queue_ids: list[int] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)


def read_offset_table(text: str, at: int) -> tuple[Entries, int]:
    """Return the table that starts at ``at`` (characters), and its end.

    Raises:
        DecodeError: torn, duplicate_key, bad_number, wrong_type and others, with the byte.

    >>> read_offset_table('{"t@g":{0:5,1:-1}}', 0)
    (Entries(keys=['t@g'], counts=[2], queue_ids=[0, 1], offsets=[5, -1]), 18)
    """
    return _take_fast(text, at) or read_table_carefully(text, at)


def read_members(
    text: str, start: int, names: Collection[str], twice: str
) -> tuple[dict[str, Entries], dict[Key, Value], int]:
    """Return the offset tables ``names`` of the object at ``start`` (characters), its other members, and its end.

    ``twice`` is the form of the error for a key that is there twice.

    >>> read_members('{"offsetTable":{"t@g":{0:5}},"n":1}', 0, ("offsetTable",), "twice: {}")[1:]
    ({'n': 1}, 35)
    """
    tables: dict[str, Entries] = {}
    others: dict[Key, Value] = {}
    at = skip_space(text, start + 1)
    if text[at : at + 1] == "}":
        return tables, others, at + 1
    while True:
        key, value_at = read_key(text, at, 0)
        if key in others or key in tables:
            fail("duplicate_key", twice.format(key), text, at)
        if key in names:
            tables[str(key)], end = read_offset_table(text, value_at)
        else:
            others[key], end = read_value(text, value_at, 1)
        more = _MORE.match(text, end)
        if more is None:
            expected("',' or '}'", text, end)
        if more[1] == "}":
            return tables, others, more.end(1)
        at = more.end()


def _take_fast(text: str, at: int) -> tuple[Entries, int] | None:
    if text[at : at + 1] != "{":
        return None
    at = skip_space(text, at + 1)
    keys: list[str] = []
    bodies: list[str] = []
    more = ","
    match = _ENTRY.match
    while more == ",":
        entry = match(text, at)
        if entry is None:
            return None
        key, body, more = entry.groups()
        keys.append(key)
        bodies.append(body)
        at = entry.end(3) if more == "}" else entry.end()
    entries = Entries(keys=keys, counts=[body.count(":") for body in bodies])
    numbers = ",".join(filter(None, bodies)).replace(":", ",").replace('"', "")
    run = list(map(int, numbers.split(","))) if numbers else []
    entries.queue_ids, entries.offsets = run[::2], run[1::2]
    return (entries, at) if _fits(entries) else None


def _fits(entries: Entries) -> bool:
    if not entries.queue_ids:
        return len(set(entries.keys)) == len(entries.keys)
    if max(entries.queue_ids) > INT_MAX or len(set(entries.keys)) != len(entries.keys):
        return False
    if min(entries.offsets) < LONG_MIN or max(entries.offsets) > LONG_MAX:
        return False
    start = 0
    for count in entries.counts:
        if count > 1 and len(set(entries.queue_ids[start : start + count])) != count:
            return False
        start += count
    return True


def read_table_carefully(text: str, at: int) -> tuple[Entries, int]:
    """Read the offset table one token at a time: slower, with exact errors.

    >>> read_table_carefully('{"t@g":{-1:5}}', 0)
    Traceback (most recent call last):
    mqreplay.words.errors.DecodeError: bad_number: queue id -1 is not 0 to 2147483647 (byte 8)
    """
    _refuse_other(text, at, "the offset table")
    entries = Entries()
    seen: set[str] = set()
    at = skip_space(text, at + 1)
    if text[at : at + 1] == "}":
        return entries, at + 1
    while True:
        if text[at : at + 1] not in ('"', ""):
            fail("bad_key", f"a quoted key topic@group is expected, not {text[at]!r}", text, at)
        key, value_at = read_key(text, at, 1)
        if not isinstance(key, str) or key in seen:
            fail("duplicate_key", f"{key!r} is there twice: two files are mixed", text, at)
        seen.add(key)
        before = len(entries.offsets)
        end = _read_queues(text, value_at, key, entries)
        entries.keys.append(key)
        entries.counts.append(len(entries.offsets) - before)
        more = _MORE.match(text, end)
        if more is None:
            expected("',' or '}'", text, end)
        if more[1] == "}":
            return entries, more.end(1)
        at = more.end()


def _read_queues(text: str, at: int, key: str, entries: Entries) -> int:
    _refuse_other(text, at, f"the queues of {key!r}")
    seen: set[int] = set()
    at = skip_space(text, at + 1)
    if text[at : at + 1] == "}":
        return at + 1
    while True:
        queue_id, offset_at = _read_queue_id(text, at)
        if queue_id in seen:
            fail("duplicate_key", f"queue {queue_id} of {key!r} is there twice", text, at)
        seen.add(queue_id)
        offset, end = _read_offset(text, offset_at)
        entries.queue_ids.append(queue_id)
        entries.offsets.append(offset)
        more = _MORE.match(text, end)
        if more is None:
            expected("',' or '}'", text, end)
        if more[1] == "}":
            return more.end(1)
        at = more.end()


def _refuse_other(text: str, at: int, what: str) -> None:
    if at >= len(text):
        expected(what, text, at)
    if text[at] != "{":
        fail("wrong_type", f"{what} should be an object, and starts with {text[at]!r}", text, at)


def _read_queue_id(text: str, at: int) -> tuple[int, int]:
    match = _QUEUE_KEY.match(text, at)
    if match is None:
        key, _ = read_key(text, at, 2)
        fail("wrong_type", f"{key!r} is not a queue id", text, at)
    queue_id = long_of(match[1] or match[2], text, at)
    if not 0 <= queue_id <= INT_MAX:
        fail("bad_number", f"queue id {queue_id} is not 0 to {INT_MAX}", text, at)
    return queue_id, match.end()


def _read_offset(text: str, at: int) -> tuple[int, int]:
    match = _OFFSET.match(text, at)
    if match is None:
        if at >= len(text):
            expected("an offset", text, at)
        fail("wrong_type", f"an offset must be an integer, and this starts with {text[at]!r}", text, at)
    if match.end() == len(text):
        expected("',' or '}'", text, match.end())
    return long_of(match[0], text, at), match.end()
