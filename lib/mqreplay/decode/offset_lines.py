"""Positions of the numbers in a consumerOffset.json in a broker's layout, and the text around its table.

A broker writes the same table repeatedly, with one line per topic@group (RemotingSerializable.toJson, pretty). From one
file to the next mostly digits of offsets change, so the positions in one file help to read the next. Files in another
layout, or with a possible second table, are read completely.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from mqreplay.decode.consumer_offset import OFFSET_TABLE, decode_consumer_offset
from mqreplay.decode.text import MAX_BYTES
from mqreplay.words.errors import DecodeError

_NAME: Final = OFFSET_TABLE.encode()
_BEGIN: Final = b'\n\t"' + _NAME + b'":{\n'
_END: Final = b"\n\t}"
_NUMBER: Final = rb"(?:0|[1-9][0-9]{0,9}):(?:0|-?[1-9][0-9]{0,18})"
_ENTRY: Final = re.compile(rb'\t\t"[^"\\\x00-\x1f]+":\{(?:(' + _NUMBER + rb"(?:," + _NUMBER + rb")*)\n\t\t)?\}")
# The first member of a file, so that no other member can hold it.
_VERSION: Final = re.compile(rb'\{\n\t"dataVersion":\{\n(?:\t\t"[A-Za-z]+":(?:0|-?[1-9][0-9]{0,18}),?\n)+\t\},\n')


# A number that a queue can have as offset, and a version as counter or time.
_USUAL: Final = re.compile(rb":(?:0|[1-9][0-9]{0,16})(?=,|\n|\Z)")

Shape = tuple[bytes, bytes, bytes]


class Lines(NamedTuple):
    """The lines of a table: bytes ``begin`` to ``end``; ``runs``: from and to, of each key's ``id:offset,...``."""

    begin: int
    end: int
    runs: list[tuple[int, int]]


def table_bounds(data: bytes) -> tuple[int, int] | None:
    """From and to (bytes) of the first thing that looks like an offset table's lines.

    >>> table_bounds(b'{\\n\\t"offsetTable":{\\n\\t\\t"t@g":{0:5,1:7\\n\\t\\t}\\n\\t}\\n}')
    (19, 39)
    """
    at = data.find(_BEGIN)
    begin = at + len(_BEGIN)
    end = -1 if at < 0 else data.find(_END, begin)
    return None if end < 0 else (begin, end)


def table_lines(data: bytes) -> Lines | None:
    """The lines of the offset table in a file that was read whole; None if they are laid out in another way.

    >>> table_lines(b'{\\n\\t"offsetTable":{\\n\\t\\t"t@g":{0:5,1:7\\n\\t\\t}\\n\\t}\\n}')
    Lines(begin=19, end=39, runs=[(28, 35)])
    >>> table_lines(b'{"offsetTable":{"t@g":{0:5,1:7}}}') is None
    True
    """
    bounds = table_bounds(data)
    if bounds is None or not _names_one_table(data):
        return None
    at, end = bounds
    runs: list[tuple[int, int]] = []
    for entry in data[at:end].split(b",\n"):
        found = _ENTRY.fullmatch(entry)
        if found is None:
            return None
        if found[1] is not None:
            runs.append((at + found.start(1), at + found.end(1)))
        at += len(entry) + len(b",\n")
    return Lines(bounds[0], end, runs)


def offset_shape(data: bytes) -> Shape | None:
    """Return the bytes before, in and after the table, with 0 for usual offsets and the numbers of the version.

    If `table_lines` accepts one of two files with the same shape, both have the same keys, queues and unusual offsets.
    None for a file in another layout.

    >>> one = b'{\\n\\t"offsetTable":{\\n\\t\\t"t@g":{0:5,1:7\\n\\t\\t}\\n\\t}\\n}'
    >>> offset_shape(one) == offset_shape(one.replace(b"1:7", b"1:19"))
    True
    >>> offset_shape(one) == offset_shape(one.replace(b"1:7", b"2:7"))
    False
    """
    bounds = table_bounds(data)
    if bounds is None or len(data) > MAX_BYTES:
        return None
    begin, end = bounds
    head = data[:begin]
    if version := _VERSION.match(head):
        head = _USUAL.sub(b":0", version[0]) + head[version.end() :]
    lines = data[begin:end].split(b"\n")
    # A key may hold what looks like an offset.
    parts = [line.rpartition(b'":{') for line in lines]
    return head, b"\n".join(key + sign + _USUAL.sub(b":0", rest) for key, sign, rest in parts), data[end:]


def counter_beside(head: bytes, tail: bytes, before: tuple[bytes, bytes] | None = None) -> int | None:
    """dataVersion's counter of the file whose table's lines stand between ``head`` and ``tail``.

    ``before``: the same of a file that was read; what is as it was there is not decoded again.

    Raises:
        DecodeError: `decode_consumer_offset` would refuse the file whatever its table, or read another one.

    >>> counter_beside(b'{\\n\\t"dataVersion":{"counter":3},\\n\\t"offsetTable":{\\n', b"\\n\\t}\\n}")
    3
    >>> counter_beside(b'{"offsetTable":{},"other":{\\n\\t"offsetTable":{\\n', b"\\n\\t}}\\n}")
    Traceback (most recent call last):
    mqreplay.words.errors.DecodeError: layout: the offset table is not where it was
    """
    rest = head + tail
    if not head.endswith(_BEGIN) or not tail.startswith(_END) or not _names_one_table(rest):
        raise DecodeError("layout", "the offset table is not where it was")
    if before is not None:
        now, then = _VERSION.match(head), _VERSION.match(before[0])
        if now and then and head[now.end() :] == before[0][then.end() :] and tail == before[1]:
            # A broker of 5.x writes all its groups and topics behind the version, and they seldom change.
            rest = now[0] + b'"' + _NAME + b'":{}}'
    return decode_consumer_offset(rest).data_version_counter


def _names_one_table(data: bytes) -> bool:
    """Whether the one table that a reader can find is the one in plain sight: an escape could name another."""
    return data.count(_NAME) == 1 and b"\\" not in data
