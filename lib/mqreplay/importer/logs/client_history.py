"""Records from the rocketmq_client.log of one process: what each client computed, held and committed.

Lines about queues name the group but not the client. The rebalanced result after them names the client. If a process
has several clients of a group, a queue belongs to the client whose result lists it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, cast

from mqreplay.decode.client_errors import SEND_REQUEST
from mqreplay.decode.logs import client_facts as log
from mqreplay.decode.logs.exceptions import Thrown
from mqreplay.decode.logs.form import Fact
from mqreplay.decode.message_queue import MessageQueue
from mqreplay.importer.logs.client_records import (
    commit_record,
    flow_record,
    heartbeat_record,
    illegal_pull_record,
    listener_record,
    listener_threw_record,
    rebalance_record,
    reset_record,
    route_record,
    send_record,
    threw_record,
    unregister_record,
)
from mqreplay.importer.logs.held_queues import HeldQueues, Member, Record

_AGAIN_MS: Final = 1_000  # a listener's exception, and the line that says that it did not consume


@dataclass
class _Reset:
    ts: int
    invoked: log.ResetInvoked


class ClientHistory:
    """The clients of one process, from its facts in order. Each call of `take` yields the records that follow."""

    def __init__(self, brokers: Mapping[str, tuple[str, int]], process: str | None = None) -> None:
        """Take ``brokers``: address to broker name and id, from other evidence. ``process`` is that of the log."""
        self.left_out: Counter[str] = Counter()
        self.clients: set[str] = set()  # all clients in the log
        self.illegal_pulls: list[Record] = []
        self.unanswered: list[tuple[int, log.HeartbeatFailed]] = []
        self.resets: list[tuple[str, str, str, int]] = []  # client id, group, topic, ts
        self.names = dict(brokers)  # broker name and id by address
        self.errors: list[dict[str, object]] = []  # client_errors: what failed, with what its lines name
        self._routes: dict[str, object] = {}
        self._groups: dict[str, set[str]] = {}  # of each running client
        self._from_start: set[str] = set()  # clients whose log is complete since their start
        self._queues = HeldQueues(process)
        self._unnamed = f"unknown@{process}"  # the client of a log that names none
        self._unplaced: list[tuple[int, log.OffsetIllegal | log.FlowControlled]] = []  # before a client is named
        self._refused: dict[str, set[MessageQueue]] = {}
        self._committers: dict[tuple[str, MessageQueue], tuple[str, int]] = {}  # the last of each queue of a group
        self._beat: log.HeartbeatSent | None = None
        self._left: dict[str, list[tuple[int, log.Unregistered]]] = {}
        self._stopped: Counter[str] = Counter()  # groups whose client has ended
        self._ended: set[str] = set()
        self._resets: dict[str, list[_Reset]] = {}
        self._reset_offsets: dict[Member, dict[MessageQueue, int]] = {}
        self._dropped: dict[Member, set[MessageQueue]] = {}  # for a reset

    def take(self, ts: int, fact: Fact) -> Iterator[Record]:
        """Yield the records that a fact completes."""
        yield from self._queues.show_changes(ts)
        beat, self._beat = self._beat, None
        match fact:
            case log.QueueAdded() | log.QueueRemoved():
                self._move(ts, fact)
            case log.LockFailed():
                self._refused.setdefault(fact.group, set()).add(fact.queue)
            case log.Rebalanced():
                yield from self._rebalanced(ts, fact)
            case log.Broadcast():
                self._broadcast(ts, fact)
            case log.Committed():
                yield from self._committed(ts, fact)
            case log.OffsetIllegal() | log.FlowControlled():
                yield from self._of_queue(ts, fact)
            case log.ResetInvoked():
                self._resets.setdefault(fact.group, []).append(_Reset(ts, fact))
            case log.Suspended():
                self._suspended(ts, fact.group)
            case log.Resumed():
                yield from self._resumed(ts, fact.group)
            case log.RouteTaken():
                yield from self._route(ts, fact)
            case log.HeartbeatSent():
                self._beat = fact
                self.names[fact.broker_addr] = (fact.broker_name, fact.broker_id)
            case log.HeartbeatFailed():
                self.unanswered.append((ts, fact))
            case log.HeartbeatContent():
                yield from self._heartbeat(ts, beat, fact)
            case log.Unregistered():
                yield from self._unregistered(ts, fact)
            case log.SendFailed():
                # The line does not name the client.
                yield send_record(ts, next(iter(self._from_start)) if len(self._from_start) == 1 else None, fact)
                self._learn(fact.thrown, fact.queue.broker_name)
            case log.ListenerFailed():
                self._listener_failed(ts, fact)
            case log.ListenerThrew():
                self.errors.append(listener_threw_record(ts, fact)[1])
            case log.ClientThrew():
                self._threw(ts, fact)
            case log.ClientCreated():
                self._created(ts, fact)
            case log.ClientStopped():
                yield from self._client_stopped(ts, fact.client_id)
            case log.ConsumerStopped():
                self._consumer_stopped(ts, fact.group)

    def end(self) -> Iterator[Record]:
        """Yield the records that are open at the end of the log."""
        yield from self._queues.end_of_log(self._committers)
        yield from self._all_errors()
        for ts, fact in self._unplaced:
            yield from self._placed(ts, fact, [*self.clients] or [self._unnamed])
        if refused := sum(map(len, self._refused.values())):
            self.left_out["refused locks without a rebalanced result that names the client"] += refused
        unplaced = sum(map(len, self._left.values()))
        if unplaced:
            self.left_out["unregistrations that name no client, where several clients have the group"] += unplaced
        if moves := self._queues.unplaced_moves():
            self.left_out["queues added or removed without a rebalanced result that names the client"] += moves

    def _seen(self, client_id: str, group: str) -> None:
        if client_id not in self._ended:
            self.clients.add(client_id)
            self._groups.setdefault(client_id, set()).add(group)

    def _members(self, group: str) -> list[str]:
        return [client_id for client_id, groups in self._groups.items() if group in groups]

    def _move(self, ts: int, fact: log.QueueAdded | log.QueueRemoved) -> None:
        if isinstance(fact, log.QueueRemoved):
            for (_, group), offsets in self._reset_offsets.items():
                if group == fact.group:
                    offsets.pop(fact.queue, None)
            if fact.alone:
                holders = self._queues.holders(self._members(fact.group), fact.group, fact.queue)
                if len(holders) == 1:
                    member = (holders[0], fact.group)
                    self._queues.hold(ts, member, self._queues.of(member) - {fact.queue})
                else:
                    self.left_out["queues of dropped topics without a known client"] += 1
                return
        self._queues.move(ts, fact)

    def _rebalanced(self, ts: int, fact: log.Rebalanced) -> Iterator[Record]:
        self._seen(fact.client_id, fact.group)
        member, share = (fact.client_id, fact.group), set(fact.queues)
        if fact.client_id in self._from_start:
            yield from self._queues.apply_moves(member, share)
        else:
            # The log began after the client: its earlier queues of the topic are unknown.
            taken = share - self._refused.get(fact.group, set())
            self._queues.forget_moves(fact.group)
            held = self._queues.of(member)
            self._queues.hold(ts, member, {queue for queue in held if queue.topic != fact.topic} | taken)
        self._refused.pop(fact.group, None)
        yield rebalance_record(ts, fact)

    def _broadcast(self, ts: int, fact: log.Broadcast) -> None:
        self._queues.forget_moves(fact.group)
        members = self._members(fact.group)
        if len(members) != 1:
            self.left_out["queues of broadcasting clients that the lines do not distinguish"] += 1
            return
        member = (members[0], fact.group)
        kept = {queue for queue in self._queues.of(member) if queue.topic != fact.topic}
        self._queues.hold(ts, member, kept | set(fact.queues))

    def _committed(self, ts: int, fact: log.Committed) -> Iterator[Record]:
        self._seen(fact.client_id, fact.group)
        member, queue = (fact.client_id, fact.group), fact.queue
        self._committers[fact.group, queue] = fact.client_id, ts
        if fact.all_queues:
            self._queues.repeat(ts, member)
            if fact.client_id not in self._from_start and fact.client_id not in self._ended:
                self._queues.committed(ts, member, queue)
        elif any(reset.invoked.topic == queue.topic for reset in self._resets.get(fact.group, ())):
            self._reset_offsets.setdefault(member, {})[queue] = fact.offset
            self._queues.hold(ts, member, self._queues.of(member) - {queue})
        yield commit_record(ts, fact)

    def _of_queue(self, ts: int, fact: log.OffsetIllegal | log.FlowControlled) -> Iterator[Record]:
        """Yield the record of a line that names a queue: its client is the one that holds it."""
        members = self._members(fact.group)
        holders = self._queues.holders(members, fact.group, fact.queue) or members or [*self.clients]
        if not holders:
            self._unplaced.append((ts, fact))
            return
        if isinstance(fact, log.OffsetIllegal) and len(holders) == 1:
            # The client drops the queue, and takes it again at a rebalance after it has corrected the offset.
            member = (holders[0], fact.group)
            self._queues.hold(ts, member, self._queues.of(member) - {fact.queue})
        yield from self._placed(ts, fact, holders)

    def _placed(
        self, ts: int, fact: log.OffsetIllegal | log.FlowControlled, clients: Sequence[str]
    ) -> Iterator[Record]:
        if len(clients) > 1:
            what = "pulls with an illegal offset" if isinstance(fact, log.OffsetIllegal) else "flow control of queues"
            self.left_out[f"{what} without a known client"] += 1
        elif isinstance(fact, log.OffsetIllegal):
            self.illegal_pulls.append(illegal_pull_record(ts, clients[0], fact))
        else:
            yield flow_record(ts, clients[0], fact)

    def _learn(self, thrown: Thrown | None, broker_name: str | None) -> None:
        """Learn the name of the master that answered a send."""
        if (
            thrown is not None
            and thrown.code is not None
            and thrown.broker_addr is not None
            and broker_name is not None
        ):
            self.names.setdefault(thrown.broker_addr, (broker_name, 0))

    def _threw(self, ts: int, fact: log.ClientThrew) -> None:
        if fact.thrown is None:
            self.left_out[f"a {fact.request.replace('_', ' ')} that failed, without its exception below it"] += 1
            return
        self._learn(fact.thrown, fact.thrown.brokers[-1] if fact.thrown.brokers else None)
        self.errors.append(threw_record(ts, fact, fact.thrown)[1])

    def _listener_failed(self, ts: int, fact: log.ListenerFailed) -> None:
        """Add a failure; the client logs an exception, and then that the listener returned nothing."""
        record = listener_record(ts, fact)[1]
        same = ("consumer_group", "topic", "broker_name", "queue_id", "queue_offset")
        recent = (each for each in reversed(self.errors[-20:]) if ts - cast(int, each["ts"]) <= _AGAIN_MS)
        before = next((each for each in recent if all(each.get(name) == record[name] for name in same)), None)
        if fact.error is None and before is not None and before["error"] is not None:
            before["is_orderly"] = record["is_orderly"]
        else:
            self.errors.append(record)

    def _all_errors(self) -> Iterator[Record]:
        """Yield the errors with the group, the client and the broker that only other lines name."""
        groups = {group for of_client in self._groups.values() for group in of_client}
        groups |= {str(each["consumer_group"]) for each in self.errors if each["consumer_group"] is not None}
        for record in self.errors:
            if record["request"] != SEND_REQUEST and record["consumer_group"] is None and len(groups) == 1:
                record["consumer_group"] = next(iter(groups))
            members = self._members(str(record["consumer_group"])) or [*self.clients]
            record["client_id"] = members[0] if len(members) == 1 else None
            if record.get("broker_name") is None and record["broker_addr"] is not None:
                record["broker_name"] = self.names.get(str(record["broker_addr"]), (None,))[0]
            yield "client_errors", record

    def _suspended(self, ts: int, group: str) -> None:
        """Drop the queues of the broker that reset a client: it corrects them 10 s later (`_resumed`)."""
        members, resets = self._members(group), self._resets.get(group, [])
        if len(members) != 1 or not resets:
            return
        member, invoked = (members[0], group), resets[0].invoked
        broker_name = self.names.get(invoked.broker_addr, ("",))[0]
        held = self._queues.of(member)
        dropped = {queue for queue in held if (queue.topic, queue.broker_name) == (invoked.topic, broker_name)}
        if dropped:
            self._dropped[member] = dropped
            self._queues.hold(ts, member, held - dropped)

    def _resumed(self, ts: int, group: str) -> Iterator[Record]:
        open_resets = self._resets.get(group, [])
        for member in [member for member in self._dropped if member[1] == group]:
            kept = self._dropped.pop(member) - set(self._reset_offsets.get(member, ()))
            self._queues.hold(ts, member, self._queues.of(member) | kept)
        for client_id, of_group in [member for member in self._reset_offsets if member[1] == group]:
            offsets = self._reset_offsets.pop((client_id, of_group))
            for broker_name in sorted({queue.broker_name for queue in offsets}):
                sent = [one for one in open_resets if self.names.get(one.invoked.broker_addr, ("",))[0] == broker_name]
                for reset in (sent or open_resets)[:1]:
                    self.resets.append((client_id, group, reset.invoked.topic, reset.ts))
                    of_broker = {queue: offset for queue, offset in offsets.items() if queue.broker_name == broker_name}
                    yield reset_record(reset.ts, client_id, reset.invoked, of_broker)
        if open_resets:
            open_resets.pop(0)

    def _route(self, ts: int, fact: log.RouteTaken) -> Iterator[Record]:
        for data in fact.body["brokerDatas"]:
            addrs = cast(dict[str, str], data["brokerAddrs"])
            self.names |= {addr: (str(data["brokerName"]), int(broker_id)) for broker_id, addr in addrs.items()}
        if self._routes.get(fact.topic) != fact.body:
            self._routes[fact.topic] = fact.body
            yield route_record(ts, fact)

    def _heartbeat(self, ts: int, sent: log.HeartbeatSent | None, fact: log.HeartbeatContent) -> Iterator[Record]:
        groups = [str(consumer["groupName"]) for consumer in fact.consumers]
        for group in groups:
            self._seen(fact.client_id, group)
            if fact.client_id in self._from_start:
                self._queues.begin(ts, (fact.client_id, group))
        if groups:
            yield heartbeat_record(ts, sent, fact)

    def _unregistered(self, ts: int, fact: log.Unregistered) -> Iterator[Record]:
        self.names[fact.broker_addr] = (fact.broker_name, fact.broker_id)
        members = self._members(fact.group)
        if len(members) == 1:
            yield unregister_record(ts, members[0], fact)
        else:
            self._left.setdefault(fact.group, []).append((ts, fact))

    def _created(self, ts: int, fact: log.ClientCreated) -> None:
        # The first client of a process: clients of an earlier process in the same log have ended.
        gone = list(self._groups) if fact.number == 0 else [fact.client_id]
        for client_id in gone:
            self._forget(ts, client_id)
        if fact.number == 0:
            self._queues.forget_moves()
            self._resets.clear()
            self._reset_offsets.clear()
            self._dropped.clear()
        self._from_start.add(fact.client_id)
        self._ended.discard(fact.client_id)

    def _forget(self, ts: int, client_id: str) -> None:
        for group in self._groups.pop(client_id, set()):
            self._queues.end(ts, (client_id, group))
        self._from_start.discard(client_id)

    def _client_stopped(self, ts: int, client_id: str) -> Iterator[Record]:
        for group in self._groups.get(client_id, set()):
            self._stopped[group] += 1
            for left_ts, fact in self._left.pop(group, []):
                yield unregister_record(left_ts, client_id, fact)
        self._forget(ts, client_id)
        self._ended.add(client_id)

    def _consumer_stopped(self, ts: int, group: str) -> None:
        if self._stopped[group]:
            self._stopped[group] -= 1
            return
        members = self._members(group)
        if len(members) == 1:
            self._queues.end(ts, (members[0], group))
            self._groups[members[0]].discard(group)
