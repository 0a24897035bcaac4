"""Records from the broker.log of one broker: clients that joined or left, resets, and when it was up.

A broker logs no heartbeat that changes nothing. While its log shows a client as registered, it received a heartbeat at
least every 120 s. So `Presence` repeats such a client every minute, like an unchanged value in a recording.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Set
from typing import Final, NamedTuple

from mqreplay.decode import broker_events as events
from mqreplay.decode.logs import broker_facts as log
from mqreplay.decode.logs.form import Fact
from mqreplay.decode.server_requests import INVOKE_BROKER_TO_RESET_OFFSET, RESET_CONSUMER_CLIENT_OFFSET
from mqreplay.importer.logs.broker_records import (
    SOURCE,
    Broker,
    Record,
    Refusal,
    broker_fields,
    event_record,
    refusal_record,
    runtime,
)
from mqreplay.importer.logs.registered_clients import Presence, Registrations, Subscriptions

ALIVE_MS: Final = 30_000  # largest interval between records of a running broker
SILENT_MS: Final = 60_000  # two registrations
LAST_MS: Final = 999  # in a log without milliseconds, an event of a second happened by its last millisecond
STOPPED: Final = "it unregistered from the name server: a regular shutdown"
_START_MS: Final = 60_000  # a broker that starts takes its first role meanwhile
_AGAIN_MS: Final = 600_000  # between two starts of a loop; a supervisor waits 5 minutes at most
_LATE_MS: Final = 2_000  # for an answer in transit to the client
_SAME_MS: Final = 20_000  # between the same reset in a client's and a broker's log
_ANSWER_MS: Final = 10_000  # a broker carries a reset out, or refuses it, before it answers; mqadmin waits 5 s for that


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


class _Asked(NamedTuple):
    ts: int
    fact: log.ResetStarted


class ResetHistory:
    """The resets of one broker, from its facts in order. Calls yield the records that are complete.

    A request is complete with the line that says what became of it, or when the log goes on without one.
    """

    def __init__(
        self, broker_fields: Mapping[str, object], source: str, resets: Collection[tuple[str, str, str, int]]
    ) -> None:
        """Take ``resets``: client id, group, topic and ts of the resets in clients' logs, with their offsets."""
        self._fields = {**broker_fields, "source": source}
        self._resets = resets
        self._open: dict[tuple[str, str], _Asked] = {}  # requests without a result, the oldest first
        self._last: dict[tuple[str, str], log.ResetStarted] = {}

    def tick(self, ts: int | None) -> Iterator[Record]:
        """Yield the requests that nothing has answered by ``ts``; None: the log ends."""
        for key, asked in list(self._open.items()):
            if ts is None or ts - asked.ts > _ANSWER_MS:
                yield self._asked(self._open.pop(key))

    def take(
        self, ts: int, fact: log.ResetStarted | log.ResetSent | log.ResetDone | log.ResetRefused
    ) -> Iterator[Record]:
        """Yield the records that a fact completes."""
        match fact:
            case log.ResetStarted():
                key = (fact.topic, fact.group)
                if key in self._open:
                    yield self._asked(self._open.pop(key))
                self._open[key] = _Asked(ts, fact)
                self._last[key] = fact
            case log.ResetSent():
                yield from self._sent(ts, fact)
            case log.ResetDone():
                asked = self._open.pop((fact.topic, fact.group), None)
                yield self._asked(asked, body=fact.body) if asked else self._unasked(ts, fact, body=fact.body)
            case log.ResetRefused():
                yield from self._refused(ts, fact)

    def _sent(self, ts: int, fact: log.ResetSent) -> Iterator[Record]:
        key = (fact.topic, fact.group)
        if key in self._open:
            yield self._asked(self._open.pop(key))
        for client_id, group, topic, at in self._resets:
            same = (client_id, group, topic) == (fact.client_id, fact.group, fact.topic)
            if same and abs(at - ts) <= _SAME_MS:
                return
        ext = {"topic": fact.topic, "group": fact.group}
        if key in self._last:
            ext |= {"timestamp": str(self._last[key].timestamp), "isForce": self._last[key].is_force}
        yield (
            "server_requests",
            {
                "ts": ts,
                "client_id": fact.client_id,
                **self._fields,
                "request_code": RESET_CONSUMER_CLIENT_OFFSET,
                "name": "RESET_CONSUMER_CLIENT_OFFSET",
                "ext": ext,
            },
        )

    def _refused(self, ts: int, fact: log.ResetRefused) -> Iterator[Record]:
        # Lines that do not name the topic or the group are of the last request: the same thread writes both.
        keys = [
            (topic, group) for topic, group in self._open if fact.topic in (None, topic) and fact.group in (None, group)
        ]
        if keys:
            yield self._asked(self._open.pop(keys[-1]), error=fact.reason)
        elif fact.topic is not None and fact.group is not None and (fact.topic, fact.group) not in self._last:
            yield self._unasked(ts, fact, error=fact.reason)

    def _asked(self, asked: _Asked, **result: str) -> Record:
        fact = asked.fact
        ext = {"topic": fact.topic, "group": fact.group, "timestamp": str(fact.timestamp), "isForce": fact.is_force}
        return self._request(asked.ts, ext, client_addr=fact.client_addr, **result)

    def _unasked(self, ts: int, fact: log.ResetDone | log.ResetRefused, **result: str) -> Record:
        """Return the record of a request whose first line is missing: the log begins after it."""
        return self._request(ts, {"topic": str(fact.topic), "group": str(fact.group)}, **result)

    def _request(self, ts: int, ext: dict[str, str], **fields: str) -> Record:
        named = {"request_code": INVOKE_BROKER_TO_RESET_OFFSET, "name": "INVOKE_BROKER_TO_RESET_OFFSET", "ext": ext}
        return "server_requests", {"ts": ts, **self._fields, **named, **fields}


