"""Records of a recording from RocketMQ's logs.

Clients' logs come first: the same events in brokers' logs are then left out. Name servers' logs come last, because they
name brokers only by address.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from mqreplay.decode.logs.broker_facts import Booted, Registered, Setting
from mqreplay.decode.logs.broker_log import read_broker_fact
from mqreplay.decode.logs.client_facts import HeartbeatFailed
from mqreplay.decode.logs.client_log import read_client_fact
from mqreplay.decode.logs.lock_log import read_lock_line
from mqreplay.decode.logs.namesrv_log import BrokerSeen, read_namesrv_fact
from mqreplay.decode.logs.stats_log import read_fall_behind
from mqreplay.errors import DecodeError
from mqreplay.record.imports.broker_history import (
    LAST_MS,
    STOPPED,
    Broker,
    BrokerHistory,
    Correction,
    Presence,
    broker_fields,
    lock_record,
    runtime,
)
from mqreplay.record.imports.client_history import ClientHistory
from mqreplay.record.imports.held_queues import Record
from mqreplay.record.imports.log_files import (
    BROKER,
    CLIENT,
    LOCK,
    NAMESRV,
    STATS,
    Process,
    is_log,
    processes,
)
from mqreplay.record.imports.log_report import LogReport
from mqreplay.record.imports.log_zones import Span, Zone, client_offset, misfit, zone_of
from mqreplay.record.imports.sources import Source, Writer

__all__ = ["LogReport", "import_logs", "is_log"]
_ORDER: Final = (CLIENT, BROKER, LOCK, STATS, NAMESRV)
_AGAIN_MS: Final = 10_000  # the same loss of a broker in the logs of two name servers


def import_logs(
    sources: Sequence[Source],
    writer: Writer,
    time_zone: dt.tzinfo | None,
    brokers: Mapping[str, tuple[str, int]],
    evidence_ms: Span | None = None,
) -> LogReport:
    """Append the records of all logs to ``writer`` and return a report. No content makes it fail.

    ``time_zone`` is the user's choice for all logs (None: each log's own). ``brokers`` maps the folder of a log, or an
    address, to broker name and id. ``evidence_ms`` is the time span of all other imported files.
    """
    return _Import(writer, time_zone, dict(brokers), evidence_ms).run(sources)


class _Import:
    def __init__(
        self, writer: Writer, time_zone: dt.tzinfo | None, brokers: dict[str, tuple[str, int]], evidence: Span | None
    ) -> None:
        self.report = LogReport()
        self._writer = writer
        self._time_zone = time_zone
        self._brokers = brokers
        self._evidence = evidence
        self._presence = Presence()
        self._resets: list[tuple[str, str, str, int]] = []
        self._illegal_pulls: list[Record] = []
        self._corrections: list[Correction] = []
        self._unanswered: list[tuple[int, HeartbeatFailed]] = []
        self._silences: dict[tuple[str, int], list[Span]] = {}  # of each broker's log
        self._lost: dict[Broker, int] = {}  # when a name server last reported it
        self._clients: set[str] = set()  # with their own log
        self._members: set[str] = set()  # in brokers' logs

    def run(self, sources: Sequence[Source]) -> LogReport:
        found, empty = processes(sources)
        for one in empty:
            why = "it has no line of a RocketMQ log" if one.lines else "it is empty"
            self.report.not_recognised.append((one.source.path, one.trouble or why))
        zones = self._zones(found)
        for process in sorted(found, key=lambda one: _ORDER.index(one.log)):
            self._process(process, zones[process.log, process.folder])
        for stem, record in self._presence.records():
            self._writer.append(stem, record)
        for stem, pull in self._illegal_pulls:
            # A client's log does not show which broker answered; a broker's log may.
            answer = next((one for one in self._corrections if one.answers(pull)), None)
            self._writer.append(stem, pull if answer is None else pull | broker_fields(answer.broker))
        for ts, beat in self._unanswered:
            # One heartbeat proves nothing: the broker's own log must be silent too, and then continue.
            silences = self._silences.get((beat.broker_name, beat.broker_id), [])
            if any(first < ts < last for first, last in silences):
                stem, record = runtime(ts, Broker(*beat), "it did not answer a heartbeat", "client_log")
                self._writer.append(stem, record)
        self._helps(found)
        return self.report

    def _zones(self, found: Sequence[Process]) -> dict[tuple[str, str], Zone]:
        of_clients = client_offset(found)
        zones = {}
        spans = [] if self._evidence is None else [self._evidence]
        for process in found:
            zone, contradiction = zone_of(process, self._time_zone, of_clients)
            zones[process.log, process.folder] = zone
            if contradiction:
                self.report.notes.append(contradiction)
            if zone.proven:
                spans.append((zone.epoch_ms(process.first_ms), zone.epoch_ms(process.last_ms)))
        known = (min(first for first, _ in spans), max(last for _, last in spans)) if spans else None
        for process in found:
            note = misfit(process, zones[process.log, process.folder], known)
            if note:
                self.report.notes.append(note)
        return zones

    def _process(self, process: Process, zone: Zone) -> None:
        for one in process.files:
            if one.trouble:
                self.report.notes.append(f"{one.source.path}: {one.trouble}")
        reader = {
            CLIENT: self._client_records,
            BROKER: self._broker_records,
            LOCK: self._lock_records,
            STATS: self._stats_records,
            NAMESRV: self._namesrv_records,
        }[process.log]
        count, refused = 0, len(self.report.not_recognised)
        for stem, record in reader(process, zone):
            self._writer.append(stem, record)
            count += 1
        if len(self.report.not_recognised) > refused:
            return  # the reader has reported the reason
        files = "" if len(process.files) == 1 else f" in {len(process.files)} files"
        what = f"{process.log}.log of RocketMQ{files}; time zone {zone.why}"
        self.report.recognised.append((process.name, what, count))

    def _client_records(self, process: Process, zone: Zone) -> Iterator[Record]:
        history = ClientHistory(self._brokers)
        for line in process.lines(self.report.left_out):
            try:
                fact = read_client_fact(line.message)
            except DecodeError as error:
                self.report.left_out[f"damaged lines ({error.code})"] += 1
                continue
            if fact is not None:
                yield from history.take(zone.epoch_ms(line.wall_ms), fact)
        yield from history.end()
        self.report.left_out += history.left_out
        self._brokers = history.names | self._brokers
        self._resets += history.resets
        self._illegal_pulls += history.illegal_pulls
        self._unanswered += history.unanswered
        self._clients |= history.clients

    def _broker_records(self, process: Process, zone: Zone) -> Iterator[Record]:
        broker = self._broker_of(process)
        if broker is None:
            why = "nothing shows which broker wrote it; give --broker NAME-ID"
            self.report.not_recognised.append((process.name, why))
            return
        if broker.addr is not None:
            self.report.found_brokers[f"{broker.name}-{broker.broker_id}"] = {"addr": broker.addr}
            self._brokers.setdefault(broker.addr, (broker.name, broker.broker_id))
        history = BrokerHistory(broker, self._presence, self._resets)
        ts = 0
        for line in process.lines(self.report.left_out):
            try:
                fact = read_broker_fact(line.message)
            except DecodeError as error:
                self.report.left_out[f"damaged lines ({error.code})"] += 1
                continue
            ts = zone.epoch_ms(line.wall_ms)
            if fact is not None:
                yield from history.take(ts, fact)
            yield from history.tick(ts)
        yield from history.finish(ts)
        self.report.left_out += history.left_out
        self._members |= history.clients
        self._corrections += history.corrections
        self._silences[broker.name, broker.broker_id] = history.silences

    def _broker_of(self, process: Process) -> Broker | None:
        """Return the broker of a log: by its folder, else by the settings that it logged at its start."""
        written: dict[str, str] = {}
        broker_id: int | None = None
        for line in process.lines(Counter()):
            try:
                fact = read_broker_fact(line.message)
            except DecodeError:
                continue
            match fact:
                case Setting():
                    written[fact.name] = fact.value
                case Booted():
                    written |= {"brokerName": fact.broker_name, "addr": fact.broker_addr}
                case Registered():
                    broker_id = fact.broker_id
                case _:
                    pass
            if fact is not None and "addr" in written and ("brokerId" in written or written["addr"] in self._brokers):
                break
        addr = written.get("addr")
        for folder in process.folders:
            if folder in self._brokers:
                return Broker(*self._brokers[folder], addr)
        if addr is not None and addr in self._brokers:
            return Broker(*self._brokers[addr], addr)
        if written.get("brokerId", "").isdigit():
            broker_id = int(written["brokerId"])
        return (
            Broker(written["brokerName"], broker_id, addr)
            if broker_id is not None and "brokerName" in written
            else None
        )

    def _lock_records(self, process: Process, zone: Zone) -> Iterator[Record]:
        for line in process.lines(self.report.left_out):
            try:
                lock = read_lock_line(line.message)
            except DecodeError as error:
                self.report.left_out[f"damaged lines ({error.code})"] += 1
                continue
            if lock is None:
                continue
            if lock.kind == "granted":
                self.report.left_out["granted locks (lock.log does not show how long they were held)"] += 1
                continue
            yield lock_record(zone.epoch_ms(line.wall_ms), lock)

    def _stats_records(self, process: Process, _: Zone) -> Iterator[Record]:
        for line in process.lines(self.report.left_out):
            try:
                fall = read_fall_behind(line.message)
            except DecodeError as error:
                self.report.left_out[f"damaged lines ({error.code})"] += 1
                continue
            if fall is not None:
                self.report.left_out[
                    f"lines of stats.log about the lag of consumers, {fall.measure} (no table has them)"
                ] += 1
        yield from ()

    def _namesrv_records(self, process: Process, zone: Zone) -> Iterator[Record]:
        stopped: dict[Broker, int] = {}
        for line in process.lines(self.report.left_out):
            fact = read_namesrv_fact(line.message)
            if not isinstance(fact, BrokerSeen):
                continue
            named = self._brokers.get(fact.broker_addr)
            if named is None:
                self.report.left_out["lines of namesrv.log about brokers with an unknown address"] += 1
                continue
            ts, broker = zone.epoch_ms(line.wall_ms) + LAST_MS, Broker(*named, fact.broker_addr)
            if fact.event == "registered":
                if broker in stopped:
                    yield runtime(stopped.pop(broker), broker, STOPPED, "namesrv_log")
                yield runtime(ts, broker, None, "namesrv_log")
            elif fact.event == "unregistered":
                stopped[broker] = ts
            elif abs(ts - self._lost.get(broker, 0)) > _AGAIN_MS:
                self._lost[broker] = ts
                yield runtime(ts, broker, f"a name server lost it: {_LOST[fact.event]}", "namesrv_log")

    def _helps(self, found: Sequence[Process]) -> None:
        logs = {process.log for process in found}
        if CLIENT not in logs:
            self.report.helps.append("rocketmq_client.log of the consumers: it shows which client held which queue")
        elif self._members - self._clients:
            some = ", ".join(sorted(self._members - self._clients)[:3])
            count = len(self._members - self._clients)
            more = "1 more client" if count == 1 else f"{count} more clients"
            self.report.helps.append(f"rocketmq_client.log of {more} that brokers knew ({some})")
        if BROKER not in logs:
            self.report.helps.append("broker.log of each broker: it shows which clients joined, left or vanished")
        if NAMESRV not in logs:
            self.report.helps.append("namesrv.log of a name server: it shows when a broker was lost")


_LOST: Final = {
    "destroyed": "its connection closed without an unregistration",
    "expired": "2 minutes without a registration",
}
