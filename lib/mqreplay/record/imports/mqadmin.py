"""Records from mqadmin's outputs, in the kinds that `mqreplay record` writes.

Pure except for its state: the brokers that outputs name, and when a name server knew a master.
"""

from __future__ import annotations

import datetime as dt
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from mqreplay.decode.body import body_of
from mqreplay.errors import DecodeError
from mqreplay.record.imports.broker_names import BrokerNames
from mqreplay.record.imports.mqadmin_answers import (
    Record,
    cluster_info,
    consumer_connections,
    reset,
    route,
    with_members,
)
from mqreplay.record.imports.mqadmin_lists import (
    by_address,
    cluster_rows,
    configs_of,
    group_of,
    json_text,
    route_brokers,
    route_text,
    section,
    tps_text,
)
from mqreplay.record.imports.mqadmin_tables import (
    QueueRow,
    failure_of,
    keyed_text,
    local_ms,
    process_queue_state,
    queue_rows,
    settings_of,
    whole,
)
from mqreplay.record.imports.mqadmin_text import Output

Answer = Callable[[Output, int], list[Record]]
_ANSWERS: Final[dict[str, Answer]] = {
    "clusterList": cluster_info,
    "consumerConnection": consumer_connections,
    "topicRoute": route,
    "resetOffsetByTime": reset,
}
MASTER_SEEN_MS: Final = 600_000  # a list of brokers proves for this time before and after it that a master exists
_AHEAD_MS: Final = 300_000  # a printed time after the output itself by more than a slow clock explains
_SUBSCRIPTION = re.compile(r"[0-9]+ Topic: (\S+)\s+ClassFilter: (true|false)\s+SubExpression: (.*)$")
NOTHING_TO_TAKE: Final = {
    "topicList": "topics.json has the topics, and their queues",
    "topicClusterList": "topics.json has the topics, and their queues",
    "statsAll": "consumerProgress -g and topicStatus -t have the queues",
    "getConsumerConfig": "subscriptionGroup.json has the groups' settings",
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
    facts: dict[str, BrokerFacts] = field(default_factory=dict)  # by name-id
    name_servers: list[str] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    latest_ahead_ms: int = 0
    _masters: dict[str, list[tuple[int, bool]]] = field(default_factory=lambda: defaultdict(list))

    def learn(self, output: Output, ts_ms: int) -> None:
        """Record the brokers that an output names. Raises DecodeError."""
        for server in re.split(r"[;,]", output.options.get("n", "")):
            if server and server not in self.name_servers:
                self.name_servers.append(server)
        if output.command == "clusterList":
            rows = cluster_rows(output.lines)
            if rows:
                self.names.complete()
            for row in rows:
                self._add(row.broker_name, row.broker_id, BrokerFacts(row.addr, row.cluster, row.version, None, ts_ms))
            self._see_masters([(row.broker_name, row.broker_id) for row in rows], ts_ms)
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
            self._see_masters([(broker_name, broker_id) for broker_name, broker_id, _ in brokers], ts_ms)

    def records_of(self, output: Output, ts_ms: int, names: Sequence[str] = ()) -> list[Record]:
        """Return the records of an output from ``ts_ms``. ``names``: parts of its path, nearest first.

        Raises DecodeError: the detail gives the reason and what to do.
        """
        why = failure_of(output.lines)
        taken = {
            "consumerProgress": self._consume_stats,
            "topicStatus": self._topic_stats,
            "brokerStatus": self._broker_runtime,
            "consumerStatus": self._assignment,
        }.get(output.command or "")
        try:
            if output.command == "getBrokerConfig":
                if not configs_of(output.lines):
                    raise DecodeError("no_table", "it shows no configuration")
                return []
            if (answer := _ANSWERS.get(output.command or "")) is not None:
                records = answer(output, ts_ms)
                asked = self.names.of_address(output.options.get("b", ""))
                return with_members(output, records, asked) if output.command == "consumerConnection" else records
            if taken is None:
                reason = NOTHING_TO_TAKE.get(output.command or "", "a recording has no place for it")
                raise DecodeError("not_used", f"mqadmin {output.command} is not used: {reason}")
            return taken(output, ts_ms, names)
        except DecodeError as error:
            if why is None or error.code == "not_used":
                raise
            raise DecodeError("failed", f"mqadmin {output.command} failed: {why}") from None

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

    def _see_masters(self, brokers: Sequence[tuple[str, int]], ts_ms: int) -> None:
        for name in {name for name, _ in brokers}:
            self._masters[name].append((ts_ms, (name, 0) in brokers))

    def _asked_id(self, broker_name: str, ts_ms: int) -> int | None:
        """Return the id of the broker that mqadmin asked: the master, if a name server knew one; else unknown."""
        near = min(self._masters.get(broker_name, []), key=lambda seen: abs(seen[0] - ts_ms), default=None)
        return 0 if near is not None and near[1] and abs(near[0] - ts_ms) <= MASTER_SEEN_MS else None

    def _consume_stats(self, output: Output, ts_ms: int, _: Sequence[str]) -> list[Record]:
        if any(line.startswith("#Group") for line in output.lines):
            raise DecodeError("not_used", "it is a summary of all groups; use consumerProgress -g GROUP for each group")
        rows, cut = queue_rows(output.lines, "#Topic")
        self._count_cut(cut)
        group = output.options.get("g") or group_of(row.topic for row in rows)
        if group is None:
            raise DecodeError("no_group", "it names no group; put the command as a line before the output")
        tps = _tps_of(output.lines) if len({row.broker_name for row in rows}) == 1 else None
        by_broker: dict[str, list[tuple[QueueRow, Mapping[str, object]]]] = defaultdict(list)
        times = self._times([row.columns.get("LastTime") for row in rows], ts_ms)
        for row, at in zip(rows, times, strict=True):
            offsets = {
                "brokerOffset": whole(row.columns.get("Broker Offset"), "Broker Offset"),
                "consumerOffset": whole(row.columns.get("Consumer Offset"), "Consumer Offset"),
                "lastTimestamp": at,
            }
            by_broker[row.broker_name].append((row, offsets))
        if not by_broker:
            raise DecodeError("no_rows", "it lists no queue")
        return [
            (
                "consume_stats",
                {
                    "ts": ts_ms,
                    "broker_name": name,
                    "broker_id": self._asked_id(name, ts_ms),
                    "consumer_group": group,
                    "body": f'{{{tps_text(tps)}"offsetTable":{keyed_text(of)}}}',
                },
            )
            for name, of in by_broker.items()
        ]

    def _topic_stats(self, output: Output, ts_ms: int, _: Sequence[str]) -> list[Record]:
        topic = output.options.get("t")
        if not topic:
            raise DecodeError("no_topic", "it names no topic; put the command as a line before the output")
        rows, cut = queue_rows(output.lines, "#Broker Name", topic)
        self._count_cut(cut)
        by_broker: dict[str, list[tuple[QueueRow, Mapping[str, object]]]] = defaultdict(list)
        times = self._times([row.columns.get("Last Updated") for row in rows], ts_ms)
        for row, at in zip(rows, times, strict=True):
            offsets = {
                "lastUpdateTimestamp": at,
                "maxOffset": whole(row.columns.get("Max Offset"), "Max Offset"),
                "minOffset": whole(row.columns.get("Min Offset"), "Min Offset"),
            }
            by_broker[row.broker_name].append((row, offsets))
        if not by_broker:
            raise DecodeError("no_rows", "it lists no queue")
        return [
            (
                "topic_stats",
                {
                    "ts": ts_ms,
                    "broker_name": name,
                    "broker_id": self._asked_id(name, ts_ms),
                    "topic": topic,
                    "body": f'{{"offsetTable":{keyed_text(of)}}}',
                },
            )
            for name, of in by_broker.items()
        ]

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

    def _assignment(self, output: Output, ts_ms: int, names: Sequence[str]) -> list[Record]:
        if not any("#Consumer Properties#" in line for line in output.lines):
            reason = "it only lists clients; give the files that it wrote, or consumerStatus -g GROUP -i CLIENT"
            raise DecodeError("not_used", reason)
        properties = settings_of(section(output.lines, "#Consumer Properties#"), ":")
        client = output.options.get("i") or next((name for name in names[:1] if "@" in name), None)
        group = properties.get("consumerGroup") or output.options.get("g")
        if not client or not group:
            raise DecodeError("no_client", "it does not name its client and group; put the command as a line before it")
        rows, cut = queue_rows(section(output.lines, "#Consumer MQ Detail#"), "#Topic")
        if cut:
            raise DecodeError("cut", "mqadmin may have cut the names of its queues")
        detail = [line for line in section(output.lines, "#Consumer MQ Detail#") if "ProcessQueueInfo [" in line]
        if len(detail) != len(rows):
            raise DecodeError("bad_row", "a queue in it has no state")
        states = [process_queue_state(line[line.index("ProcessQueueInfo [") :], self.zone) for line in detail]
        if any(self._is_ahead(int(state.get("lastPullTimestamp", 0)), ts_ms) for state in states):
            states = [{n: v for n, v in state.items() if not n.endswith("Timestamp")} for state in states]
        subscriptions = [
            {"classFilterMode": found[2] == "true", "subString": found[3].strip(), "topic": found[1]}
            for line in section(output.lines, "#Consumer Subscription#")
            if (found := _SUBSCRIPTION.match(line)) is not None
        ]
        body = (
            f'{{"mqTable":{keyed_text(list(zip(rows, states, strict=True)))},"properties":{json_text(properties)},'
            f'"subscriptionSet":{json_text(subscriptions)}}}'
        )
        key = {"client_id": client, "consumer_group": group, "source": "running_info"}
        return [("assignments", {"ts": ts_ms, **key, "body": body})]

    def _times(self, texts: Sequence[str | None], ts_ms: int) -> list[int]:
        """Return the printed times (epoch ms, 0 for none); all 0 if one is later than the output itself."""
        times = [local_ms(text, self.zone) or 0 for text in texts]
        return [0] * len(times) if any(self._is_ahead(at, ts_ms) for at in times) else times

    def _is_ahead(self, at_ms: int, ts_ms: int) -> bool:
        ahead = at_ms - ts_ms
        self.latest_ahead_ms = max(self.latest_ahead_ms, ahead)
        return ahead > _AHEAD_MS

    def _count_cut(self, cut: int) -> None:
        if cut:
            self.left_out["rows of queues with names that mqadmin may have cut at the column width"] += cut


def _tps_of(lines: Sequence[str]) -> str | None:
    begin = "Consume TPS:"
    return next((line.removeprefix(begin).strip() for line in lines if line.startswith(begin)), None)
