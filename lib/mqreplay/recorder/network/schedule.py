"""The next polls at each server. Pure: the caller gives the time, in milliseconds of a steady clock.

Each target has a period and a phase of its own, so that polls are spread over the period. Each server has a budget of
requests. If it is too small, the poll with the greatest delay in relation to its period goes first, so that all periods
grow by the same factor. Polls that could not be made are counted. Urgent targets are always polled.
"""

from __future__ import annotations

import heapq
import itertools
from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple
from zlib import crc32

BURST_S: Final = 0.2  # share of a second's budget that may be used at the same time
FIRST_RANK_MS: Final = 5000  # initial delay bound of a target that was never polled
MAX_IN_FLIGHT: Final = 8  # open requests at one server
MAX_SHARED: Final = 100  # and at those that share a budget: each may be silent until its timeout
SHARED: Final = ""  # instead of their addresses
BACK_OFF_MS: Final = 60_000
LONG_BACK_OFF_MS: Final = 600_000


class Target(NamedTuple):
    """The target of a poll: its kind, the server, and the names in the request.

    ``broker`` is the name and id of the broker, None for a name server; ``subject`` a group or topic.
    """

    kind: str
    addr: str
    broker: tuple[str, int] | None = None
    subject: str = ""
    client_id: str = ""

    @property
    def broker_key(self) -> tuple[str, int]:
        """Return the name and id of the broker, of a target that is one."""
        assert self.broker is not None
        return self.broker


class Plan(NamedTuple):
    """The poll plan of a target.

    ``urgent``: also where the budget is used up. ``probe``: also if the server could not be reached, and as often.
    ``phase_ms`` is the time in the period; by default targets are spread over it. ``at_once`` bounds the open polls of
    the kind at one server. If the budget is too small, the period grows less by the factor
    ``weight``, and more by ``cost``, the requests of one poll. ``limit``: targets with the same one are polled at least
    ``limit_ms`` after each other. ``patient``: the back-off of a target that fails may exceed a minute. ``is_shared``:
    all such targets share the budget of one server.
    """

    period_ms: int
    urgent: bool = False
    probe: bool = False
    phase_ms: int | None = None
    at_once: int = MAX_IN_FLIGHT
    weight: int = 1
    cost: int = 1
    limit: Hashable = None
    limit_ms: int = 0
    patient: bool = False
    is_shared: bool = False


class Skipped(NamedTuple):
    """Polls that were not made in a time span, with the reason."""

    addr: str
    broker: tuple[str, int] | None
    kind: str
    reason: str
    from_ms: int
    to_ms: int
    polls: int


@dataclass(slots=True)
class _Entry:
    plan: Plan
    due: int
    rank: int = 0  # its delay is measured in relation to this
    is_new: bool = True  # never polled
    number: int = 0  # number of its entry in a heap: older entries are invalid
    failures: int = 0
    in_flight: bool = False


@dataclass(slots=True)
class _Server:
    tokens: float
    filled: int
    heaps: dict[tuple[str, int], list[tuple[int, int, Target]]] = field(default_factory=dict)
    in_flight: int = 0
    by_kind: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    blocked_until: int | None = None
    blocks: int = 0
    unblocked: int = -1  # when a block ended


