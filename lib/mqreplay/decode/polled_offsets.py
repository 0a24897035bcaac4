"""A line of consumerOffset.jsonl: a polled offset table of a broker, complete or as changes to the line before.

The first line of a file has ``offsetTable``, as has the first after a restart of the recorder. Every other line has
``changed`` (queues whose offset is new) and ``removed`` (queues that are not in the table any more), or neither of them
if nothing changed. A line is accepted completely or not at all.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from mqreplay.core.java import INT_MAX
from mqreplay.decode.columns import TIME_MAX, TIME_MIN, missing, out_of_bounds
from mqreplay.decode.fastjson_text import Value
from mqreplay.decode.fields import str_of, wrong_type
from mqreplay.decode.offset_table import Entries, read_members
from mqreplay.decode.text import TAKE_BAK, expected, refuse_trailing, skip_space, text_of
from mqreplay.words.errors import DecodeError

WHOLE: Final = "offsetTable"
CHANGED: Final = "changed"
REMOVED_ENTRIES: Final = "removed"


class PolledOffsets(NamedTuple):
    """A line: when the broker was asked (epoch ms), queues with their offsets (messages), and queues that are gone.

    ``is_whole``: the line has all queues of the table, not only changed ones.
    """

    ts: int
    is_whole: bool
    entries: Entries
    removed: dict[str, list[int]]


def decode_polled_offsets(line: bytes) -> PolledOffsets:
    """Return the content of the bytes of one line.

    Raises:
        DecodeError: the codes of `mqreplay.decode.consumer_offset`, missing_field, bad_time.

    >>> decode_polled_offsets(b'{"ts":1795228794427,"offsetTable":{"orders@pay":{"0":12}}}').entries.offsets
    [12]
    >>> decode_polled_offsets(b'{"ts":1795228799427,"removed":{"orders@pay":[0]}}').removed
    {'orders@pay': [0]}
    >>> decode_polled_offsets(b'{"ts":1795228799427,"changed":{"orders@pay":{"0"')
    Traceback (most recent call last):
    mqreplay.words.errors.DecodeError: torn: cut short where ':' should follow (byte 48)
    """
    try:
        return _read(line)
    except DecodeError as error:
        raise DecodeError(error.code, error.detail.removesuffix(TAKE_BAK), error.offset) from None


def _read(line: bytes) -> PolledOffsets:
    text = text_of(line)
    start = skip_space(text, 0)
    if start == len(text):
        expected("an object", text, start)
    if text[start] != "{":
        raise wrong_type("a line", "one object", text[start:])
    tables, others, end = read_members(text, start, (WHOLE, CHANGED), "{!r} is twice in one line")
    refuse_trailing(text, end)
    if len(tables) > 1:
        raise DecodeError("bad_syntax", f"a line has {WHOLE} or {CHANGED}, and this one has both")
    removed = _removed(others.get(REMOVED_ENTRIES))
    is_whole = WHOLE in tables
    if is_whole and removed:
        raise DecodeError("bad_syntax", f"a line has {WHOLE} or {REMOVED_ENTRIES}, and this one has both")
    entries = tables.get(WHOLE if is_whole else CHANGED, Entries())
    return PolledOffsets(_ts(others.get("ts")), is_whole, entries, removed)


def _ts(value: Value) -> int:
    if value is None:
        raise missing("ts")
    if type(value) is not int or not TIME_MIN <= value <= TIME_MAX:
        raise out_of_bounds("ts", value, TIME_MIN, TIME_MAX, "bad_time")
    return value


def _removed(value: Value) -> dict[str, list[int]]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise wrong_type(REMOVED_ENTRIES, "an object", value)
    removed: dict[str, list[int]] = {}
    for key, queue_ids in value.items():
        if not isinstance(key, str):
            raise wrong_type(f"a key of {REMOVED_ENTRIES}", "topic@group", key)
        if not isinstance(queue_ids, list):
            raise wrong_type(f"the queues of {str_of(key)} in {REMOVED_ENTRIES}", "a list", queue_ids)
        removed[key] = [_queue_id(queue_id) for queue_id in queue_ids]
    return removed


def _queue_id(value: Value) -> int:
    if type(value) is not int:
        raise wrong_type(f"a queue id in {REMOVED_ENTRIES}", "a whole number", value)
    if not 0 <= value <= INT_MAX:
        raise DecodeError("bad_number", f"a queue id in {REMOVED_ENTRIES} should be 0 to {INT_MAX}, and is {value}")
    return value
