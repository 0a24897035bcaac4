"""Records from the broker.log of one broker: clients that joined or left, resets, and when it was up.

A broker logs no heartbeat that changes nothing. While its log shows a client as registered, it received a heartbeat at
least every 120 s. So `Presence` repeats such a client every minute, like an unchanged value in a recording.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import Final, NamedTuple

from mqreplay.decode.logs import broker_facts as log
from mqreplay.record.imports.logs.broker_records import SOURCE, Broker, Record, broker_fields, runtime
from mqreplay.record.imports.logs.registered_clients import Presence, Registrations
from mqreplay.record.imports.logs.reset_history import ResetHistory

ALIVE_MS: Final = 30_000  # largest interval between records of a running broker
SILENT_MS: Final = 60_000  # two registrations
LAST_MS: Final = 999  # in a log without milliseconds, an event of a second happened by its last millisecond
STOPPED: Final = "it unregistered from the name server: a regular shutdown"
_LATE_MS: Final = 2_000  # for an answer in transit to the client


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

    def take(self, ts: int, fact: log.Fact) -> Iterator[Record]:
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
