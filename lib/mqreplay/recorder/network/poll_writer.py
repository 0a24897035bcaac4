"""Records from answers: which lines and files are written of each answer, and what the recorder learns from it.

Answers that differ from the answer before are written, and one a minute of the others. An answer may also have values
that usually change from poll to poll, such as the smallest unfinished offset of a queue. Then the answers that repeat
one are written: that it did not change is the news.
"""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from mqreplay.decode.broker_runtime import DISKS, FIGURES
from mqreplay.recorder.network.answers import table_signature
from mqreplay.recorder.network.events import Append
from mqreplay.recorder.network.offsets import OffsetReader
from mqreplay.recorder.network.polls import POLLS, Known, identity
from mqreplay.recorder.network.readings import Reading
from mqreplay.recorder.network.schedule import Target
from mqreplay.recorder.network.topology import BrokerKey
from mqreplay.recorder.record_files import RecordFiles
from mqreplay.recorder.remoting.frames import SUCCESS, Answer
from mqreplay.words.errors import DecodeError, InputError

FULL_MS: Final = 300_000  # interval at which all figures of a broker are written
# The sizes are texts such as "3.3 KiB".
SIZES: Final = frozenset({"remainHowManyDataToFlush", "remainHowManyDataToCommit"})
# A disk may fill and be cleaned within FULL_MS.
RUNTIME_KEPT: Final = frozenset(FIGURES.values()) | SIZES | {*DISKS, "bootTimestamp", "brokerVersionDesc"}
REPEAT_MS: Final = 60_000


class PollWriter:
    """A writer of the answers to polls. Times are by the recorder's clock, in epoch ms."""

    def __init__(
        self,
        files: RecordFiles,
        append: Append,
        known: Known,
        every_ms: int,
    ) -> None:
        self._files, self._append, self._known = files, append, known
        self._changes = Changes(every_ms)
        self._readers: dict[BrokerKey, OffsetReader] = {}
        self._snapshots: dict[tuple[BrokerKey, str], object] = {}
        self._full: dict[BrokerKey, int] = {}  # when all figures were last written
        self._unwritten: dict[Target, tuple[str, dict[str, Any]]] = {}  # the last answer, if it changed nothing

    def take(self, target: Target, ts: int, response_ts: int, reading: Reading, period_ms: int | None = None) -> bool:
        """Write the records of an answer and learn from it. Return whether the members of a group changed.

        ``period_ms``: the poll interval of the target.
        """
        poll = POLLS[target.kind]
        if target.kind == "runtime":
            self._runtime(target, reading)
        is_change = False
        is_unsupported = poll.is_optional and reading.fact is False
        if poll.stem is not None and not is_unsupported:
            line: dict[str, Any] = {"ts": ts} | ({} if reading.is_silence else {"response_ts": response_ts})
            line |= identity(target)
            if not poll.repeated:
                self._append(poll.stem, line | self._fields(target, ts, reading))
            else:
                key = _key(target)
                decision = self._changes.of(key, reading.signature, ts, period_ms, reading.is_kept, reading.heads)
                is_change = decision.is_change
                previous = {} if decision.previous_ts is None else {"previous_ts": decision.previous_ts}
                if decision.stays and key in self._unwritten:
                    self._append(*self._unwritten[key])
                self._unwritten[key] = poll.stem, line | previous | reading.fields
                if decision.is_written:
                    self._append(*self._unwritten.pop(key))
        elif reading.error is not None:
            self._known.events.missing(target, ts, reading.error)
        if reading.fact is not None:
            poll.learn(self._known, target, ts, reading.fact)
        return is_change and target.kind == "members"

    def take_offsets(self, target: Target, ts: int, response_ts: int, answer: Answer) -> str | None:
        """Write a broker's offset table. Return the reason if it cannot be read."""
        broker = target.broker_key
        if answer.code != SUCCESS:
            return answer.denied or f"response code {answer.code}: {answer.remark or ''}"
        reader = self._readers.setdefault(broker, OffsetReader())
        try:
            table, moved = reader.read(answer.body)
        except DecodeError as error:
            return f"the answer cannot be read: {error}"
        self._known.estate.take_offsets(broker, table, moved, ts)
        if not self._known.estate.records_all:
            table = {key: queues for key, queues in table.items() if self._known.estate.is_recorded_key(key)}
        try:
            self._files.append_offsets(*broker, ts, table, response_ts)
        except InputError as error:  # the broker's name cannot be a folder name
            return str(error)
        return None

    def take_snapshot(self, target: Target, ts: int, name: str, answer: Answer) -> None:
        """Write the file ``name``, a copy of a broker's table, if the last copy differs, also one of an earlier run."""
        broker = target.broker_key
        key = broker, target.kind
        signature = table_signature(answer.body)
        try:
            if key not in self._snapshots and (before := self._files.last_snapshot(*broker, name)) is not None:
                self._snapshots[key] = table_signature(before)
            if self._snapshots.get(key) != signature:
                self._files.write_snapshot(*broker, ts, name, answer.body)
                self._snapshots[key] = signature
        except InputError as error:
            self._known.events.missing(target, ts, str(error))

    def write_brokers(self) -> None:
        """Write brokers.json if anything in it changed."""
        content = self._known.brokers.changed()
        if content is not None:
            self._files.write_brokers(content)

    def keep(self, targets: Iterable[Target]) -> None:
        """Forget the last answers of targets that are no longer polled."""
        keys = {_key(target) for target in targets}
        self._changes.keep(keys)
        self._unwritten = {key: line for key, line in self._unwritten.items() if key in keys}

    def confirm(self) -> None:
        """Write the last unchanged answers: they show how long the values were valid."""
        for stem, line in self._unwritten.values():
            self._append(stem, line)
        self._unwritten.clear()

    def _fields(self, target: Target, ts: int, reading: Reading) -> dict[str, Any]:
        if target.kind != "runtime" or target.broker is None:
            return reading.fields
        if reading.fact is None:
            return {"full": False, "table": None, "error": reading.error}
        if ts - self._full.get(target.broker, -FULL_MS) >= FULL_MS:
            self._full[target.broker] = ts
            return {"full": True, "table": reading.fact}
        return {"full": False, "table": {name: text for name, text in reading.fact.items() if name in RUNTIME_KEPT}}

    def _runtime(self, target: Target, reading: Reading) -> None:
        if target.broker is not None:
            self._known.brokers.seen(target.broker, target.addr)
            if reading.fact is not None:
                self._known.brokers.running(target.broker, reading.fact.get("brokerVersionDesc"))


