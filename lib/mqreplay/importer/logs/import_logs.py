"""Records of a recording from RocketMQ's logs.

Clients' logs come first: the same events in brokers' logs are then left out. Name servers' logs come last, because they
name brokers only by address.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from mqreplay.decode.broker_runtime import EXPIRED, NAME_SERVER_LOST
from mqreplay.decode.logs.broker_facts import LockLine
from mqreplay.decode.logs.client_facts import HeartbeatFailed
from mqreplay.decode.logs.log_line import (
    BROKER_LINES,
    CLIENT_LINES,
    CONTROLLER_LINES,
    LOCK_LINES,
    LOGS,
    NAMESRV_LINES,
    REMOTING_LINES,
    STATS_LINES,
    STORE_LINES,
    LogLine,
)
from mqreplay.decode.logs.namesrv_log import BrokerSeen
from mqreplay.decode.logs.store_log import DiskMarked
from mqreplay.importer.files.sources import Writer
from mqreplay.importer.logs.broker_history import LAST_MS, STOPPED, BrokerEvents, BrokerHistory, Correction
from mqreplay.importer.logs.broker_records import (
    Broker,
    NewTopics,
    Refusal,
    broker_fields,
    controller_record,
    lock_record,
    refusals_of,
    refused_pulls,
    runtime,
)
from mqreplay.importer.logs.client_history import ClientHistory
from mqreplay.importer.logs.held_queues import Record
from mqreplay.importer.logs.log_files import LogScan, Process
from mqreplay.importer.logs.log_identity import broker_in_lines, named_brokers, slave_of_folder
from mqreplay.importer.logs.log_report import UNANSWERED_BEATS, LogReport
from mqreplay.importer.logs.log_zones import Span, Zones, client_offset, misfits, zones_of
from mqreplay.importer.logs.registered_clients import Presence
from mqreplay.importer.logs.stats_lines import StatsLines

UNKNOWN_BROKER: Final = "nothing shows which broker wrote it; give --broker NAME-ID"
UNUSED_LINES: Final = "none of its lines has a message that import uses; --broker NAME-ID shows only when it ran"
UNKNOWN_ADDRESS: Final = (
    "lines of namesrv.log about brokers with an unknown address (add the output of clusterList, which names them)"
)
_LOST: Final = {
    "destroyed": "its connection closed without an unregistration",
    "expired": EXPIRED,
}
_AGAIN_MS: Final = 10_000  # the same loss of a broker in the logs of two name servers


def import_logs(
    scan: LogScan,
    writer: Writer,
    time_zone: dt.tzinfo | None,
    brokers: Mapping[str, tuple[str, int]],
    evidence_ms: Span | None = None,
) -> LogReport:
    """Append the records of all logs of a scan to ``writer`` and return a report. No content makes it fail.

    ``time_zone`` is the user's choice for all logs (None: each log's own). ``brokers`` maps the folder of a log, or an
    address, to broker name and id. ``evidence_ms`` is the time span of all other imported files.
    """
    return _Import(writer, time_zone, dict(brokers), evidence_ms).run(scan)


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
        self._refused: set[Refusal] = set()  # pulls, in clients' logs
        self._corrections: list[Correction] = []
        self._unanswered: list[tuple[int, HeartbeatFailed]] = []
        self._silences: dict[tuple[str, int], list[Span]] = {}  # of each broker's log
        self._lost: dict[Broker, int] = {}  # when a name server last reported it
        self._clients: set[str] = set()  # with their own log
        self._members: set[str] = set()  # in brokers' logs
        self._alike: Counter[tuple[str, str]] = Counter()  # processes by log and folder
        self._seen: dict[tuple[str, str], set[tuple[int, str]]] = {}

    def run(self, scan: LogScan) -> LogReport:
        found = scan.processes
        self.report.lines = scan.lines
        self.report.repeated = len(scan.repeated)
        self.report.notes += [f"{source.path}: {trouble}" for source, trouble in scan.troubles]
        self._alike = Counter((process.log, process.folder) for process in found)
        zones = self._zones(found)
        places = {log: place for place, log in enumerate(LOGS)}
        order = sorted(range(len(found)), key=lambda at: places[found[at].log])
        for at in order:
            self._process(found[at], zones[at])
        for stem, record in self._presence.records():
            self._writer.append(stem, record)
        answered: set[Correction | None] = set()
        for stem, pull in self._illegal_pulls:
            # A client's log does not show which broker answered; a broker's log may.
            answer = next((one for one in self._corrections if one.answers(pull)), None)
            self._writer.append(stem, pull if answer is None else pull | broker_fields(answer.broker))
            answered.add(answer)
        self._count_unanswered(answered)
        for ts, beat in self._unanswered:
            # One heartbeat proves nothing: the broker's own log must be silent too, and then continue.
            silences = self._silences.get((beat.broker_name, beat.broker_id), [])
            if any(first < ts < last for first, last in silences):
                stem, record = runtime(ts, Broker(*beat), "it did not answer a heartbeat", "client_log")
                self._writer.append(stem, record)
            else:
                self.report.leave_out(UNANSWERED_BEATS, f"{beat.broker_name}-{beat.broker_id} at {beat.broker_addr}")
        self._helps(found)
        return self.report

    def _zones(self, found: Sequence[Process]) -> list[Zones]:
        of_clients = client_offset(found)
        zones = []
        spans = [] if self._evidence is None else [self._evidence]
        for process in found:
            known, contradictions = zones_of(process, self._time_zone, of_clients)
            zones.append(known)
            self.report.notes += contradictions
            for layout, zone in known.by_layout.items():
                if zone.proven:
                    first, last = process.span(layout)
                    spans.append((zone.epoch_ms(first), zone.epoch_ms(last)))
        evidence = (min(first for first, _ in spans), max(last for _, last in spans)) if spans else None
        for process, known in zip(found, zones, strict=True):
            self.report.notes += misfits(process, known, evidence)
        return zones

    def _process(self, process: Process, zones: Zones) -> None:
        reader = {
            CLIENT_LINES: self._client_records,
            BROKER_LINES: self._broker_records,
            LOCK_LINES: self._lock_records,
            STATS_LINES: self._stats_records,
            STORE_LINES: self._store_records,
            REMOTING_LINES: self._remoting_records,
            NAMESRV_LINES: self._namesrv_records,
            CONTROLLER_LINES: self._controller_records,
        }[process.log]
        count, refused = 0, len(self.report.not_recognised)
        for stem, record in reader(process, zones):
            self._writer.append(stem, record)
            count += 1
        if len(self.report.not_recognised) > refused:
            return  # the reader has reported the reason
        files = "" if len(process.parts) == 1 else f" in {len(process.parts)} files"
        what = f"{process.log}.log of RocketMQ{files}; time zone {zones.why}"
        self.report.recognised.append((process.name, what, count))

    def _lines(self, process: Process) -> Iterator[LogLine]:
        """Yield the lines of a process; those that another file of its folder has too, such as its console, once."""
        if self._alike[process.log, process.folder] < 2:
            yield from process.lines()
            return
        seen = self._seen.setdefault((process.log, process.folder), set())
        own: set[tuple[int, str]] = set()
        repeated = 0
        for line in process.lines():
            key = (line.clock.wall_ms, line.message)
            if line.fact is not None and key in seen:
                repeated += 1
                continue
            if line.fact is not None:
                own.add(key)
            yield line
        seen |= own
        if repeated:
            self.report.lines.give_up(repeated, "lines that are in two files of a folder")

    def _client_records(self, process: Process, zones: Zones) -> Iterator[Record]:
        history = ClientHistory(self._brokers, process.digest)
        for line in self._lines(process):
            if line.fact is not None:
                yield from history.take(zones.epoch_ms(line.clock), line.fact)
        yield from history.end()
        self._refused |= refusals_of(history.errors)
        self.report.left_out += history.left_out
        self._brokers = history.names | self._brokers
        self._resets += history.resets
        self._illegal_pulls += history.illegal_pulls
        self._unanswered += history.unanswered
        self._clients |= history.clients

    def _broker_records(self, process: Process, zones: Zones) -> Iterator[Record]:
        broker = self._broker_of(process)
        names = process.broker_names if broker is None else {broker.name}
        is_named = len(names) == 1
        if broker is None and not process.has_refusals and not (is_named and process.has_events):
            self._named_broker(process)
            return
        of_events = BrokerEvents(min(names) if is_named else None, broker, self._refused)
        if broker is None:
            lines = self._lines(process)
            yield from of_events.records(
                (zones.epoch_ms(line.clock), line.fact) for line in lines if line.fact is not None
            )
            form = f"lines of a {process.log}.log, of a broker whose id is not known (give --broker NAME-ID)"
            self.report.lines.give_up(of_events.unused, form)
            return
        found = {"addr": broker.addr, "cluster": process.settings.get("brokerClusterName")}
        self.report.found_brokers[f"{broker.name}-{broker.broker_id}"] = {
            n: v for n, v in found.items() if v is not None
        }
        if broker.addr is not None:
            self._brokers.setdefault(broker.addr, (broker.name, broker.broker_id))
        history = BrokerHistory(broker, self._presence, self._resets)
        ts = 0
        for line in self._lines(process):
            ts = zones.epoch_ms(line.clock)
            if line.fact is not None:
                yield from history.take(ts, line.fact)
                yield from of_events.take(ts, line.fact)
            # A broker that starts writes lines, and answers nobody yet.
            yield from (record for record in history.tick(ts) if of_events.is_ready or record[0] != "broker_runtime")
        yield from history.finish(ts)
        self.report.left_out += history.left_out
        self._members |= history.clients
        self._corrections += history.corrections
        self._silences[broker.name, broker.broker_id] = history.silences

    def _named_broker(self, process: Process) -> Broker | None:
        """Return the broker of a log. Without one, the log is refused."""
        broker = self._broker_of(process)
        if broker is None:
            facts = sum(part.facts for part in process.parts)
            why = UNKNOWN_BROKER if facts else UNUSED_LINES
            if len(process.broker_names) > 1:
                names = ", ".join(sorted(process.broker_names))
                why = (
                    f"it has lines of several brokers ({names}), and no line names its own; give a file of each broker"
                )
            self.report.not_recognised.append((process.name, why))
            self.report.lines.give_up(facts, f"lines of a {process.log}.log, of an unknown broker")
        return broker

    def _broker_of(self, process: Process) -> Broker | None:
        """Return the broker of a log: by its folder, else by the settings that it logged at its start, or its address.

        Where several pods wrote into one file, the folder names none of them.
        """
        own = broker_in_lines(process)
        addr = own.addr
        for folder in process.folders if process.writer.name is None else []:
            if folder in self._brokers:
                return Broker(*self._brokers[folder], addr)
        if len(process.broker_names) > 1:
            return None
        if own.name is not None and own.broker_id is not None:
            return Broker(own.name, own.broker_id, addr)
        for place in (addr or "", *process.folders):
            if place in self._brokers:
                return Broker(*self._brokers[place], addr)
        return slave_of_folder(process)

    def _lock_records(self, process: Process, zones: Zones) -> Iterator[Record]:
        for line in self._lines(process):
            lock = line.fact
            if not isinstance(lock, LockLine):
                continue
            if lock.kind == "granted":
                self.report.left_out["granted locks (lock.log does not show how long they were held)"] += 1
                continue
            yield lock_record(zones.epoch_ms(line.clock), lock)

    def _stats_records(self, process: Process, zones: Zones) -> Iterator[Record]:
        stats = StatsLines()
        for line in self._lines(process):
            if line.fact is not None and line.log == STATS_LINES:
                stats.take(zones.epoch_ms(line.clock), line.fact)
        stats.count(self.report.lines)
        yield from ()

    def _store_records(self, process: Process, zones: Zones) -> Iterator[Record]:
        broker = self._named_broker(process)
        if broker is None:
            return
        for line in self._lines(process):
            if isinstance(line.fact, DiskMarked):
                figures = {line.fact.figure: line.fact.ratio}
                yield runtime(zones.epoch_ms(line.clock), broker, None, "store_log", figures)

    def _remoting_records(self, process: Process, zones: Zones) -> Iterator[Record]:
        lines = ((zones.epoch_ms(line.clock), line) for line in self._lines(process))
        yield from refused_pulls(lines, self._broker_of(process), self.report.leave_out)

    def _namesrv_records(self, process: Process, zones: Zones) -> Iterator[Record]:
        named = named_brokers(process, self._brokers.values()) | self._brokers
        stopped: dict[Broker, int] = {}
        topics = NewTopics()
        for line in self._lines(process):
            fact = line.fact
            if fact is not None:
                yield from topics.take(zones.epoch_ms(line.clock), fact)
            if not isinstance(fact, BrokerSeen):
                continue
            if fact.broker_addr not in named:
                self.report.left_out[UNKNOWN_ADDRESS] += 1
                continue
            ts, broker = zones.epoch_ms(line.clock) + LAST_MS, Broker(*named[fact.broker_addr], fact.broker_addr)
            if fact.event == "registered":
                if broker in stopped:
                    yield runtime(stopped.pop(broker), broker, STOPPED, "namesrv_log")
                yield runtime(ts, broker, None, "namesrv_log")
            elif fact.event == "unregistered":
                stopped[broker] = ts
            elif abs(ts - self._lost.get(broker, 0)) > _AGAIN_MS:
                self._lost[broker] = ts
                yield runtime(ts, broker, f"{NAME_SERVER_LOST}{_LOST[fact.event]}", "namesrv_log")
        yield from topics.take(None)

    def _controller_records(self, process: Process, zones: Zones) -> Iterator[Record]:
        for line in self._lines(process):
            if line.fact is not None:
                yield controller_record(zones.epoch_ms(line.clock), line.fact)

    def _count_unanswered(self, answered: Collection[Correction | None]) -> None:
        """Count the corrections in brokers' logs that no client's log completes: they name no queue and no client."""
        for one in self._corrections:
            if one not in answered:
                moved = f"{one.fact.group} on {one.fact.topic}: {one.fact.request_offset} to {one.fact.new_offset}"
                form = "pulls that a broker answered with another offset, of an unknown queue and client"
                self.report.leave_out(form, moved)

    def _helps(self, found: Sequence[Process]) -> None:
        """Name the members without a log of their own, if other clients have one."""
        silent = sorted(self._members - self._clients)
        if silent and any(process.log == CLIENT_LINES for process in found):
            more = "1 more client" if len(silent) == 1 else f"{len(silent)} more clients"
            self.report.helps.append(f"rocketmq_client.log of {more} that brokers knew ({', '.join(silent[:3])})")
