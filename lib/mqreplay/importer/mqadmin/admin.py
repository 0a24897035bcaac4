"""Records from mqadmin's outputs, in the kinds that `mqreplay record` writes.

Pure except for its state: the brokers that outputs name, and when a name server knew a master.
"""

from __future__ import annotations

import datetime as dt
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from mqreplay.decode.body import body_of
from mqreplay.importer.brokers.broker_names import BrokerNames
from mqreplay.importer.files.other_files import unused_command, unused_message
from mqreplay.importer.mqadmin.answers import (
    Record,
    broker_runtime,
    cluster_info,
    consumer_connections,
    ha_status,
    reset,
    route,
)
from mqreplay.importer.mqadmin.clients import assignment
from mqreplay.importer.mqadmin.commands import COMMANDS
from mqreplay.importer.mqadmin.context import AdminContext
from mqreplay.importer.mqadmin.lists import cluster_table, configs_of, route_brokers, route_text
from mqreplay.importer.mqadmin.offsets import broker_consume_stats, consume_stats, topic_stats
from mqreplay.importer.mqadmin.outputs import Output
from mqreplay.importer.mqadmin.tables import whole
from mqreplay.importer.times.printed_times import PrintedTimes
from mqreplay.words.errors import DecodeError

Reader = Callable[[Output, int, AdminContext], list[Record]]


def _broker_config(output: Output, _ts_ms: int, _context: AdminContext) -> list[Record]:
    """Return no record: `Admin.learn` takes the settings. Raises DecodeError without any."""
    if not configs_of(output.lines):
        raise DecodeError("no_table", "it shows no configuration")
    return []


READERS: Final[dict[str, Reader]] = {
    "clusterList": cluster_info,
    "consumerConnection": consumer_connections,
    "topicRoute": route,
    **dict.fromkeys(("resetOffsetByTime", "resetOffsetByTimeOld", "skipAccumulatedMessage"), reset),
    "consumerProgress": consume_stats,
    "brokerConsumeStats": broker_consume_stats,
    "topicStatus": topic_stats,
    **dict.fromkeys(("consumerStatus", "consumer"), assignment),
    "brokerStatus": broker_runtime,
    "haStatus": ha_status,
    "getBrokerConfig": _broker_config,
}
_CAUSE = re.compile(
    r"(?:Exception in thread \"[^\"]*\" )?(Caused by: )?(?:[\w$]+\.)+(\w*(?:Exception|Error))(?:: (.*))?$"
)
_CODE = re.compile(r"\bCODE:? ?([0-9]+)[,;]?\s+(?:DESC: ?)?(\S[^\n]*)")
_MESSAGE = re.compile(
    r"(?i)^(?:-?(?:ba|z|k|da)?sh: .*|.*: (?:command not found|No such file or directory|Permission denied)|"
    r"the sub command .* not exist.*|error: .*|\[error\].*|usage: mqadmin .*|.* is not recognized as .*|"
    r".*(?:not online|not exist)\b.*)$"
)
_SHOWN: Final = 200
CLEAN_RATIO: Final = 0.85  # diskSpaceCleanForciblyRatio: below it, a broker has no mark of a full disk


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
                if row.disk_ratio is not None and float(row.disk_ratio) > CLEAN_RATIO:
                    self.context.nearly_full.add((row.broker_name, row.broker_id))
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
        output.path_names = names
        try:
            if command in READERS:
                return READERS[command](output, ts_ms, self.context)
            raise DecodeError("not_used", not_used(command, output.lines))
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


def not_used(command: str, lines: Iterable[str] = ()) -> str:
    """Return why an output of a command without a reader is not used, and what its lines show.

    >>> not_used("topicLst")
    'mqadmin topicLst is not used: RocketMQ has no such command'
    """
    what = unused_command(command, lines) if command in COMMANDS else None
    return f"mqadmin {command} is not used: {what or 'RocketMQ has no such command'}"


def failure_of(lines: Sequence[str]) -> str | None:
    """Return mqadmin's error message of a failed command; None if there is no exception.

    An error code says more than an exception, and the last cause more than the first exception.

    >>> failure_of(["Caused by: org.apache.MQClientException: CODE: 17  DESC: No topic route info"])
    'code 17: No topic route info'
    >>> failure_of(["a.b.SubCommandException: X command failed", "Caused by: a.b.RemotingConnectException: connect"])
    'RemotingConnectException: connect'
    """
    first = cause = None
    for line in map(str.strip, lines):
        if (code := _CODE.search(line)) is not None:
            return f"code {code[1]}: {code[2].strip()[:_SHOWN]}"
        if (match := _CAUSE.match(line)) is not None:
            text = match[2] if match[3] is None else f"{match[2]}: {match[3].strip()[:_SHOWN]}"
            first = first or text
            cause = text if match[1] else cause
    return cause or first


def message_of(lines: Sequence[str]) -> str | None:
    """Return the message of a shell or of mqadmin in an output without a table; None without one.

    >>> message_of(["The sub command fooBar not exist."])
    'The sub command fooBar not exist.'
    """
    return next((line.strip()[:_SHOWN] for line in lines if _MESSAGE.match(line.strip())), None)


def failed(command: str, options: Mapping[str, str], why: str) -> str:
    """Return that a command failed, with the group or topic that it was for.

    >>> failed("consumerProgress", {"g": "pay", "n": "h:9876"}, "code 17: No topic route info")
    'mqadmin consumerProgress -g pay failed: code 17: No topic route info'
    """
    asked = "".join(f" -{name} {options[name]}" for name in ("g", "t", "b", "i") if options.get(name))
    words = unused_message(why)
    return f"mqadmin {command}{asked} failed: {why}" + (f": {words}" if words else "")
