"""Records from answers: the lines and files of each answer, and what the recorder learns from it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from mqreplay.core.system_names import PROXY_GROUP
from mqreplay.decode.broker_runtime import DISKS, FIGURES
from mqreplay.errors import DecodeError, InputError
from mqreplay.record.network.answers import table_signature
from mqreplay.record.network.brokers_json import BrokersJson
from mqreplay.record.network.changes import Changes
from mqreplay.record.network.estate import Estate
from mqreplay.record.network.events import Append, Events
from mqreplay.record.network.offsets import OffsetReader
from mqreplay.record.network.polls import OF_5, POLLS, SNAPSHOT_FILES
from mqreplay.record.network.readings import Reading, identity
from mqreplay.record.network.schedule import Target
from mqreplay.record.network.topology import BrokerKey, Topology
from mqreplay.record.record_files import RecordFiles
from mqreplay.record.remoting.frames import SUCCESS, Answer

FULL_MS: Final = 300_000  # interval at which all figures of a broker are written
# The sizes are texts such as "3.3 KiB".
SIZES: Final = frozenset({"remainHowManyDataToFlush", "remainHowManyDataToCommit"})
# A disk may fill and be cleaned within FULL_MS.
RUNTIME_KEPT: Final = frozenset(FIGURES.values()) | SIZES | {*DISKS, "bootTimestamp", "brokerVersionDesc"}


class PollWriter:
    """A writer of the answers to polls. Times are by the recorder's clock, in epoch ms."""

    def __init__(
        self,
        files: RecordFiles,
        append: Append,
        events: Events,
        topology: Topology,
        estate: Estate,
        brokers: BrokersJson,
        every_ms: int,
    ) -> None:
        self._files, self._append, self._events = files, append, events
        self._topology, self._estate, self._brokers = topology, estate, brokers
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
        is_unsupported = target.kind in OF_5 and reading.fact is False
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
            self._events.missing(target, ts, reading.error)
        self._learn(target, ts, reading)
        return is_change and target.kind == "members"

    def take_offsets(self, target: Target, ts: int, response_ts: int, answer: Answer) -> str | None:
        """Write a broker's offset table. Return the reason if it cannot be read."""
        assert target.broker is not None
        if answer.code != SUCCESS:
            return answer.denied or f"response code {answer.code}: {answer.remark or ''}"
        reader = self._readers.setdefault(target.broker, OffsetReader())
        try:
            table, moved = reader.read(answer.body)
        except DecodeError as error:
            return f"the answer cannot be read: {error}"
        self._estate.take_offsets(target.broker, table, moved, ts)
        if not self._estate.records_all:
            table = {key: queues for key, queues in table.items() if self._estate.is_recorded_key(key)}
        try:
            self._files.append_offsets(*target.broker, ts, table, response_ts)
        except InputError as error:  # the broker's name cannot be a folder name
            return str(error)
        return None

    def take_snapshot(self, target: Target, ts: int, answer: Answer) -> None:
        """Write a copy of a broker's table if it differs from the last copy, also of an earlier run."""
        assert target.broker is not None
        key, name = (target.broker, target.kind), SNAPSHOT_FILES[target.kind]
        signature = table_signature(answer.body)
        try:
            if key not in self._snapshots and (before := self._files.last_snapshot(*target.broker, name)) is not None:
                self._snapshots[key] = table_signature(before)
            if self._snapshots.get(key) != signature:
                self._files.write_snapshot(*target.broker, ts, name, answer.body)
                self._snapshots[key] = signature
        except InputError as error:
            self._events.missing(target, ts, str(error))

    def write_brokers(self) -> None:
        """Write brokers.json if anything in it changed."""
        content = self._brokers.changed()
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
            self._brokers.seen(target.broker, target.addr)
            if reading.fact is not None:
                self._brokers.running(target.broker, reading.fact.get("brokerVersionDesc"))

    def _learn(self, target: Target, ts: int, reading: Reading) -> None:
        """Update the state with the fact of a reading."""
        estate, broker, fact = self._estate, target.broker, reading.fact
        if fact is None:
            return
        if target.kind == "cluster_info":
            if self._topology.update(target.addr, fact, ts):
                estate.revision += 1
        elif target.kind == "topic_list":
            estate.take_listed_topics(fact)
        elif target.kind == "proxy_members":
            estate.take_proxied(target.addr, target.subject, frozenset(map(str, fact.languages)))
        elif target.kind == "name_server_config":
            self._events.name_server(target, ts, fact)
        elif broker is None:
            pass
        elif target.kind == "config":
            self._brokers.configured(broker, fact)
        elif target.kind == "topics":
            estate.take_queue_counts(broker, fact)
        elif target.kind == "groups":
            estate.take_groups(broker, fact)
        elif target.kind in OF_5:
            estate.take_support(broker, target.kind, fact)
        elif target.kind == "connections":
            estate.take_subscriptions(broker, target.subject, fact.topics)
            if target.subject == PROXY_GROUP:
                estate.take_proxy_hosts(fact.hosts)
        elif target.kind == "running_info":
            estate.take_running(target.subject, target.client_id)
        elif target.kind == "topic_offsets":
            estate.take_max_offsets(broker, target.subject, fact)
        elif target.kind == "members":
            estate.take_members(broker, target.subject, fact)


def _key(target: Target) -> Target:
    """Return the key of a target: a broker keeps it at another address."""
    return target._replace(addr="") if target.broker else target
