"""Fast reader of consumerOffset.json: compares it with the file before byte by byte and reads only changed numbers.

It accepts a file that differs from the one before only in offsets inside the table, each still a number in RocketMQ's
form. Changes outside the table are decoded as usual. The caller decodes any other file completely, so nothing is
accepted that `decode_consumer_offset` refuses.

Most files are as long as the one before: the bytes that differ give the numbers. In a file of another length the
numbers are found by commas and line ends, and all other bytes are compared with those of the table.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mqreplay.core.java import LONG_MAX
from mqreplay.decode.consumer_offset import ConsumerOffsets
from mqreplay.decode.offset_lines import counter_beside, table_bounds, table_lines
from mqreplay.decode.text import MAX_BYTES
from mqreplay.words.errors import DecodeError

Bytes = NDArray[np.uint8]
Places = NDArray[np.intp]
Numbers = NDArray[np.int64]
Rows = NDArray[np.int32]  # rows of the table in the order written

COMMA, LINE_END, COLON, MINUS, ZERO = (np.uint8(ord(sign)) for sign in ",\n:-0")
NUMBERS_AT_ONCE = 100_000  # numbers; each takes some 200 bytes while it is read
DIGITS: Final = 19  # characters of the longest signed 64-bit number
_BACK: Final = np.arange(-DIGITS, 0)
_POWERS: Final = np.array([10**power for power in reversed(range(DIGITS))], np.uint64)


class Difference(NamedTuple):
    """The changes of a file: rows of the table, offsets (messages) before and now, and dataVersion's counter."""

    rows: Rows
    previous: Numbers
    new: Numbers
    counter: int | None


class OffsetBytes:
    """A reader of the files of one broker in time order. Not thread-safe."""

    def __init__(self) -> None:
        """Start without a file: the first one is read completely."""
        self._data = b""
        self._raw: Bytes = np.empty(0, np.uint8)
        self._begin = self._end = 0
        self._starts: Places = np.empty(0, np.intp)
        self._ends: Places = self._starts
        self._counter: int | None = None
        self.values: Numbers = np.empty(0, np.int64)
        self._owners: Rows = np.empty(0, np.int32)
        # Constant while only numbers change: the table without them, its number of commas and line ends, which of these
        # ends each number, and the distance of each number from the previous end.
        self._rest: Bytes = self._raw
        self._stops = 0
        self._stop_of: Places = self._starts
        self._lead: Places = self._starts

    def remember(self, data: bytes, decoded: ConsumerOffsets) -> None:
        """Store a completely decoded file as the base of the next one.

        A file of another layout is not stored: the next one is then read completely too.
        """
        self._data = b""
        lines = table_lines(data)
        if lines is None or not lines.runs:
            return
        raw = np.frombuffer(data, np.uint8)
        begin, end = lines.begin, lines.end
        runs = np.array(lines.runs, np.intp)
        colons = begin + np.flatnonzero(raw[begin:end] == COLON)
        run = np.searchsorted(runs[:, 0], colons, "right") - 1
        starts = colons[(run >= 0) & (colons < runs[run, 1])] + 1
        stops = _stops(raw, begin, end)
        stop_of = np.searchsorted(stops, starts)
        ends = stops[stop_of]
        values = numbers(raw, starts, ends)
        # Use the layout only if it gives exactly the result of the complete reading.
        if values is None or values.tolist() != decoded.offset:
            return
        self._place(data, raw, begin, end, starts, ends, _owners(begin, end, starts, ends))
        self._counter, self.values = decoded.data_version_counter, values
        self._rest = raw[begin:end][self._owners < 0]
        self._stops, self._stop_of, self._lead = len(stops), stop_of, starts - stops[stop_of - 1]

    def difference(self, data: bytes) -> Difference | None:
        """Return the changes against the file before; None if the file must be read completely.

        >>> from mqreplay.decode.consumer_offset import decode_consumer_offset
        >>> one = b'{\\n\\t"offsetTable":{\\n\\t\\t"t@g":{0:5,1:7\\n\\t\\t}\\n\\t}\\n}'
        >>> before = OffsetBytes()
        >>> before.remember(one, decode_consumer_offset(one))
        >>> before.difference(one.replace(b"1:7", b"1:19"))
        Difference(rows=array([1], dtype=int32), previous=array([7]), new=array([19]), counter=None)
        >>> before.difference(one.replace(b"1:7", b"2:9")) is None
        True
        """
        if not self._data:
            return None
        raw = np.frombuffer(data, np.uint8)
        return self._same_length(data, raw) if len(data) == len(self._data) else self._other_length(data, raw)

    def _same_length(self, data: bytes, raw: Bytes) -> Difference | None:
        at = np.flatnonzero(raw != self._raw)
        first, last = np.searchsorted(at, (self._begin, self._end))
        rows = self._owners[at[first:last] - self._begin]
        if (rows < 0).any():
            return None
        rows = _distinct(rows)
        new = numbers(raw, self._starts[rows], self._ends[rows])
        if new is None:
            return None
        counter = self._counter
        if len(at) > last - first:
            try:
                counter = self._counter_beside(data, self._begin, self._end)
            except DecodeError:
                return None
        previous = self.values[rows]
        self.values[rows] = new
        self._data, self._raw, self._counter = data, raw, counter
        return Difference(rows, previous, new, counter)

    def _other_length(self, data: bytes, raw: Bytes) -> Difference | None:
        bounds = table_bounds(data)
        if bounds is None or len(data) > MAX_BYTES:
            return None
        begin, end = bounds
        stops = _stops(raw, begin, end)
        if len(stops) != self._stops:
            return None
        starts, ends = stops[self._stop_of - 1] + self._lead, stops[self._stop_of]
        new = numbers(raw, starts, ends)
        if new is None:
            return None
        owners = _owners(begin, end, starts, ends)
        if not np.array_equal(raw[begin:end][owners < 0], self._rest):
            return None
        try:
            counter = self._counter_beside(data, begin, end)
        except DecodeError:
            return None
        rows = np.flatnonzero(new != self.values).astype(np.int32)
        found = Difference(rows, self.values[rows], new[rows], counter)
        self._place(data, raw, begin, end, starts, ends, owners)
        self._counter, self.values = counter, new
        return found

    def _counter_beside(self, data: bytes, begin: int, end: int) -> int | None:
        """Return dataVersion's counter in a file with the table from ``begin`` to ``end``. Raises DecodeError."""
        before = self._data[: self._begin], self._data[self._end :]
        now = data[:begin], data[end:]
        return self._counter if now == before else counter_beside(*now, before)

    def _place(self, data: bytes, raw: Bytes, begin: int, end: int, starts: Places, ends: Places, owners: Rows) -> None:
        self._data, self._raw, self._begin, self._end = data, raw, begin, end
        self._starts, self._ends, self._owners = starts, ends, owners