class BrokerEvents:
    """The starts, roles, topics and refusals of one broker, from its facts in order. Its id need not be known."""

    def __init__(self, broker_name: str | None, broker: Broker | None, refused: Set[Refusal]) -> None:
        """Take the name that the broker's log shows; ``broker`` is None if its id is not known.

        Without a name, only refusals of pulls count, but those that clients' logs have too (``refused``).
        """
        self._name = broker_name
        self._refused = refused
        self._fields = {} if broker is None else {"broker_id": broker.broker_id, "broker_addr": broker.addr}
        self._settings: set[str] = set()  # of the last start
        self._start_ts: int | None = None
        self._starts = 0  # in a row without being ready
        self.is_ready = True  # as far as the log shows
        self.unused = 0  # facts of `records` that need the id of the broker
        self._term: log.TermBegun | None = None

    def records(self, facts: Iterable[tuple[int, Fact]]) -> Iterator[Record]:
        """Yield the records of all facts of a log."""
        for ts, fact in facts:
            records = list(self.take(ts, fact))
            self.unused += not records and not isinstance(fact, log.TermBegun | log.Setting)
            yield from records

    def take(self, ts: int, fact: Fact) -> Iterator[Record]:
        """Yield the records of a fact."""
        match fact:
            case log.PullRefused():
                if self._refused.isdisjoint({(fact.group, fact.response_code), (None, fact.response_code)}):
                    names = {"broker_name": self._name, "broker_addr": self._fields.get("broker_addr")}
                    yield refusal_record(ts, fact, names)
            case _ if self._name is None:
                pass
            case log.Setting(name):
                if not self._settings or name in self._settings:
                    is_again = not self.is_ready and self._start_ts is not None and ts - self._start_ts <= _AGAIN_MS
                    self._starts = self._starts + 1 if is_again else 1
                    self._settings, self._start_ts, self.is_ready = set(), ts, False
                    yield self._event(ts, events.STARTED, starts=self._starts)
                self._settings.add(name)
            case log.StartFailed(cause):
                yield self._event(ts, events.START_FAILED, detail=cause)
            case log.Booted() | log.Registered() if not self.is_ready:
                self.is_ready = True
                yield self._event(ts, events.READY)
            case log.TermBegun():
                self._term = fact
            case log.RoleBegun():
                yield self._role(ts, fact)
            case log.RoleTaken():
                role = events.BECAME_SLAVE if fact.role == "SLAVE" else events.BECAME_MASTER
                own = {"broker_id": fact.broker_id, "broker_addr": fact.broker_addr}
                master = {"master_id": fact.master_id, "master_addr": fact.master_addr, "master_epoch": fact.epoch}
                yield self._event(ts, role, **own, **master, is_at_start=self._is_at_start(ts))
            case log.TopicCreated(topic):
                yield self._event(ts, events.TOPIC_CREATED, topic=topic)
            case log.TopicDeleted(topic):
                yield self._event(ts, events.TOPIC_DELETED, topic=topic)
            case _:
                pass

    def _role(self, ts: int, fact: log.RoleBegun) -> Record:
        self._name = fact.broker_name
        term, self._term = self._term, None
        epoch = fact.epoch if fact.epoch is not None or term is None else term.term
        # An id is that of a role: the log of a broker that changes it does not have one.
        own = {"broker_id": fact.broker_id, "broker_addr": fact.broker_addr}
        master: dict[str, object] = {"master_id": fact.master_id, "master_addr": fact.master_addr}
        if fact.role == events.BECAME_MASTER:
            master |= {"master_addr": fact.broker_addr}
        return self._event(ts, fact.role, **own, **master, master_epoch=epoch, is_at_start=self._is_at_start(ts))

    def _is_at_start(self, ts: int) -> bool:
        return self._start_ts is not None and ts - self._start_ts <= _START_MS

    def _event(self, ts: int, event: str, **fields: object) -> Record:
        return event_record(ts, event, str(self._name), {**self._fields, **fields})


