"""Clients that a broker had registered in groups, from the facts of its log.

ConsumerManager keeps a client in a group from its first heartbeat on a connection until it unregisters, its connection
closes, or 120 s pass without a heartbeat. The log names each of these, and no heartbeat in between.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from mqreplay.decode.logs import broker_facts as log
from mqreplay.importer.logs.broker_records import Broker, Record, connections_record, end_of_channel, heartbeat_record

REPEAT_MS: Final = 60_000
GAP_MS: Final = 3_600_000  # a log without a line for longer does not show that a client stays
EXPIRED_MS: Final = 130_000  # of a SCAN line: 120 s without a heartbeat, and up to 10 s until the next scan


class _Stay(NamedTuple):
    """A client was registered from ``since_ts`` to ``until_ts`` with one ``consumer`` (its subscriptions)."""

    since_ts: int
    until_ts: int
    consumer: dict[str, object]


@dataclass
class _Member:
    """A client in a group: ``since_ts`` is its first heartbeat with this ``consumer``, ``addrs`` its connections."""

    addrs: set[str]
    since_ts: int
    consumer: dict[str, object]


@dataclass
class Presence:
    """When each client was registered in each group, as the logs of all brokers show."""

    stays: dict[tuple[str, str], list[_Stay]] = field(default_factory=dict)
    logged: list[tuple[int, int]] = field(default_factory=list)  # spans of lines, of all logs

    def add(self, client_id: str, group: str, since_ts: int, until_ts: int, consumer: dict[str, object]) -> None:
        """Add a stay of a client at one broker."""
        self.stays.setdefault((client_id, group), []).append(_Stay(since_ts, until_ts, consumer))

    def see_line(self, ts: int) -> None:
        """Take the time of a line of a broker's log, in order."""
        first, last = self.logged[-1] if self.logged else (ts, ts)
        if self.logged and first <= ts <= last + GAP_MS:
            self.logged[-1] = first, max(last, ts)
        else:
            self.logged.append((ts, ts))

    def records(self) -> Iterator[Record]:
        """Yield a heartbeat for each minute of each stay in which a log goes on."""
        logged = _union(sorted(self.logged))
        for (client_id, _), stays in sorted(self.stays.items()):
            in_order = sorted(stays, key=lambda stay: stay[:2])
            starts = [stay.since_ts for stay in in_order]
            for first_ts, last_ts in _union([stay[:2] for stay in in_order]):
                for ts in _minutes(first_ts + REPEAT_MS, last_ts, logged):
                    newest = in_order[bisect_right(starts, ts) - 1]
                    yield heartbeat_record(ts, client_id, newest.consumer, None)


