"""Records from mqadmin's outputs, in the kinds that `mqreplay record` writes.

Pure except for its state: the brokers that outputs name, and when a name server knew a master.
"""

from __future__ import annotations

import datetime as dt
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from mqreplay.decode.body import body_of
from mqreplay.errors import DecodeError
from mqreplay.record.imports.brokers.broker_names import BrokerNames
from mqreplay.record.imports.mqadmin.answers import (
    Record,
    client_rows,
    cluster_info,
    consumer_connections,
    reset,
    reset_rows,
    route,
    with_members,
)
from mqreplay.record.imports.mqadmin.clients import assignment
from mqreplay.record.imports.mqadmin.commands import COMMANDS
from mqreplay.record.imports.mqadmin.context import AdminContext
from mqreplay.record.imports.mqadmin.failures import failed, failure_of, message_of
from mqreplay.record.imports.mqadmin.lists import by_address, cluster_table, configs_of, route_brokers, route_text
from mqreplay.record.imports.mqadmin.offsets import broker_consume_stats, consume_stats, topic_stats
from mqreplay.record.imports.mqadmin.outputs import Output
from mqreplay.record.imports.mqadmin.tables import settings_of, whole
from mqreplay.record.imports.times.printed_times import PrintedTimes

Answer = Callable[[Output, int], list[Record]]
_ANSWERS: Final[dict[str, Answer]] = {
    "clusterList": cluster_info,
    "consumerConnection": consumer_connections,
    "topicRoute": route,
}
_RESETS: Final = ("resetOffsetByTime", "resetOffsetByTimeOld", "skipAccumulatedMessage")
_OFFSETS: Final[dict[str, Callable[[Output, int, AdminContext], list[Record]]]] = {
    "consumerProgress": consume_stats,
    "brokerConsumeStats": broker_consume_stats,
    "topicStatus": topic_stats,
}
_CLIENTS: Final = ("consumerStatus", "consumer")
# Their rows are counted here, as they are read twice: for the brokers, and for the records.
_BROKEN_ROWS: Final[dict[str, Callable[[Sequence[str]], tuple[Sequence[object], list[str]]]]] = {
    "clusterList": cluster_table,
    "consumerConnection": client_rows,
    **dict.fromkeys(_RESETS, reset_rows),
}
NOTHING_TO_TAKE: Final = {
    "topicList": "topics.json has the topics, and their queues",
    "topicClusterList": "topics.json has the topics, and their queues",
    "statsAll": "consumerProgress -g and topicStatus -t have the queues",
    "getConsumerConfig": "subscriptionGroup.json has the groups' settings",
    "getConsumerStatus": "consumerProgress -g and consumerStatus -i have the offsets",
    "cloneGroupOffset": "it prints no offsets; consumerProgress -g GROUP of the new group has them",
    "rocksDBConfigToJson": "save its JSON as consumerOffset.json or topics.json in a folder NAME-ID",
    "exportMetadataInRocksDB": "save its JSON as topics.json or subscriptionGroup.json in a folder NAME-ID",
    "producerConnection": "a recording has no place for producers' connections",
}


class BrokerFacts(NamedTuple):
    """Facts about a broker for brokers.json; ``properties`` is None if only a list names it."""

    addr: str | None
    cluster: str | None
    version: str | None
    properties: dict[str, str] | None
    ts_ms: int