def numbers(raw: Bytes, starts: Places, ends: Places) -> Numbers | None:
    """Return the numbers from ``starts`` to ``ends``; None unless each is a long in RocketMQ's form.

    >>> numbers(np.frombuffer(b"17,-20", np.uint8), np.array([0, 3]), np.array([2, 6]))
    array([ 17, -20])
    >>> numbers(np.frombuffer(b"17,020", np.uint8), np.array([0, 3]), np.array([2, 6])) is None
    True
    """
    if not len(starts):
        return np.empty(0, np.int64)
    if len(starts) > NUMBERS_AT_ONCE:
        parts = [
            numbers(raw, starts[i : i + NUMBERS_AT_ONCE], ends[i : i + NUMBERS_AT_ONCE])
            for i in range(0, len(starts), NUMBERS_AT_ONCE)
        ]
        read = [part for part in parts if part is not None]
        return np.concatenate(read) if len(read) == len(parts) else None
    if (starts >= ends).any():
        return None
    below = raw[starts] == MINUS
    starts = starts + below
    width = ends - starts
    most = int(width.max())
    if most > DIGITS or width.min() < 1 or ((raw[starts] == ZERO) & ((width > 1) | below)).any():
        return None
    place = ends[:, None] + _BACK[DIGITS - most :]
    digits = raw[place] - ZERO  # a non-digit wraps around to more than 9
    digits *= place >= starts[:, None]
    if digits.max() > 9:
        return None
    size = digits.astype(np.uint64) @ _POWERS[DIGITS - most :]
    if most == DIGITS and (size > below.astype(np.uint64) + np.uint64(LONG_MAX)).any():
        return None
    found: Numbers = np.where(below, np.uint64(0) - size, size).view(np.int64)
    return found


def _stops(raw: Bytes, begin: int, end: int) -> Places:
    """Return the positions of commas and line ends of the table, and of the line end before it."""
    table = raw[begin - 1 : end]
    return begin - 1 + np.flatnonzero((table == COMMA) | (table == LINE_END))


def _owners(begin: int, end: int, starts: Places, ends: Places) -> Rows:
    """Return for each byte of the table the row whose number contains it; -1: none."""
    edges = np.empty(2 * len(starts) + 2, np.intp)
    edges[0], edges[1:-1:2], edges[2:-1:2], edges[-1] = begin, starts, ends, end
    rows = np.full(2 * len(starts) + 1, -1, np.int32)
    rows[1::2] = np.arange(len(starts), dtype=np.int32)
    return np.repeat(rows, np.diff(edges))


def _distinct(rows: Rows) -> Rows:
    """Return the distinct ascending ``rows``. (numpy's unique sorts, which takes ten times as long.)"""
    first = np.ones(len(rows), np.bool_)
    np.not_equal(rows[1:], rows[:-1], out=first[1:])
    return rows[first]