class BrokerHistory:
    """The history of one broker, from its facts in order. Each call of `take` yields the records that follow."""

    def __init__(self, broker: Broker, presence: Presence, resets: Collection[tuple[str, str, str, int]]) -> None:
        """Take ``resets``: client id, group, topic and ts of the resets in clients' logs, with their offsets."""
        self.left_out: Counter[str] = Counter()
        self.corrections: list[Correction] = []
        self.silences: list[tuple[int, int]] = []  # from the last registration; a running broker registers every 30 s
        self._broker = broker
        self._resets = ResetHistory(broker_fields(broker), SOURCE, resets)
        self._presence = presence
        self._registered = Registrations(broker, presence, self.left_out)
        self._subscriptions = Subscriptions(broker)
        self._alive_ts = 0
        self._line_ts: int | None = None
        self._registers = False
        self._stopped_ts: int | None = None

    def tick(self, ts: int) -> Iterator[Record]:
        """Yield a record that the broker was up at ``ts``: it wrote a log line."""
        if self._registers and self._line_ts is not None and ts - self._line_ts > SILENT_MS:
            self.silences.append((self._line_ts, ts))
        self._presence.see_line(ts)
        self._line_ts = ts
        yield from self._resets.tick(ts)
        if self._stopped_ts is None and ts - self._alive_ts >= ALIVE_MS:
            self._alive_ts = ts
            yield runtime(ts, self._broker, None, SOURCE)

    def take(self, ts: int, fact: Fact) -> Iterator[Record]:
        """Yield the records that a fact completes."""
        match fact:
            case log.Joined():
                self._registered.joined(fact)
            case log.Announced():
                yield from self._registered.announced(ts, fact)
            case log.Left():
                yield from self._registered.left(ts, fact)
            case log.Vanished():
                yield from self._registered.vanished(ts, fact)
            case log.SubscriptionChanged():
                yield from self._subscriptions.changed(ts, fact)
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
                yield from self.end(self._alive_ts)
            case log.Registered():
                self._registers = True

    @property
    def clients(self) -> set[str]:
        """Return the ids of the clients that were registered."""
        return self._registered.clients

    def finish(self, ts: int) -> Iterator[Record]:
        """End all registrations, and yield the records that are open at the end of the log."""
        yield from self.end(ts)
        yield from self._resets.tick(None)

    def end(self, ts: int) -> Iterator[Record]:
        """End all registrations: the log, or the process, ends at ``ts``."""
        yield from self._registered.end(ts)
        self._subscriptions = Subscriptions(self._broker)

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
