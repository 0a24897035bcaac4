"""The groups, members and topics that the recorder knows from answers so far; they decide what it polls next."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from mqreplay.core.pop_revive import REVIVE_GROUP, is_revive_topic
from mqreplay.core.retry_topic import dlq_topic
from mqreplay.core.system_names import PROXY_GROUP, is_system_group, is_system_topic
from mqreplay.recorder.network.options import Filter
from mqreplay.recorder.network.topology import BrokerKey


class Estate:
    """Groups, members and topics of the cluster, as far as they are recorded. ``revision`` grows with every change."""

    def __init__(self, chosen: Filter) -> None:
        self.revision = 0
        self.members: dict[str, dict[BrokerKey, frozenset[str]]] = defaultdict(dict)  # by group
        self.queue_counts: dict[BrokerKey, dict[str, int]] = {}
        self.listed_topics: frozenset[str] | None = None  # of the last polled name server
        self.moved_topics: set[tuple[BrokerKey, str]] = set()  # topics whose maximum offsets grew at the last poll
        self.answering: set[tuple[str, str]] = set()  # (group, client id) of clients that answered
        # Brokers of a version that does not know a request (402, 907), with the kind of poll.
        self.unsupported: set[tuple[BrokerKey, str]] = set()
        self.proxy_hosts: set[str] = set()  # of the members of PROXY_GROUP
        self.proxies: set[str] = set()  # addresses at which a proxy answers
        self.proxied: dict[tuple[str, str], frozenset[str]] = {}  # members by (address of the proxy, group)
        self._chosen = chosen
        self._groups: dict[BrokerKey, frozenset[str]] = {}
        self._pairs: dict[BrokerKey, frozenset[tuple[str, str]]] = {}  # (topic, group)
        self._keys: dict[BrokerKey, frozenset[str]] = {}
        self._subscribed: dict[tuple[BrokerKey, str], frozenset[str]] = {}  # topics of a group
        self._max_offsets: dict[tuple[BrokerKey, str], Mapping[int, int]] = {}
        self._consumed: dict[tuple[BrokerKey, str], int] = {}  # when a group's offsets last changed

    @property
    def records_all(self) -> bool:
        """Return whether all groups and topics are recorded."""
        return not self._chosen.groups and not self._chosen.topics

    def is_recorded_key(self, key: str) -> bool:
        """Return whether an entry "topic@group" of an offset table is recorded."""
        topic, _, group = key.rpartition("@")
        return self._chosen.has(topic, group)

    def is_group(self, group: str) -> bool:
        """Return whether a group is recorded."""
        return self._chosen.has_group(group) and not is_system_group(group)

    def groups(self) -> set[str]:
        """Return the groups."""
        known = set().union(*self._groups.values(), *({group for _, group in pairs} for pairs in self._pairs.values()))
        known |= self.members.keys()
        return {group for group in known if self.is_group(group)}

    def consumed_topics(self) -> set[str]:
        """Return the topics that have or had consumers, including retry topics."""
        topics = set().union(*self._subscribed.values())
        topics |= {topic for pairs in self._pairs.values() for topic, _ in pairs}
        return {topic for topic in topics if self._chosen.has_topic(topic) and not is_system_topic(topic)}

    def dead_letter_topics(self) -> set[str]:
        """Return the existing dead letter topics of the groups."""
        return {dlq_topic(group) for group in self.groups()}

    def revive_topics(self) -> set[str]:
        """Return the topics into which brokers put checkpoints of POP, if they keep offsets of revival."""
        pairs = {topic for pairs in self._pairs.values() for topic, group in pairs if group == REVIVE_GROUP}
        return {topic for topic in pairs if is_revive_topic(topic)}

    def has_members(self, group: str) -> bool:
        """Return whether a broker knows a member of the group."""
        return any(self.members.get(group, {}).values())

    def clients(self) -> dict[tuple[str, str], list[BrokerKey]]:
        """Return the brokers that know a client as a member of a group, for each (group, client id)."""
        brokers: dict[tuple[str, str], list[BrokerKey]] = defaultdict(list)
        for group, by_broker in self.members.items():
            for key, ids in sorted(by_broker.items()):
                for client_id in ids:
                    brokers[group, client_id].append(key)
        return brokers

    def take_groups(self, broker: BrokerKey, groups: Iterable[str]) -> None:
        """Add the groups that a broker has settings for (201)."""
        self._set(self._groups, broker, frozenset(groups))

    def take_members(self, broker: BrokerKey, group: str, ids: frozenset[str]) -> None:
        """Set the members of a group that a broker knows (38)."""
        if self.members.get(group, {}).get(broker) != ids and (ids or group in self.members):
            self.members[group][broker] = ids
            self.revision += 1

    def take_support(self, broker: BrokerKey, kind: str, is_known: bool) -> None:
        """Set whether the version of a broker knows the request of a kind of poll."""
        if is_known == ((broker, kind) in self.unsupported):
            self.unsupported ^= {(broker, kind)}
            self.revision += 1

    def take_proxy_hosts(self, hosts: Iterable[str]) -> None:
        """Add hosts of proxies (203 of PROXY_GROUP at a broker)."""
        if not self.proxy_hosts.issuperset(hosts):
            self.proxy_hosts |= set(hosts)
            self.revision += 1

    def take_proxied(self, addr: str, group: str, ids: frozenset[str]) -> None:
        """Set the members of a group that a proxy knows (203)."""
        if addr not in self.proxies:
            self.proxies.add(addr)
            self.revision += 1
        self.proxied[addr, group] = ids

    def forget_proxy(self, addr: str) -> None:
        """Forget a proxy that no longer answers, and its members."""
        if addr in self.proxies:
            self.proxies.remove(addr)
            self.revision += 1
        self.proxied = {key: ids for key, ids in self.proxied.items() if key[0] != addr}

    def proxied_clients(self) -> set[str]:
        """Return the clients that only proxies know."""
        return {each for (_, group), ids in self.proxied.items() if group != PROXY_GROUP for each in ids}

    def has_proxies(self) -> bool:
        """Return whether a broker knows the group whose members are proxies."""
        known = (*self._groups.values(), *({group for _, group in pairs} for pairs in self._pairs.values()))
        return any(PROXY_GROUP in groups for groups in known)

    def take_subscriptions(self, broker: BrokerKey, group: str, topics: frozenset[str]) -> None:
        """Set the topics that a group subscribes to (203)."""
        self._set(self._subscribed, (broker, group), topics)

    def take_queue_counts(self, broker: BrokerKey, counts: dict[str, int]) -> None:
        """Set the number of queues of a broker's topics (21)."""
        self._set(self.queue_counts, broker, counts)

    def forget_members(self, broker: BrokerKey) -> None:
        """Forget the members that a broker knew, because it no longer answers."""
        for by_broker in self.members.values():
            if by_broker.pop(broker, None) is not None:
                self.revision += 1

    def take_running(self, group: str, client_id: str) -> None:
        """Record that a client answered (307)."""
        if (group, client_id) not in self.answering:
            self.answering.add((group, client_id))
            self.revision += 1

    def take_listed_topics(self, topics: frozenset[str]) -> None:
        """Set the topics that a name server knows (206)."""
        if topics != self.listed_topics:
            self.listed_topics = topics
            self.revision += 1

    def take_offsets(self, broker: BrokerKey, keys: Iterable[str], moved: Iterable[str], now: int) -> None:
        """Set the keys "topic@group" of a broker's offsets, and those whose offsets changed (43)."""
        found = frozenset(keys)
        if found != self._keys.get(broker):
            self._keys[broker] = found
            pairs = frozenset((topic, group) for topic, _, group in (key.rpartition("@") for key in found))
            self._set(self._pairs, broker, frozenset(pair for pair in pairs if self._chosen.has(*pair)))
        for key in moved:
            self._consumed[broker, key.rpartition("@")[2]] = now

    def consumed_since(self, broker: BrokerKey, group: str, since: int) -> bool:
        """Return whether a group's offsets on a broker changed at ``since`` or later."""
        return self._consumed.get((broker, group), since - 1) >= since

    def take_max_offsets(self, broker: BrokerKey, topic: str, offsets: Mapping[int, int]) -> None:
        """Set the maximum offsets of a topic's queues (30 or 202)."""
        key = broker, topic
        before = self._max_offsets.get(key)
        self._max_offsets[key] = offsets
        if before is not None and before != offsets:
            self.moved_topics.add(key)
        else:
            self.moved_topics.discard(key)

    def forget_brokers(self, kept: set[BrokerKey]) -> None:
        """Forget the brokers that are no longer polled."""
        for table in (self._groups, self._pairs, self._keys, self.queue_counts):
            for broker in [each for each in table if each not in kept]:
                del table[broker]
        for by_broker in self.members.values():
            for broker in [each for each in by_broker if each not in kept]:
                del by_broker[broker]
        self.revision += 1

    def _set(self, table: dict, key: object, value: object) -> None:  # type: ignore[type-arg]
        if table.get(key) != value:
            table[key] = value
            self.revision += 1