@dataclass
class Admin:
    """A reader of outputs. Call `learn` for all of them first, then `records_of` for each."""

    zone: dt.tzinfo
    names: BrokerNames
    zone_is_set: bool = False
    facts: dict[str, BrokerFacts] = field(default_factory=dict)  # by name-id
    name_servers: list[str] = field(default_factory=list)
    context: AdminContext = field(init=False)

    def __post_init__(self) -> None:
        """Make the state of reading."""
        self.context = AdminContext(self.names, PrintedTimes(self.zone))

    @property
    def left_out(self) -> Counter[str]:
        """Return the numbers of rows that were left out, by reason."""
        return self.context.all_left_out()

    def learn(self, output: Output, ts_ms: int) -> None:
        """Record the brokers that an output names. Raises DecodeError."""
        for server in re.split(r"[;,]", output.options.get("n", "")):
            if server and server not in self.name_servers:
                self.name_servers.append(server)
        if output.command == "clusterList":
            rows, broken = cluster_table(output.lines)
            if rows and not broken:
                self.names.complete()
            for row in rows:
                self._add(row.broker_name, row.broker_id, BrokerFacts(row.addr, row.cluster, row.version, None, ts_ms))
            self.context.see_masters([(row.broker_name, row.broker_id) for row in rows], ts_ms)
        elif output.command == "getBrokerConfig":
            for addr, properties in configs_of(output.lines):
                name, number = properties.get("brokerName"), properties.get("brokerId")
                if name and number and number.isascii() and number.isdigit():
                    cluster = properties.get("brokerClusterName")
                    self._add(name, whole(number, "brokerId", 0), BrokerFacts(addr, cluster, None, properties, ts_ms))
        elif output.command == "topicRoute":
            brokers = route_brokers(body_of({"body": route_text(output.lines)}, "body") or {})
            for broker_name, broker_id, addr in brokers:
                self._add(broker_name, broker_id, BrokerFacts(addr, None, None, None, ts_ms))
            self.context.see_masters([(broker_name, broker_id) for broker_name, broker_id, _ in brokers], ts_ms)

    def records_of(self, output: Output, ts_ms: int, names: Sequence[str] = ()) -> list[Record]:
        """Return the records of an output from ``ts_ms``. ``names``: parts of its path, nearest first.

        Raises DecodeError: the detail gives the reason and what to do.
        """
        command = output.command or ""
        try:
            return self._records_of(command, output, ts_ms, names)
        except DecodeError as error:
            if error.code in ("not_used", "only_a_list"):
                raise
            if (why := failure_of(output.lines)) is not None:
                raise DecodeError("failed", failed(command, output.options, why)) from None
            if output.is_empty:
                raise DecodeError("empty", f"mqadmin {command} has no output in it") from None
            has_table = any(line.lstrip().startswith("#") for line in output.lines)
            if not has_table and (text := message_of(output.lines)) is not None:
                raise DecodeError("failed", failed(command, output.options, text)) from None
            raise

    def failure_beside(self, output: Output) -> str | None:
        """Return the failure that an output shows beside its records; None without one."""
        why = failure_of(output.lines)
        return None if why is None else failed(output.command or "", output.options, why)

    def _records_of(self, command: str, output: Output, ts_ms: int, names: Sequence[str]) -> list[Record]:
        if command == "getBrokerConfig":
            if not configs_of(output.lines):
                raise DecodeError("no_table", "it shows no configuration")
            return []
        if command in _CLIENTS:
            return assignment(output, ts_ms, names, self.context)
        if command in _OFFSETS:
            return _OFFSETS[command](output, ts_ms, self.context)
        if command == "brokerStatus":
            return self._broker_runtime(output, ts_ms, names)
        asked = self.names.of_address(output.options.get("b", ""))
        if command in _BROKEN_ROWS:
            _, broken = _BROKEN_ROWS[command](output.lines)
            self.context.count_broken(command, broken)
        if command in _RESETS:
            return reset(output, ts_ms, asked)
        if command in _ANSWERS:
            records = _ANSWERS[command](output, ts_ms)
            return with_members(output, records, asked) if command == "consumerConnection" else records
        no_place = "a recording has no place for it" if command in COMMANDS else "RocketMQ has no such command"
        reason = NOTHING_TO_TAKE.get(command, no_place)
        raise DecodeError("not_used", f"mqadmin {command} is not used: {reason}")

    def _add(self, name: str, broker_id: int, facts: BrokerFacts) -> None:
        self.names.add(name, broker_id, facts.addr)
        key = f"{name}-{broker_id}"
        old = self.facts.get(key)
        if old is None:
            self.facts[key] = facts
            return
        newer, older = (facts, old) if facts.ts_ms >= old.ts_ms else (old, facts)
        known = {name: value for name, value in newer._asdict().items() if value is not None}
        self.facts[key] = older._replace(**known)

    def _broker_runtime(self, output: Output, ts_ms: int, names: Sequence[str]) -> list[Record]:
        found: list[Record] = []
        unknown = []
        for addr, lines in by_address(output.lines, output.options.get("b", "")).items():
            table = settings_of(lines, ":")
            if "brokerVersionDesc" not in table and "bootTimestamp" not in table:
                continue
            broker = self.names.of_address(addr) if addr else None
            if broker is None and not addr and (named := self.names.find(names)) is not None:
                broker = named.broker_name, named.broker_id
            if broker is None:
                unknown.append(addr or "this output")
                continue
            key = {"broker_name": broker[0], "broker_id": broker[1], "broker_addr": addr or None}
            found.append(("broker_runtime", {"ts": ts_ms, **key, "full": True, "table": table}))
        if unknown and not found:
            raise DecodeError("no_broker", f"nothing shows which broker is at {unknown[0]}; add clusterList's output")
        if not found:
            raise DecodeError("no_rows", "it has no runtime figures of a broker")
        return found