def _key(target: Target) -> Target:
    """Return the key of a target: a broker keeps it at another address."""
    return target._replace(addr="") if target.broker else target


class Decision(NamedTuple):
    """Whether to write a line.

    ``previous_ts`` is the time of the last poll that gave the value of the line before; None for the first. ``stays``:
    a value that usually changes did not; the answer before shows it, too.
    """

    is_written: bool
    is_change: bool
    previous_ts: int | None
    stays: bool = False


@dataclass(slots=True)
class _Last:
    signature: Hashable
    answered: int  # ts of the last answer with the signature
    written: int  # ts of the last line
    heads: frozenset[Hashable]


class Changes:
    """The last answer of each poll target.

    >>> changes = Changes(5_000)
    >>> changes.of("group", "members a", 0), changes.of("group", "members a", 5_000)
    (Decision(is_written=True, is_change=True, previous_ts=None, stays=False), \
Decision(is_written=False, is_change=False, previous_ts=0, stays=False))
    >>> changes.of("group", "members a, b", 10_000)
    Decision(is_written=True, is_change=True, previous_ts=5000, stays=False)
    >>> heads = (frozenset({7}), frozenset({8}), frozenset({8}))
    >>> [changes.of("client", "queue 0", ts, heads=each).is_written for ts, each in enumerate(heads)]
    [True, False, True]
    """

    def __init__(self, interval_ms: int) -> None:
        """Take ``interval_ms``, that of the most frequent polls: a line is repeated before it is a minute old."""
        self._interval = interval_ms
        self._last: dict[Hashable, _Last] = {}

    def of(
        self,
        key: Hashable,
        signature: Hashable,
        ts: int,
        period_ms: int | None = None,
        is_kept: bool = False,
        heads: frozenset[Hashable] = frozenset(),
    ) -> Decision:
        """Decide about an answer of ``key`` at ``ts``, and store it.

        ``period_ms``: the poll interval of the key. ``is_kept``: write it in any case. ``heads``: the values that
        usually change.
        """
        last = self._last.get(key)
        if last is None:
            self._last[key] = _Last(signature, ts, ts, heads)
            return Decision(True, True, None)
        previous, is_change = last.answered, last.signature != signature
        is_due = ts - last.written + (period_ms or self._interval) > REPEAT_MS
        stays = not last.heads.isdisjoint(heads)
        last.answered, last.heads = ts, heads
        is_written = is_change or is_due or is_kept or stays
        if is_written:
            last.signature, last.written = signature, ts
        return Decision(is_written, is_change, previous, stays)

    def keep(self, keys: Container[Hashable]) -> None:
        """Forget all targets that are no longer polled."""
        self._last = {key: last for key, last in self._last.items() if key in keys}