def _minutes(first_ts: int, last_ts: int, logged: list[tuple[int, int]]) -> Iterator[int]:
    """Yield the minutes from ``first_ts`` until ``last_ts`` in spans of ``logged``."""
    begin = max(bisect_right(logged, (first_ts,)) - 1, 0)
    for from_ts, to_ts in logged[begin:]:
        if from_ts >= last_ts:
            return
        ahead = max(0, -(-(from_ts - first_ts) // REPEAT_MS))
        yield from range(first_ts + ahead * REPEAT_MS, min(last_ts, to_ts + GAP_MS), REPEAT_MS)


class Registrations:
    """Clients that one broker has registered. Each call takes a fact and yields the records that follow."""

    def __init__(self, broker: Broker, presence: Presence, left_out: Counter[str]) -> None:
        """Add stays to ``presence``, and count lines without use in ``left_out``."""
        self.clients: set[str] = set()
        self._broker = broker
        self._presence = presence
        self._left_out = left_out
        self._clients: dict[str, str] = {}  # client id by the address of its connection
        self._members: dict[tuple[str, str], _Member] = {}
        self._joining: dict[tuple[str, str], log.Joined] = {}  # by group and client address

    def joined(self, fact: log.Joined) -> None:
        """Take a new connection; a line with the subscriptions follows."""
        self._clients[fact.channel.client_addr] = fact.channel.client_id
        self._joining[fact.group, fact.channel.client_addr] = fact

    def end(self, ts: int) -> Iterator[Record]:
        """Close all stays: the log, or the process, ends at ``ts``. Yield the heartbeats that no line announced."""
        for group, client_addr in list(self._joining):
            yield from self._unannounced(group, client_addr)
        for (client_id, group), member in self._members.items():
            yield from self._connections(ts, client_id, member)
            self._stay(client_id, group, member, ts)
        self._members.clear()
        self._clients.clear()

    def _stay(self, client_id: str, group: str, member: _Member, until_ts: int) -> None:
        if until_ts > member.since_ts:
            self._presence.add(client_id, group, member.since_ts, until_ts, member.consumer)

    def announced(self, ts: int, fact: log.Announced) -> Iterator[Record]:
        """Yield the heartbeat that changed what the broker knew."""
        group = str(fact.consumer["groupName"])
        client_id = self._clients.get(fact.client_addr)
        if client_id is None:
            self._left_out["heartbeats of clients that joined before the log begins"] += 1
            return
        joined = self._joining.pop((group, fact.client_addr), None)
        yield from self._member(client_id, fact.client_addr, joined.channel.heard_ms if joined else ts, fact.consumer)

    def _unannounced(self, group: str, client_addr: str) -> Iterator[Record]:
        """Yield the first heartbeat of a client that joined, if the log lacks the line with its subscriptions."""
        joined = self._joining.pop((group, client_addr), None)
        if joined is not None:
            consumer: dict[str, object] = {
                "groupName": group,
                "consumeType": joined.consume_type,
                "messageModel": joined.message_model,
            }
            yield from self._member(joined.channel.client_id, client_addr, joined.channel.heard_ms, consumer)

    def _member(self, client_id: str, client_addr: str, heard_ms: int, consumer: dict[str, object]) -> Iterator[Record]:
        group = str(consumer["groupName"])
        self.clients.add(client_id)
        addrs = {client_addr}
        member = self._members.get((client_id, group))
        if member is not None:
            self._stay(client_id, group, member, heard_ms)
            addrs |= member.addrs
        self._members[client_id, group] = known = _Member(addrs, heard_ms, consumer)
        yield heartbeat_record(heard_ms, client_id, consumer, self._broker)
        if member is not None and member.addrs != addrs:
            yield from self._connections(heard_ms, client_id, known)

    def _connections(self, ts: int, client_id: str, member: _Member) -> Iterator[Record]:
        """Yield the connections of a client id, if it has several: processes may share it.

        A broker keeps a member for each connection (ConsumerGroupInfo#channelInfoTable).
        """
        if len(member.addrs) > 1:
            yield self._list(ts, client_id, member.addrs, member.consumer)

    def _list(self, ts: int, client_id: str, addrs: Iterable[str], consumer: Mapping[str, object]) -> Record:
        listed = [{"clientId": client_id, "clientAddr": addr} for addr in sorted(addrs)]
        model = {name: consumer[name] for name in ("messageModel",) if name in consumer}
        return connections_record(ts, str(consumer["groupName"]), self._broker, connectionSet=listed, **model)

    def _closing(self, ts: int, client_id: str, group: str, client_addr: str) -> Iterator[Record]:
        """Yield the connections of a client id before and after one of several is closed."""
        member = self._members.get((client_id, group))
        if member is not None and client_addr in member.addrs and len(member.addrs) > 1:
            yield from self._connections(ts - 1, client_id, member)
            yield self._list(ts, client_id, member.addrs - {client_addr}, member.consumer)

    def _without(self, client_id: str, group: str, client_addr: str) -> _Member | None:
        """Remove a connection of a member; return the member if it was the last one."""
        member = self._members.get((client_id, group))
        if member is None:
            return None
        member.addrs.discard(client_addr)
        return None if member.addrs else self._members.pop((client_id, group))

    def left(self, ts: int, fact: log.Left) -> Iterator[Record]:
        """Yield the unregistration."""
        client_id = fact.channel.client_id
        yield from self._unannounced(fact.group, fact.channel.client_addr)
        yield from self._closing(ts, client_id, fact.group, fact.channel.client_addr)
        member = self._without(client_id, fact.group, fact.channel.client_addr)
        if member is not None:
            self._stay(client_id, fact.group, member, ts)
        self.clients.add(client_id)
        yield end_of_channel(ts, "UNREGISTER_CLIENT", client_id, fact.group, self._broker)

    def vanished(self, ts: int, fact: log.Vanished) -> Iterator[Record]:
        """Yield the end of a connection without an unregistration, and the last heartbeat before it."""
        yield from self._unannounced(fact.group, fact.client_addr)
        client_id = fact.channel.client_id if fact.channel else self._clients.get(fact.client_addr)
        if client_id is None:
            self._left_out["expired connections of clients that joined before the log begins (no client id)"] += 1
            return
        self.clients.add(client_id)
        stem, record = end_of_channel(ts, "CHANNEL_CLOSE", client_id, fact.group, self._broker)
        yield stem, record | ({"heard_ts": fact.channel.heard_ms} if fact.channel else {})
        yield from self._closing(ts, client_id, fact.group, fact.client_addr)
        member = self._without(client_id, fact.group, fact.client_addr)
        if member is None:
            return
        self._stay(client_id, fact.group, member, fact.channel.heard_ms if fact.channel else ts - EXPIRED_MS)
        if fact.channel is not None and fact.channel.heard_ms > member.since_ts:
            yield heartbeat_record(fact.channel.heard_ms, client_id, member.consumer, self._broker)


class Subscriptions:
    """What one broker keeps of each group's subscriptions (ConsumerGroupInfo#subscriptionTable), from its changes."""

    def __init__(self, broker: Broker) -> None:
        """No topic of a group is known yet."""
        self._broker = broker
        self._tables: dict[str, dict[str, dict[str, object]]] = {}

    def changed(self, ts: int, fact: log.SubscriptionChanged) -> Iterator[Record]:
        """Yield the subscriptions of the group, if more than a version changed.

        Clients send a new version of an unchanged subscription after each rebalance (RebalanceImpl).
        """
        table = self._tables.setdefault(fact.group, {})
        if fact.old is not None and fact.topic not in table:
            table[fact.topic] = fact.old
            if _wanted(fact.old) != _wanted(fact.new):
                yield self._record(ts - 1, fact.group)
        before = table.pop(fact.topic, None)
        if fact.new is not None:
            table[fact.topic] = fact.new
        if _wanted(before) != _wanted(fact.new):
            yield self._record(ts, fact.group)

    def _record(self, ts: int, group: str) -> Record:
        return connections_record(
            ts, group, self._broker, connectionSet=[], subscriptionTable=dict(self._tables[group])
        )


def _wanted(subscription: Mapping[str, object] | None) -> tuple[object, ...] | None:
    return None if subscription is None else (subscription["subString"], subscription["expressionType"])


def _union(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the spans that ordered ones cover; adjacent ones are one span."""
    found: list[tuple[int, int]] = []
    for since_ts, until_ts in spans:
        if found and since_ts <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], until_ts)
        else:
            found.append((since_ts, until_ts))
    return found
