"""The brokers of a cluster, from the lists of all its name servers, and which servers answer."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

from mqreplay.recorder.network.answers import Brokers

BrokerKey = tuple[str, int]  # a broker's name and id
KEPT_MS: Final = 600_000  # time for which a broker that no name server lists is still polled
PROBES: Final = 2  # consecutive failures until a server that accepts connections counts as silent


class Broker(NamedTuple):
    """A broker, and whether a name server lists it."""

    key: BrokerKey
    addr: str
    is_listed: bool


@dataclass(slots=True)
class _Known:
    addr: str
    listed_by: set[str]
    last_listed: int


class Topology:
    """The brokers of one cluster. Times in milliseconds.

    >>> topology = Topology("C")
    >>> topology.update("ns:1", Brokers(("C",), {("b", 0): ("C", "h:1"), ("x", 0): ("D", "h:2")}), 0)
    True
    >>> topology.brokers(0)
    [Broker(key=('b', 0), addr='h:1', is_listed=True)]
    >>> topology.update("ns:1", Brokers((), {}), 1), topology.brokers(1), topology.brokers(600_001)
    (True, [Broker(key=('b', 0), addr='h:1', is_listed=False)], [])
    """

    def __init__(self, cluster: str) -> None:
        self.cluster = cluster
        self._known: dict[BrokerKey, _Known] = {}

    def update(self, namesrv_addr: str, listed: Brokers, now: int) -> bool:
        """Update the list of a name server. Return whether a broker was added, removed or changed its address."""
        before = self._shape()
        for key, known in self._known.items():
            if namesrv_addr in known.listed_by:
                known.last_listed = now
                if key not in listed.addrs:
                    known.listed_by.discard(namesrv_addr)
        for key, (cluster, addr) in listed.addrs.items():
            if cluster == self.cluster:
                known = self._known.setdefault(key, _Known(addr, set(), now))
                known.addr, known.last_listed = addr, now
                known.listed_by.add(namesrv_addr)
        return self._shape() != before

    def brokers(self, now: int) -> list[Broker]:
        """Return the polled brokers: the listed ones, and those listed a short time ago.

        A controller changes the id of a broker at an unchanged address. It is then polled under its new id only.
        """
        listed = {known.addr for known in self._known.values() if known.listed_by}
        return [
            Broker(key, known.addr, bool(known.listed_by))
            for key, known in sorted(self._known.items())
            if known.listed_by or (now - known.last_listed < KEPT_MS and known.addr not in listed)
        ]

    def _shape(self) -> list[tuple[BrokerKey, str, bool]]:
        return sorted((key, known.addr, bool(known.listed_by)) for key, known in self._known.items())


def leaders(brokers: Iterable[Broker], silent: set[str]) -> list[Broker]:
    """Return for each broker name the broker to ask for members: the lowest id whose address is not silent.

    Usually that is the master. If no broker of a name answers, it is the lowest id.

    >>> two = [Broker(("b", 0), "h:1", True), Broker(("b", 1), "h:2", True)]
    >>> leaders(two, set())[0].addr, leaders(two, {"h:1"})[0].addr, leaders(two, {"h:1", "h:2"})[0].addr
    ('h:1', 'h:2', 'h:1')
    """
    chosen: dict[str, Broker] = {}
    for broker in sorted(brokers, key=lambda each: (each.addr in silent, each.key[1])):
        chosen.setdefault(broker.key[0], broker)
    return sorted(chosen.values())


class Reach:
    """Servers by their address. ``silent`` are those that do not answer; ``revision`` grows when that changes.

    It also grows with the first answer of a server.

    >>> reach = Reach()
    >>> reach.failed("h:1", is_probe=True, is_unreachable=False), reach.failed("h:1", True, False), reach.silent
    (False, True, {'h:1'})
    >>> reach.answered("h:1", 5000), reach.answered("h:1", 6000), reach.silent
    (0, None, set())
    """

    def __init__(self) -> None:
        self.silent: set[str] = set()
        self.revision = 0
        self._failures: dict[str, int] = {}
        self._last: dict[str, int] = {}  # ts of the last answer

    def is_known(self, addr: str) -> bool:
        """Return whether a server ever answered."""
        return addr in self._last

    def failed(self, addr: str, is_probe: bool, is_unreachable: bool) -> bool:
        """Record a poll without an answer. Return whether the server now became silent."""
        self._failures[addr] = self._failures.get(addr, 0) + is_probe
        if addr in self.silent or not (is_unreachable or self._failures[addr] >= PROBES):
            return False
        self.silent.add(addr)
        self.revision += 1
        return True

    def answered(self, addr: str, ts: int) -> int | None:
        """Record an answer. If the server was silent, return the ts of its last answer before, 0 for none."""
        was_silent, last = addr in self.silent, self._last.get(addr, 0)
        self.revision += addr not in self._last
        self._last[addr] = ts
        self._failures[addr] = 0
        if not was_silent:
            return None
        self.silent.discard(addr)
        self.revision += 1
        return last
