"""Routes as clients were given them, and where RocketMQ's rule then sends a pull: once for each distinct case."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from mqreplay.core.pull_node import find_broker_address_in_subscribe

if TYPE_CHECKING:
    from .records import Lines

SHIFT = 43  # bits of epoch milliseconds under a key
SLACK_MS = 1_000  # after a name server's answer a client may still go by the route it had
Addrs = tuple[tuple[int, str], ...]


class Routes:
    """What each client's table held for each broker name, and from when."""

    def __init__(self, lines: Lines) -> None:
        """``lines`` are those of routes.jsonl, in any order."""
        self.states: list[Addrs] = []
        self._state_ids: dict[Addrs, int] = {}
        self.pairs: dict[tuple[str, str], int] = {}
        known = np.where(lines.response_ts < 0, lines.ts, lines.response_ts)
        cases = [(case["client_id"], case["topic"], case["body"]) for case in lines.cases]
        told = [(ts, *cases[i]) for ts, i in zip(known.tolist(), lines.which.tolist(), strict=True) if cases[i][2]]
        had: dict[tuple[str, str], str] = {}
        held: dict[int, int] = {}
        keys, now, before = [], [], []
        for ts, client, topic, body in sorted(told):
            old = had.get((client, topic))
            if old is not None and (old == body or route_of(old) == route_of(body)):
                continue
            had[client, topic] = body
            for name, addrs in route_of(body)[0]:
                pair = self.pairs.setdefault((client, name), len(self.pairs))
                keys.append((pair << SHIFT) + ts)
                now.append(self._state(addrs))
                before.append(held.get(pair, -1))
                held[pair] = now[-1]
        order = np.argsort(np.array(keys, np.int64), kind="stable")
        self.keys = np.array(keys, np.int64)[order]
        self.now, self.before = np.array(now, np.int64)[order], np.array(before, np.int64)[order]

    def _state(self, addrs: Addrs) -> int:
        if addrs not in self._state_ids:
            self._state_ids[addrs] = len(self.states)
            self.states.append(addrs)
        return self._state_ids[addrs]

    def at(self, pair: np.ndarray, ts: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The state that each pair had at that time, the one before it, and whether it had just changed; -1: none."""
        found = np.searchsorted(self.keys, (pair << SHIFT) + ts, "right") - 1
        known = (found >= 0) & (pair >= 0) & (self.keys[found] >> SHIFT == pair)
        fresh = known & (ts - (self.keys[found] & ((1 << SHIFT) - 1)) < SLACK_MS) & (self.before[found] >= 0)
        return np.where(known, self.now[found], -1), np.where(known, self.before[found], -1), fresh


@lru_cache(maxsize=4096)
def route_of(body: str) -> tuple:
    """Broker names with their addresses, and the queues: equal for answers that say the same."""
    route = json.loads(body)
    brokers = tuple(
        sorted(
            (data["brokerName"], tuple((int(i), addr) for i, addr in data["brokerAddrs"].items()))
            for data in route["brokerDatas"]
        )
    )
    return brokers, tuple(sorted(json.dumps(data, sort_keys=True) for data in route["queueDatas"]))


def judge(
    now: Addrs | None, before: Addrs | None, fresh: bool, node: int | None, actual: int | None
) -> tuple[int | None, str, str, str | None]:
    """expected broker id, judgement, reason, cause: gold.pull_route's rule for one distinct case."""
    found, found_before = _find(now, node), _find(before, node)
    agreed_before = fresh and found_before is not None and found_before == actual
    straight = now is None and node is not None and node == actual
    agrees = found is not None and found == actual
    cause = None
    if actual != 0 and actual is not None:
        masterless = now is not None and 0 not in dict(now)
        cause = "suggested" if node == actual else "master_gone" if masterless else None
    judgement = "agree" if straight or agrees or agreed_before else "differ"
    nowhere = now is not None and found is None and not agreed_before
    if actual is None or node is None or nowhere or (now is None and not straight):
        judgement = "undetermined"
    expected = None
    if judgement != "undetermined":
        expected = actual if agreed_before and not agrees else node if straight else found
    return expected, judgement, _reason(now, node, actual, found, straight, agrees, agreed_before), cause


def _find(addrs: Addrs | None, node: int | None) -> int | None:
    if addrs is None or node is None:
        return None
    found = find_broker_address_in_subscribe({"": dict(addrs)}, "", node, False)
    return None if found is None else next(i for i, addr in addrs if addr == found.broker_addr)


def _reason(
    now: Addrs | None,
    node: int | None,
    actual: int | None,
    found: int | None,
    straight: bool,
    agrees: bool,
    agreed_before: bool,
) -> str:
    if actual is None:
        return "the recording does not say which broker was asked"
    if node is None:
        return "the client is older than the recording: its last suggestion for this queue is not known"
    if straight:
        return _said(node, "; the client's route was not recorded")
    if now is None:
        return "the client's route was not recorded, and it asked another broker than last suggested"
    if found is None and not agreed_before:
        return "the route that the client had names no address"
    if agrees and found == node:
        return _said(node, "")
    if agrees:
        ids = ", ".join(str(i) for i in sorted(dict(now)))
        return f"broker id {node} was not in the client's route (ids {ids}): fell back to broker id {found}"
    if agreed_before:
        return "by the route that the client had shortly before"
    return f"RocketMQ's rule says broker id {found}, the client asked {actual}"


def _said(node: int, more: str) -> str:
    if node == 0:
        return "the master, by default or as last suggested" + more
    return f"the broker id last suggested, {node}{more}"
