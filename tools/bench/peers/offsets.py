"""A broker's consumerOffset.json in time order -> the entries that changed, carrying the file before.

Three ways to read a file, each exact, each some ten times the cost of the one before:
  same places   as long as the file before, and differing only in digits of offsets: those numbers are read anew
  same shape    laid out by fastjson: lines not seen in the file before are checked, all numbers read at once
  any other     mqreplay's own decoder
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from dataclasses import dataclass, field

import numpy as np

from mqreplay.decode.consumer_offset import decode_consumer_offset

from .recording import Source

TABLE = b'\t"offsetTable":{\n'
NEXT, END = b"\n\t\t},\n", b"\n\t\t}\n\t}\n}"
NUMBER = rb"(?:0|[1-9][0-9]{0,9}):(?:0|-?[1-9][0-9]{0,17})"
LINE = re.compile(rb'\t\t"([^"\\:,{\x00-\x1f\x80-\xff]++)":\{((?:' + NUMBER + rb"(?:," + NUMBER + rb")*+)?)")
DIGITS = 18  # any number of so many fits into 64 bits
POWERS = np.array([[10 ** (w - 1 - d) if d < w else 0 for d in range(DIGITS)] for w in range(DIGITS + 1)], np.int64)
NONE = -(2**63)  # stands for no offset


@dataclass
class Changes:
    """Columns of equal length: which snapshot, which entry, its offset before and after (NONE: there was none)."""

    snapshot: list[np.ndarray] = field(default_factory=list)
    entry: list[np.ndarray] = field(default_factory=list)
    previous: list[np.ndarray] = field(default_factory=list)
    new: list[np.ndarray] = field(default_factory=list)

    def add(self, snapshot: int, entry: np.ndarray, previous: np.ndarray, new: np.ndarray) -> None:
        """More rows, of one snapshot."""
        self.snapshot.append(np.full(len(entry), snapshot, np.int32))
        self.entry.append(entry)
        self.previous.append(previous)
        self.new.append(new)


class Carry:
    """Reads the files of one source in turn."""

    def __init__(self) -> None:
        self.changes = Changes()
        self.keys: list[tuple[bytes, int]] = []  # of each entry: topic@group, queue id
        self.ways = [0, 0, 0]
        self.counter: int | None = None
        self._ids: dict[tuple[bytes, int], int] = {}
        self._bytes = np.empty(0, np.uint8)
        self._head, self._lines = b"", frozenset[bytes]()
        self._starts = self._ends = np.empty(0, np.int64)
        self._names: tuple[tuple[bytes, int], ...] | None = None
        self._queues = np.empty(0, np.int64)
        self._placed = np.empty(0, np.int32)
        self._entries, self._values = np.empty(0, np.int32), np.empty(0, np.int64)

    def read(self, snapshot: int, raw: np.ndarray) -> int:
        """Takes the next file's bytes, which must stay until the next call; gives its number of entries."""
        if not self._same_places(snapshot, raw):
            data = raw.tobytes()
            if not self._same_shape(snapshot, data, raw):
                self._any(snapshot, data)
        self._bytes = raw
        return len(self._values)

    def _same_places(self, snapshot: int, raw: np.ndarray) -> bool:
        if len(raw) != len(self._bytes) or not len(self._starts):
            return False
        at = np.flatnonzero(raw != self._bytes)
        if len(at) and at[0] < len(self._head):
            if not self._take_head(raw[: len(self._head)].tobytes()):
                return False
            at = at[np.searchsorted(at, len(self._head)) :]
        if len(at):
            where = np.searchsorted(self._starts, at, "right") - 1
            if where[0] < 0 or (at >= self._ends[where]).any():
                return False
            touched = where[np.flatnonzero(np.diff(where, prepend=-1))]
            starts, ends = self._starts[touched], self._ends[touched]
            values = _numbers(raw, starts, ends)
            if values is None:
                return False
            moved = values != self._values[touched]
            touched, values = touched[moved], values[moved]
            self.changes.add(snapshot, self._entries[touched], self._values[touched], values)
            self._values = self._values.copy()
            self._values[touched] = values
        self.ways[0] += 1
        return True

    def _same_shape(self, snapshot: int, data: bytes, raw: np.ndarray) -> bool:
        begins = data.find(TABLE)
        if begins < 0 or not data.endswith(END):
            return False
        lines = data[begins + len(TABLE) : -len(END)].split(NEXT)
        known = self._lines
        if not all(line in known or LINE.fullmatch(line) for line in lines) or not self._take_head(data[:begins]):
            return False
        colons = begins + len(TABLE) + np.flatnonzero(raw[begins + len(TABLE) :] == ord(":"))
        starts = colons[raw[colons + 1] != ord("{")] + 1
        stops = begins + np.flatnonzero((raw[begins:] == ord(",")) | (raw[begins:] == ord("\n")))
        ends = stops[np.searchsorted(stops, starts)]
        before = begins + np.flatnonzero((raw[begins:] == ord(",")) | (raw[begins:] == ord("{")))
        queues = _numbers(raw, before[np.searchsorted(before, starts) - 1] + 1, starts - 1)
        if queues is None:
            return False
        names = tuple((line[3 : line.index(b'"', 3)], line.count(b":") - 1) for line in lines)
        if names != self._names or not np.array_equal(queues, self._queues):
            self._names, self._queues = names, queues
            if not self._place(names, queues.tolist()):
                return False
        values = _numbers(raw, starts, ends)
        if values is None:
            spans = zip(starts.tolist(), ends.tolist(), strict=True)
            values = np.array([int(data[start:end]) for start, end in spans], np.int64)  # some are below 0
        self._lines, self._starts, self._ends = frozenset(lines), starts, ends
        self._compare(snapshot, self._placed, values)
        self.ways[1] += 1
        return True

    def _take_head(self, head: bytes) -> bool:
        if head == self._head:
            return True
        try:
            version = json.loads(head + b'"offsetTable":0}').get("dataVersion")
        except ValueError:
            return False
        self._head, self.counter = head, None if version is None else version["counter"]
        return True

    def _place(self, names: tuple[tuple[bytes, int], ...], queues: list[int]) -> bool:
        at = iter(queues)
        placed = [self._id(key, next(at)) for key, count in names for _ in range(count)]
        self._placed = np.array(placed, np.int32)
        return len(set(placed)) == len(placed)

    def _id(self, key: bytes, queue: int) -> int:
        made = self._ids.setdefault((key, queue), len(self.keys))
        if made == len(self.keys):
            self.keys.append((key, queue))
        return made

    def _any(self, snapshot: int, data: bytes) -> None:
        got = decode_consumer_offset(data)
        pairs = zip(got.key, got.queue_id, strict=True)
        self._starts, self._names, self._lines, self._head = np.empty(0, np.int64), None, frozenset(), b""
        self.counter = got.data_version_counter
        entries = np.array([self._id(key.encode(), queue) for key, queue in pairs], np.int32)
        self._compare(snapshot, entries, np.array(got.offset, np.int64))
        self.ways[2] += 1

    def _compare(self, snapshot: int, entries: np.ndarray, values: np.ndarray) -> None:
        """What the file, now known in full, changes."""
        if entries is self._entries:
            moved = np.flatnonzero(values != self._values)
            self.changes.add(snapshot, entries[moved], self._values[moved], values[moved])
        else:
            before, after = np.full(len(self.keys), NONE), np.full(len(self.keys), NONE)
            before[self._entries], after[entries] = self._values, values
            moved = np.flatnonzero(before != after).astype(np.int32)
            self.changes.add(snapshot, moved, before[moved], after[moved])
        self._entries, self._values = entries, values


