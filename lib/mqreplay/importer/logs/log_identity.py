"""The broker that wrote a log, from its own lines: it names the copies that lie beside the log.

A broker writes its settings as it starts (brokerName=, brokerId=), "The broker[NAME, ADDR] boot success", and every
30 s "register broker[ID]to name server". Sources: BrokerStartup, BrokerOuterAPI.
"""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from collections.abc import Iterable
from typing import Final

from mqreplay.decode.logs.namesrv_log import AddressRemoved, NameRemoved
from mqreplay.importer.brokers.broker_names import LogBroker
from mqreplay.importer.brokers.name_readings import id_of_last
from mqreplay.importer.logs.broker_records import Broker
from mqreplay.importer.logs.log_files import OF_BROKER, Process
from mqreplay.importer.times.name_times import without_times
from mqreplay.recorder.broker_identity import BROKER_NAME_KEY, ID

# Folders between a broker's home and its logs or copies.
_USUAL: Final = frozenset(
    {"logs", "log", "rocketmqlogs", "otherdays", "other_days", "store", "config", "conf", "snapshots"}
)


def home_of(folder: str, zone: dt.tzinfo) -> str:
    """Return the folder of a broker from that of its logs or copies: logs, store, config and times are left out.

    >>> home_of("data/broker/logs/rocketmqlogs", dt.UTC), home_of("data/broker/1781000000000", dt.UTC)
    ('data/broker', 'data/broker')
    """
    parts = folder.split("/")
    while len(parts) > 1 and (parts[-1] in _USUAL or not without_times(parts[-1], zone)):
        parts.pop()
    return "/".join(parts)


def brokers_in_logs(processes: Iterable[Process], zone: dt.tzinfo) -> dict[str, LogBroker]:
    """Return the broker by the home of its logs. The logs of one home are of one broker, or they name none."""
    found: dict[str, set[LogBroker]] = defaultdict(set)
    for process in processes:
        # A file with the lines of several pods is in the home of none.
        several = len(process.broker_names) > 1
        if several or process.log not in OF_BROKER or process.writer.name is not None:
            continue
        broker = broker_in_lines(process)
        if broker.name is not None or broker.broker_id is not None:
            found[home_of(process.folder, zone)].add(broker)
    merged = {home: _only(brokers) for home, brokers in found.items()}
    return {home: broker for home, broker in merged.items() if broker is not None}


def broker_in_lines(process: Process) -> LogBroker:
    """Return the broker that the lines of a log show, by its settings and by the only id of its registrations."""
    name, written = process.settings.get(BROKER_NAME_KEY), process.settings.get(ID, "")
    # DLedger writes -1; a name server's answers then show the elected id, which may change.
    number = int(written) if written.isascii() and written.isdigit() else process.registered_id
    return LogBroker(name, number, process.settings.get("addr"))


def _only(brokers: set[LogBroker]) -> LogBroker | None:
    """Return what several logs agree on: each part that only one of them names; None if they contradict each other."""
    parts = [{part for part in column if part is not None} for column in zip(*brokers, strict=True)]
    if any(len(part) > 1 for part in parts[:2]):
        return None
    name, broker_id, addr = (next(iter(part)) if len(part) == 1 else None for part in parts)
    return LogBroker(name, broker_id, addr)


def slave_of_folder(process: Process) -> Broker | None:
    """Return the slave whose folder NAME-ID has the id with which its log registered at a name server."""
    for folder in reversed(process.folder.split("/")):
        named = id_of_last(folder)
        if named is not None and process.registered_id and named[1] == process.registered_id:
            return Broker(*named, process.settings.get("addr"))
    return None


def named_brokers(process: Process, known: Iterable[tuple[str, int]]) -> dict[str, tuple[str, int]]:
    """Return broker name and id by address, of removals: RouteInfoManager removes an address, then an empty name.

    Of a broker that unregistered the lines have no id: it is the only one that ``known`` brokers of the name have.
    """
    ids: dict[str, set[int]] = defaultdict(set)
    for name, number in known:
        ids[name].add(number)
    named: dict[str, tuple[str, int]] = {}
    removed: AddressRemoved | None = None
    for line in process.lines():
        if isinstance(line.fact, AddressRemoved):
            removed = line.fact
        elif isinstance(line.fact, NameRemoved) and removed is not None:
            of_name = ids[line.fact.broker_name]
            only = min(of_name) if len(of_name) == 1 else None
            broker_id = only if removed.broker_id is None else removed.broker_id
            if broker_id is not None:
                named[removed.broker_addr] = (line.fact.broker_name, broker_id)
            removed = None
    return named
