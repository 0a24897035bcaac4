"""Records from the broker.log of one broker: clients that joined or left, resets, and when it was up.

A broker logs no heartbeat that changes nothing. While its log shows a client as registered, it received a heartbeat at
least every 120 s. So `Presence` repeats such a client every minute, like an unchanged value in a recording.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from mqreplay.decode.logs import broker_facts as log
from mqreplay.decode.logs.lock_log import LockLine
from mqreplay.record.imports.reset_history import Record, ResetHistory

SOURCE: Final = "broker_log"
ALIVE_MS: Final = 30_000  # largest interval between records of a running broker
REPEAT_MS: Final = 60_000
SILENT_MS: Final = 60_000  # two registrations
LAST_MS: Final = 999  # in a log without milliseconds, an event of a second happened by its last millisecond
STOPPED: Final = "it unregistered from the name server: a regular shutdown"
_LATE_MS: Final = 2_000  # for an answer in transit to the client


class Broker(NamedTuple):
    """A broker by name, id and address."""

    name: str
    broker_id: int
    addr: str | None


class Correction(NamedTuple):
    """A broker answered a pull with another offset."""

    ts: int
    broker: Broker
    fact: log.OffsetCorrected

    def answers(self, pull: Mapping[str, object]) -> bool:
        """Return whether it is the answer to a record of pull_log; the broker's log has whole seconds."""
        asked = (pull["topic"], pull["consumer_group"], pull["queue_offset"], pull["next_begin_offset"])
        near = self.ts - _LATE_MS <= int(str(pull["request_ts"])) <= self.ts + LAST_MS + _LATE_MS
        return near and pull["broker_name"] == self.broker.name and asked == tuple(self.fact)


class _Stay(NamedTuple):
    """A client was registered from ``since_ts`` to ``until_ts`` with one ``consumer`` (its subscriptions)."""

    since_ts: int
    until_ts: int
    consumer: dict[str, object]


@dataclass
class _Member:
    client_addr: str
    since_ts: int
    consumer: dict[str, object] | None = None


@dataclass
class Presence:
    """When each client was registered in each group, as the logs of all brokers show."""

    stays: dict[tuple[str, str], list[_Stay]] = field(default_factory=dict)

    def add(self, client_id: str, group: str, since_ts: int, until_ts: int, consumer: dict[str, object]) -> None:
        """Add a stay of a client at one broker."""
        self.stays.setdefault((client_id, group), []).append(_Stay(since_ts, until_ts, consumer))

    def records(self) -> Iterator[Record]:
        """Yield a heartbeat for each minute of each stay."""
        for (client_id, _), stays in sorted(self.stays.items()):
            in_order = sorted(stays, key=lambda stay: stay[:2])
            starts = [stay.since_ts for stay in in_order]
            for first_ts, last_ts in _union(in_order):
                for ts in range(first_ts + REPEAT_MS, last_ts, REPEAT_MS):
                    newest = in_order[bisect_right(starts, ts) - 1]
                    yield _heartbeat(ts, client_id, newest.consumer, None)


