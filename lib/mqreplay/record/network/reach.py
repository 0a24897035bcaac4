"""Reachability of servers."""

from __future__ import annotations

from typing import Final

PROBES: Final = 2  # consecutive failures until a server that accepts connections counts as silent


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
