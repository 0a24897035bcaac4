"""Rows of the tables that mqadmin 3.x, 4.x and 5.x print. Pure.

A terminal, a page or a copy may cut or break rows: these are counted, and the other rows are kept.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final, NamedTuple

from mqreplay.core.java import INT_MAX, LONG_MAX
from mqreplay.decode.message_queue import MessageQueue
from mqreplay.words.errors import DecodeError

QID: Final = "QID"
GROUP_HEADING: Final = "Group"
_HEAD = re.compile(r"\s+(?=#)")
_NUMBERS: Final = frozenset({"Broker Offset", "Consumer Offset", "Diff", "Inflight", "Min Offset", "Max Offset"})
_MAY_BE_EMPTY: Final = "Last Updated"
_TIMES: Final = frozenset({"LastTime", _MAY_BE_EMPTY})
_TIME = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}(?:[,.][0-9]{3})?(?!\S)|(?:N/A|NA|-|null)(?!\S)|$"
)
_REST = re.compile(r"[0-9][0-9.:,-]*|-[0-9]*|N/A|NA")  # a word of a row that a terminal broke before it
_CUT_WIDTHS: Final = (32, 64)  # UtilAll#frontStringAtLeast, by the width of the column
_HEADING_PART = re.compile(r"#(?:Consumer Offset|Diff|LastTime|Max Offset|Last Updated|Inflight|Client IP)")


class QueueRow(NamedTuple):
    """A row of a queue: the queue, and the other columns by heading without ``#``."""

    topic: str
    broker_name: str
    queue_id: int
    columns: dict[str, str]


Queue = QueueRow | MessageQueue  # both begin with topic, broker name and queue id


@dataclass
class QueueTable:
    """The rows of a table; the rows that are broken, and the number of those with names that may be cut.

    ``is_whole``: its heading has all columns that are needed.
    """

    rows: list[QueueRow] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    cut_names: int = 0
    is_whole: bool = True


def queue_table(
    lines: Sequence[str],
    heading: str,
    topic: str | None = None,
    cuts_names: bool = True,
    needs: Sequence[str] = (),
) -> QueueTable:
    """Return the table of queues whose heading begins with ``heading``.

    mqadmin cuts names at the column width, so a name of exactly that length may have been longer: such rows are left
    out. ``topic``: that of all rows, for a table without a topic column. A row is broken if a column is missing or is
    not what mqadmin prints, and every row if the heading lacks one of ``needs``. Lines that are no rows are skipped.

    Raises:
        DecodeError: no_table.

    >>> table = ["#Topic   #Broker Name  #QID  #Broker Offset  #LastTime", "t  b  0  66  2026-11-21 02:42:14", "$ ls"]
    >>> queue_table(table, "#Topic").rows[0].columns
    {'Broker Offset': '66', 'LastTime': '2026-11-21 02:42:14'}
    >>> queue_table([*table, "t  b  1  7"], "#Topic").broken
    ['t  b  1  7']
    """
    begin = next((at for at, line in enumerate(lines) if line.lstrip().startswith(heading)), None)
    if begin is None:
        raise DecodeError("no_table", f"there is no heading {heading}")
    reader = _Reader(lines[begin], topic, cuts_names, needs)
    for line in lines[begin + 1 :]:
        reader.take(line)
    reader.end()
    return reader.table