def _numbers(raw: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> np.ndarray | None:
    """The whole numbers from ``starts`` to ``ends``; None if one has a sign, a leading zero, or no digits only."""
    width = ends - starts
    most = int(width.max(initial=1))
    if most > DIGITS or width.min(initial=1) < 1 or ((raw[starts] == ord("0")) & (width > 1)).any():
        return None
    place = np.minimum(starts[:, None] + np.arange(most), len(raw) - 1)
    digits = raw[place] - np.uint8(ord("0"))  # what is no digit wraps round to more than 9
    powers = POWERS[width, :most]
    if ((digits > 9) & (powers > 0)).any():
        return None
    return np.einsum("ij,ij->i", digits.astype(np.int64), powers)


class Reader:
    """Reads whole files into two buffers in turn: new memory for each would cost more than the reading."""

    def __init__(self) -> None:
        self._buffers = [np.empty(1 << 16, np.uint8), np.empty(1 << 16, np.uint8)]

    def read(self, path: str) -> np.ndarray:
        """The file's bytes; they stay until the next but one is read."""
        self._buffers.reverse()
        file = os.open(path, os.O_RDONLY)
        try:
            size = os.fstat(file).st_size
            if size > len(self._buffers[0]):
                self._buffers[0] = np.empty(2 * size, np.uint8)
            into, at = self._buffers[0][:size], 0
            while at < size and (got := os.readv(file, [into[at:]])):
                at += got
        finally:
            os.close(file)
        return into[:at]


def read_source(source: Source) -> tuple[Carry, list[str], list[int], list[int | None]]:
    """All files of a source: what changed, and of each file its digest, its entries, its dataVersion.counter."""
    carry, reader, digests, counts, counters = Carry(), Reader(), [], [], []
    for snapshot, path in enumerate(source.paths):
        raw = reader.read(path)
        digests.append(hashlib.sha256(raw).hexdigest()[:32])
        counts.append(carry.read(snapshot, raw))
        counters.append(carry.counter)
    return carry, digests, counts, counters