class BrokerHistory:
    """The history of one broker, from its facts in order. Each call of `take` yields the records that follow."""

    def __init__(self, broker: Broker, presence: Presence, resets: Collection[tuple[str, str, str, int]]) -> None:
        """Take ``resets``: client id, group, topic and ts of the resets in clients' logs, with their offsets."""
        self.left_out: Counter[str] = Counter()
        self.clients: set[str] = set()
        self.corrections: list[Correction] = []
        self.silences: list[tuple[int, int]] = []  # from the last registration; a running broker registers every 30 s
        self._broker = broker
        self._presence = presence
        self._resets = ResetHistory(broker_fields(broker), SOURCE, resets)
        self._clients: dict[str, str] = {}  # client id by the address of its connection
        self._members: dict[tuple[str, str], _Member] = {}
        self._joining: dict[tuple[str, str], int] = {}  # group, client address: time of the last heartbeat
        self._alive_ts = 0
        self._line_ts: int | None = None
        self._registers = False
        self._stopped_ts: int | None = None

    def tick(self, ts: int) -> Iterator[Record]:
        """Yield a record that the broker was up at ``ts``: it wrote a log line."""
        if self._registers and self._line_ts is not None and ts - self._line_ts > SILENT_MS:
            self.silences.append((self._line_ts, ts))
        self._line_ts = ts
        yield from self._resets.tick(ts)
        if self._stopped_ts is None and ts - self._alive_ts >= ALIVE_MS:
            self._alive_ts = ts
            yield runtime(ts, self._broker, None, SOURCE)

    def take(self, ts: int, fact: log.Fact) -> Iterator[Record]:
        """Yield the records that a fact completes."""
        match fact:
            case log.Joined():
                self._clients[fact.channel.client_addr] = fact.channel.client_id
                self._joining[fact.group, fact.channel.client_addr] = fact.channel.heard_ms
            case log.Announced():
                yield from self._announced(ts, fact)
            case log.Left():
                yield from self._left(ts, fact)
            case log.Vanished():
                yield from self._vanished(fact)
            case log.CommittedLess():
                yield self._lowered(ts, fact)
            case log.OffsetCorrected():
                self.corrections.append(Correction(ts, self._broker, fact))
            case log.ResetStarted() | log.ResetSent() | log.ResetDone() | log.ResetRefused():
                yield from self._resets.take(ts, fact)
            case log.Booted():
                if self._stopped_ts is not None:
                    # A broker that was stopped and did not come back is not an outage.
                    yield runtime(self._stopped_ts + LAST_MS, self._broker, STOPPED, SOURCE)
                self._stopped_ts, self._alive_ts = None, ts
                yield runtime(ts + LAST_MS, self._broker, None, SOURCE)
            case log.Stopped():
                self._stopped_ts = self._stopped_ts or ts
            case log.Setting():
                # The broker starts: no client is registered any more.
                self.end(self._alive_ts)
            case log.Registered():
                self._registers = True

    def finish(self, ts: int) -> Iterator[Record]:
        """Close all stays, and yield the records that are open at the end of the log."""
        self.end(ts)
        yield from self._resets.tick(None)

    def end(self, ts: int) -> None:
        """Close all stays: the log, or the process, ends at ``ts``."""
        for (client_id, group), member in self._members.items():
            self._stay(client_id, group, member, ts)
        self._members.clear()
        self._clients.clear()
        self._joining.clear()

    def _stay(self, client_id: str, group: str, member: _Member, until_ts: int) -> None:
        if member.consumer is not None and until_ts > member.since_ts:
            self._presence.add(client_id, group, member.since_ts, until_ts, member.consumer)

    def _announced(self, ts: int, fact: log.Announced) -> Iterator[Record]:
        group = str(fact.consumer["groupName"])
        client_id = self._clients.get(fact.client_addr)
        if client_id is None:
            self.left_out["heartbeats of clients that joined before the log begins"] += 1
            return
        heard_ms = self._joining.pop((group, fact.client_addr), ts)
        self.clients.add(client_id)
        member = self._members.get((client_id, group))
        if member is not None:
            self._stay(client_id, group, member, heard_ms)
        self._members[client_id, group] = _Member(fact.client_addr, heard_ms, fact.consumer)
        yield _heartbeat(heard_ms, client_id, fact.consumer, self._broker)

    def _left(self, ts: int, fact: log.Left) -> Iterator[Record]:
        client_id = fact.channel.client_id
        member = self._members.pop((client_id, fact.group), None)
        if member is not None:
            self._stay(client_id, fact.group, member, ts)
        self.clients.add(client_id)
        yield (
            "heartbeats",
            {
                "ts": ts,
                "kind": "UNREGISTER_CLIENT",
                "client_id": client_id,
                **broker_fields(self._broker),
                "header": {"clientID": client_id, "consumerGroup": fact.group},
                "source": SOURCE,
            },
        )

    def _vanished(self, fact: log.Vanished) -> Iterator[Record]:
        """End a stay without an unregistration at the last heartbeat."""
        client_id = fact.channel.client_id if fact.channel else self._clients.get(fact.client_addr)
        member = self._members.pop((client_id or "", fact.group), None)
        if client_id is None or member is None or member.consumer is None:
            self.left_out["ends of connections of clients that joined before the log begins"] += 1
            return
        heard_ms = fact.channel.heard_ms if fact.channel else member.since_ts
        self._stay(client_id, fact.group, member, heard_ms)
        if heard_ms > member.since_ts:
            yield _heartbeat(heard_ms, client_id, member.consumer, self._broker)

    def _lowered(self, ts: int, fact: log.CommittedLess) -> Record:
        """Return the record of a commit below the stored offset. It is not among offset_commits.

        A single commit without the others would look like all commits of the client.
        """
        return "lowered_offsets", {
            "ts": ts,
            "consumer_group": fact.group,
            "topic": fact.topic,
            "queue_id": fact.queue_id,
            **broker_fields(self._broker),
            "client_addr": fact.client_addr,
            "stored_offset": fact.store_offset,
            "commit_offset": fact.request_offset,
            "source": SOURCE,
        }


def runtime(ts: int, broker: Broker, error: str | None, source: str) -> Record:
    """Return a line of broker_runtime without figures: the broker was up at ``ts``, or down if there is an error."""
    record: dict[str, object] = {"ts": ts, **broker_fields(broker), "full": False, "source": source}
    return "broker_runtime", record if error is None else {**record, "error": error}


def lock_record(ts: int, lock: LockLine) -> Record:
    """Return the record of a refused lock or of an unlock."""
    queue = {"brokerName": lock.queue.broker_name, "queueId": lock.queue.queue_id, "topic": lock.queue.topic}
    record: dict[str, object] = {
        "ts": ts,
        "kind": "UNLOCK_BATCH_MQ" if lock.kind == "unlocked" else "LOCK_BATCH_MQ",
        "client_id": lock.client_id,
        "broker_name": lock.queue.broker_name,
        "request": {"clientId": lock.client_id, "consumerGroup": lock.group, "mqSet": [queue]},
        "source": "lock_log",
    }
    return "lock_requests", record if lock.kind == "unlocked" else {**record, "response": {"lockOKMQSet": []}}


def _heartbeat(ts: int, client_id: str, consumer: dict[str, object], broker: Broker | None) -> Record:
    body = {"clientID": client_id, "consumerDataSet": [consumer]}
    record: dict[str, object] = {"ts": ts, "kind": "HEART_BEAT", "client_id": client_id, "body": body}
    return "heartbeats", {**record, **(broker_fields(broker) if broker else {}), "source": SOURCE}


def broker_fields(broker: Broker) -> dict[str, object]:
    """Return the fields of a record that name a broker."""
    fields: dict[str, object] = {"broker_name": broker.name, "broker_id": broker.broker_id}
    return fields if broker.addr is None else {**fields, "broker_addr": broker.addr}


def _union(stays: list[_Stay]) -> list[tuple[int, int]]:
    """Return the time spans that ordered stays cover; adjacent stays are one span."""
    spans: list[tuple[int, int]] = []
    for stay in stays:
        if spans and stay.since_ts <= spans[-1][1]:
            spans[-1] = spans[-1][0], max(spans[-1][1], stay.until_ts)
        else:
            spans.append((stay.since_ts, stay.until_ts))
    return spans