class _Reader:
    """The columns of a table, and its rows so far."""

    def __init__(self, heading: str, topic: str | None, cuts_names: bool, needs: Sequence[str]) -> None:
        head = _HEAD.split(heading.strip())
        self.names = [name.removeprefix("#") for name in head]
        self.starts = [heading.find(name) for name in head]
        self.topic, self.cuts_names = topic, cuts_names
        self.has_widths = len(self.starts) > 1 and self.starts[1] - self.starts[0] - 2 in _CUT_WIDTHS
        self.queue_at = self.names.index(QID) if QID in self.names else 1 + (topic is None)
        before, after = self.names[: self.queue_at], self.names[self.queue_at + 1 :]
        self.table = QueueTable(is_whole=all(name in (before if name == GROUP_HEADING else after) for name in needs))
        self.firsts: set[str] = set()
        self.open_row: str | None = None  # the last line, if its row may go on in the next one

    def take(self, line: str) -> None:
        """Take the next line."""
        words = line.split()
        before, self.open_row = self.open_row, None
        if not words or _HEADING_PART.search(line):
            return
        is_aligned = not self.has_widths or self._is_at_columns(line, words)
        is_rest = not is_aligned or all(_REST.fullmatch(word) for word in words)
        if before is not None and is_rest:
            self._break(before)  # by a terminal: this line has its end
        elif self._is_row(line, words):
            columns = self._columns(words)
            if columns is None:
                self.table.broken.append(line.strip())
                self.open_row = line
            else:
                self._add(line, words, columns)

    def end(self) -> None:
        """Take the end of the output. A text that ends inside a line may have cut the last number."""
        if self.open_row is not None and not self.open_row.rstrip().endswith(" 0"):
            self._break(self.open_row)

    def _break(self, line: str) -> None:
        """Count the row that ``line`` begins as broken: what was read of it is not sure."""
        if self.table.broken[-1:] != [line.strip()]:
            self.table.rows.pop()
            self.table.broken.append(line.strip())

    def _add(self, line: str, words: Sequence[str], columns: dict[str, str]) -> None:
        key = words[: self.queue_at + 1]
        self.firsts.add(key[0])
        of_topic = self.topic is None
        if self.cuts_names and self._may_be_cut(([key[0]] if of_topic else []) + [key[self.queue_at - 1]]):
            self.table.cut_names += 1
            return
        if GROUP_HEADING in self.names[: self.queue_at]:
            columns = {GROUP_HEADING: key[self.names.index(GROUP_HEADING)], **columns}
        topic = key[0] if self.topic is None else self.topic
        queue_id = whole(key[self.queue_at], "a queue id", 0, INT_MAX)
        self.table.rows.append(QueueRow(topic, key[self.queue_at - 1], queue_id, columns))
        if self.names[-1] in _TIMES and not columns.get(self.names[-1]):
            self.open_row = line

    def _may_be_cut(self, names: Sequence[str]) -> bool:
        """Return whether a name fills its column. In a copy the columns may have lost their width."""
        widths = [after - at - 2 for at, after in pairwise(self.starts)]
        at_broker = self.queue_at - 1
        of_names = [widths[0], widths[at_broker]] if len(names) == 2 else [widths[at_broker]]
        kept = [[width] if width in _CUT_WIDTHS else _CUT_WIDTHS for width in of_names]
        return any(len(name) in lengths for name, lengths in zip(names, kept, strict=True))

    def _columns(self, words: Sequence[str]) -> dict[str, str] | None:
        """Return the columns after the queue; None if one is missing or is not what mqadmin prints."""
        names, values = self.names[self.queue_at + 1 :], words[self.queue_at + 1 :]
        if not self.table.is_whole or not names or len(words) <= self.queue_at:
            return None
        if not _is_whole(words[self.queue_at], 0, INT_MAX):
            return None
        last = names[-1]
        columns = dict(zip(names if last in _NUMBERS else names[:-1], values, strict=False))
        if last not in _NUMBERS:
            columns[last] = " ".join(values[len(names) - 1 :])
        for name in names:
            if name in _NUMBERS and not _is_whole(columns.get(name, ""), -(2**63), LONG_MAX):
                return None
        if last in _TIMES:
            time = _TIME.match(columns[last])
            # Only topicStatus leaves the time empty: that of a queue without messages.
            if time is None or (not time[0] and last != _MAY_BE_EMPTY):
                return None
            columns[last] = time[0]
        return columns if set(columns) >= set(names) else None

    def _is_row(self, line: str, words: Sequence[str]) -> bool:
        """Return whether a line is a row, or a part of one: its names are at the positions of the columns."""
        if line.lstrip().startswith("#") or len(words) == 1:
            return len(words) == 1 and any(name.startswith(words[0]) for name in self.firsts)
        numbers = words[self.queue_at + 1 : self.queue_at + 3]
        has_queue = len(words) > self.queue_at and _is_whole(words[self.queue_at], 0, INT_MAX)
        expected = sum(name in _NUMBERS for name in self.names[self.queue_at + 1 : self.queue_at + 3])
        if has_queue and numbers and all(_is_whole(word, -(2**63), LONG_MAX) for word in numbers[:expected]):
            return True
        if _REST.fullmatch(words[0]) and words[0] not in self.firsts:
            return False
        return self._is_at_columns(line, words)

    def _is_at_columns(self, line: str, words: Sequence[str]) -> bool:
        """Return whether the first word is a name of an earlier row, or the second one is in its column."""
        if words[0] in self.firsts or len(words) == 1 or len(self.starts) == 1:
            return words[0] in self.firsts
        second = line.index(words[1], line.index(words[0]) + len(words[0]))
        return abs(second - self.starts[1]) <= 1


def whole(text: str | None, what: str, low: int = -(2**63), high: int = LONG_MAX) -> int:
    """Return a whole number. Raises DecodeError: bad_number.

    >>> whole("66", "an offset")
    66
    """
    if not _is_whole(text or "", low, high):
        raise DecodeError("bad_number", f"{what} should be {low} to {high}, and is {(text or '')[:40]!r}")
    return int(text or "")


def _is_whole(text: str, low: int, high: int) -> bool:
    digits = text.removeprefix("-")
    return digits.isascii() and digits.isdigit() and len(digits) <= 19 and low <= int(text) <= high


def settings_of(lines: Sequence[str], separator: str) -> dict[str, str]:
    """Return the lines NAME SEPARATOR VALUE in order; skip other lines.

    >>> settings_of(["bootTimestamp   : 1795228772969", "", "runtime  : [ 0 days ]"], ":")
    {'bootTimestamp': '1795228772969', 'runtime': '[ 0 days ]'}
    """
    found = {}
    for line in lines:
        name, sign, value = line.partition(separator)
        name = name.strip()
        if sign and name and " " not in name and not name.startswith(("#", "$")):
            found[name] = value.strip()
    return found


def queue_text(topic: str, broker_name: str, queue_id: int) -> str:
    """Return a queue in fastjson's form, also as a key.

    >>> queue_text("t", "b", 1)
    '{"brokerName":"b","queueId":1,"topic":"t"}'
    """
    return f'{{"brokerName":{json.dumps(broker_name)},"queueId":{queue_id},"topic":{json.dumps(topic)}}}'


def keyed_text(rows: Iterable[tuple[Queue, Mapping[Any, object]]]) -> str:
    """Return an object whose keys are queues, in fastjson's form."""
    pairs = (f"{queue_text(*row[:3])}:{json.dumps(value, separators=(',', ':'))}" for row, value in rows)
    return f"{{{','.join(pairs)}}}"