class Schedule:
    """The targets of all servers."""

    def __init__(self, requests_per_second: float) -> None:
        self._rate = requests_per_second / 1000
        self._burst = max(1.0, requests_per_second * BURST_S)
        self._entries: dict[Target, _Entry] = {}
        self._servers: dict[str, _Server] = {}
        self._limits: dict[Hashable, int] = {}  # by limit: when the next target may be polled
        self._asked: dict[Target, str] = {}  # the server of each target in flight
        self._numbers = itertools.count(1)
        self._skipped: dict[tuple[str, tuple[str, int] | None, str, str], list[int]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Target]:
        return iter(self._entries)

    @property
    def has_new(self) -> bool:
        """Return whether there is a target that was never polled."""
        return any(entry.is_new and not entry.plan.is_shared for entry in self._entries.values())

    def period_ms(self, target: Target) -> int | None:
        """Return the poll interval of a target; None if it is no longer polled."""
        entry = self._entries.get(target)
        return None if entry is None else entry.plan.period_ms

    def is_urgent(self, target: Target) -> bool:
        """Return whether a target is polled before others."""
        entry = self._entries.get(target)
        return entry is not None and entry.plan.urgent

    def replace(self, plans: Mapping[Target, Plan], now: int) -> None:
        """Poll exactly these targets from now on. A new target is due at once."""
        for target in self._entries.keys() - plans.keys():
            del self._entries[target]
        for target, plan in plans.items():
            entry = self._entries.get(target)
            if entry is None:
                self._entries[target] = entry = _Entry(plan, now)
                self._place(target, entry)
            elif entry.plan != plan:
                shorter = plan.period_ms < entry.plan.period_ms
                entry.plan = plan
                if not entry.in_flight:
                    entry.due = min(entry.due, now + plan.period_ms) if shorter else entry.due
                    self._place(target, entry)
        self._limits = {key: until for key, until in self._limits.items() if until > now}

    def take(self, now: int) -> list[Target]:
        """Return the targets to poll now. Each is in flight until `done`."""
        return [target for addr in list(self._servers) for target in self._take_at(addr, now)]

    def charge(self, addr: str, requests: int) -> None:
        """Count requests of a poll beyond its first."""
        self._servers[addr].tokens -= requests

    def done(self, target: Target, now: int, answered: bool = True) -> None:
        """End a poll. A failed one is retried after twice the time, up to a bound."""
        server = self._servers[self._asked.pop(target)]
        server.in_flight -= 1
        server.by_kind[target.kind] -= 1
        entry = self._entries.get(target)
        if entry is None or not entry.in_flight:
            return
        entry.in_flight = False
        entry.failures = 0 if answered else entry.failures + 1
        if entry.failures and not entry.plan.probe:
            period = entry.plan.period_ms
            bound = LONG_BACK_OFF_MS if entry.plan.patient else BACK_OFF_MS
            entry.due = now + max(period, min(period << min(entry.failures, 20), bound))
        self._place(target, entry)

    def hasten(self, target: Target, now: int) -> None:
        """Poll a target as soon as its limit and the budget allow, even if it failed before."""
        entry = self._entries.get(target)
        if entry is not None and not entry.in_flight:
            entry.failures = 0
            entry.due = min(entry.due, now)
            self._place(target, entry)

    def block(self, addr: str, now: int) -> None:
        """Send only urgent requests to a server that cannot be reached, for a time that doubles with each call."""
        server = self._server(addr, now)
        server.blocks += 1
        server.blocked_until = now + min(1000 << min(server.blocks, 10), BACK_OFF_MS)

    def unblock(self, addr: str, now: int) -> None:
        """Send all requests to a server that answers."""
        server = self._server(addr, now)
        if server.blocked_until is not None:
            server.blocked_until, server.unblocked = None, now
        server.blocks = 0

    def next_due(self, now: int, longest: int) -> int:
        """Return the milliseconds until the next call of `take`, at most ``longest``."""
        soonest = now + longest
        for server in self._servers.values():
            wait = max(0, int((1 - server.tokens) / self._rate)) if server.tokens < 1 else 0
            for heap in server.heaps.values():
                if heap:
                    soonest = min(soonest, max(heap[0][0], now + wait))
        return soonest - now

    def skipped(self) -> list[Skipped]:
        """Return the polls that were not made since the last call."""
        skipped = [
            Skipped(addr, broker, kind, reason, from_ms, to_ms, count)
            for (addr, broker, kind, reason), (from_ms, to_ms, count) in self._skipped.items()
        ]
        self._skipped.clear()
        return skipped

    def _server(self, addr: str, now: int) -> _Server:
        if addr not in self._servers:
            self._servers[addr] = _Server(self._burst, now)
        return self._servers[addr]

    def _place(self, target: Target, entry: _Entry) -> None:
        entry.number = next(self._numbers)
        period = min(FIRST_RANK_MS, entry.plan.period_ms) if entry.is_new else entry.plan.period_ms
        entry.rank = max(1, period * entry.plan.cost // entry.plan.weight)
        heaps = self._server(SHARED if entry.plan.is_shared else target.addr, entry.due).heaps
        heapq.heappush(heaps.setdefault((target.kind, entry.rank), []), (entry.due, entry.number, target))

    def _take_at(self, addr: str, now: int) -> list[Target]:
        server = self._servers[addr]
        server.tokens = min(self._burst, server.tokens + (now - server.filled) * self._rate)
        server.filled = now
        taken = []
        while (target := self._most_late(server, now)) is not None:
            entry = self._entries[target]
            heapq.heappop(server.heaps[target.kind, entry.rank])
            self._asked[target] = addr
            self._start(server, target, entry, now)
            taken.append(target)
        return taken

    def _most_late(self, server: _Server, now: int) -> Target | None:
        """Return the due target at the head of a heap with the greatest delay in relation to its period."""
        blocked = server.blocked_until is not None and now < server.blocked_until
        most_in_flight = MAX_SHARED if server is self._servers.get(SHARED) else MAX_IN_FLIGHT
        best: Target | None = None
        most = (False, -1.0)
        for (kind, rank), heap in server.heaps.items():
            target = self._head(heap, now)
            if target is None or heap[0][0] > now:
                continue
            plan = self._entries[target].plan
            if blocked and not plan.probe:
                continue
            if not plan.urgent and (
                server.tokens < 1
                or server.in_flight >= most_in_flight
                or server.by_kind.get(kind, 0) >= max(plan.at_once, most_in_flight if plan.is_shared else 0)
            ):
                continue
            late = plan.urgent, (now - heap[0][0]) / rank
            if late > most:
                best, most = target, late
        return best

    def _head(self, heap: list[tuple[int, int, Target]], now: int) -> Target | None:
        """Return the first target of a heap; skip invalid entries and targets that must wait for a limit."""
        while heap:
            due, number, target = heap[0]
            entry = self._entries.get(target)
            if entry is None or entry.number != number or entry.in_flight:
                heapq.heappop(heap)
            elif due <= now < (until := self._limits.get(entry.plan.limit, 0)):
                heapq.heappop(heap)
                entry.due = until
                self._place(target, entry)
            else:
                return target
        return None

    def _start(self, server: _Server, target: Target, entry: _Entry, now: int) -> None:
        plan = entry.plan
        entry.in_flight, entry.is_new = True, False
        server.in_flight += 1
        server.by_kind[target.kind] += 1
        server.tokens -= 1
        if plan.limit is not None:
            self._limits[plan.limit] = now + plan.limit_ms
        missed = (now - entry.due) // plan.period_ms
        if missed > 0:
            reason = "unreachable" if entry.due <= server.unblocked else "budget"
            key = target.addr, target.broker, target.kind, reason
            total = self._skipped.setdefault(key, [entry.due, now, 0])
            total[:] = min(total[0], entry.due), now, total[2] + missed
        # The next time of the target's own grid that is at least half a period away.
        phase = crc32(repr(target).encode("utf-8", "surrogatepass")) if plan.phase_ms is None else plan.phase_ms
        least = now + plan.period_ms // 2
        entry.due = least + (phase - least) % plan.period_ms
