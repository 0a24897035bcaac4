"""What was done on a made night, and when: faults, clients, events and how the sends ended."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any

Fault = dict[str, Any]


class Truth:
    """The truth of a night. Times are epoch ms of this machine; several threads may write."""

    def __init__(self, cluster: str, version: str) -> None:
        self._head = {"cluster": cluster, "rocketmq_version": version, "started": now_ms()}
        self._faults: list[Fault] = []
        self._clients: list[dict[str, Any]] = []
        self._events: list[dict[str, Any]] = []
        self._sends: dict[tuple[str, str], dict[str, Any]] = {}
        self._lock = Lock()

    def event(self, scenario: str, action: str, **detail: Any) -> None:
        """Note that something was done now."""
        entry = {"ts": now_ms(), "scenario": scenario, "action": action, "detail": detail}
        self._events.append(entry)
        print(time.strftime("%H:%M:%S"), scenario, action, json.dumps(detail), flush=True)

    def client(self, **entry: Any) -> dict[str, Any]:
        """Note a client that started. The caller adds when and how it stopped."""
        self._clients.append(entry)
        return entry

    def send(self, topic: str, status: str) -> None:
        """Count a send that ended now with this status."""
        now = now_ms()
        with self._lock:
            first = {"topic": topic, "status": status, "count": 0, "first": now}
            entry = self._sends.setdefault((topic, status), first)
            entry |= {"count": entry["count"] + 1, "last": now}

    def fault(self, name: str, **where: Any) -> Fault:
        """Note a fault that is injected now, and where. The caller may add when it ended."""
        fault = {"fault": name, "at": now_ms(), **where}
        self._faults.append(fault)
        self.event(name, "begin", **where)
        return fault

    @contextmanager
    def lasting(self, name: str, **where: Any) -> Iterator[Fault]:
        """Note a fault that lasts as long as the block."""
        fault = self.fault(name, **where)
        yield fault
        fault["until"] = now_ms()
        self.event(name, "end", **where)

    def write(self, path: Path) -> None:
        """Write it as NAME.truth.json of tests/data."""
        sends = [self._sends[key] for key in sorted(self._sends)]
        truth = self._head | {"ended": now_ms(), "faults": self._faults, "clients": self._clients, "sends": sends}
        path.write_text(json.dumps(truth | {"events": self._events}, indent=1) + "\n")


def now_ms() -> int:
    """Return the epoch ms of this machine."""
    return round(time.time() * 1000)
