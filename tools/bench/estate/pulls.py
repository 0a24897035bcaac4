"""pull_log.jsonl: every moving entry is pulled twice an interval. Only numbers differ from row to row."""

from __future__ import annotations

import json
from typing import Protocol

import numpy as np

from .files import HourlyLines
from .flow import MAX_MSG_NUMS, MESSAGE, MOST_DELAY, Flow
from .records import rebalance_ms
from .shape import Broker, Client
from .sizes import PULLS, START_MS

FIRST_PHASE, LAST_PHASE = 0.10, 0.85  # of a slot: pulls come after the messages, and end before the next slot
HELD_MS = 15_000  # a pull that finds nothing is held so long (brokerSuspendMaxTimeMillis)
FOUND = (
    '"response_code":0,"response_name":"SUCCESS","remark":"FOUND","next_begin_offset":%d,"min_offset":0,'
    '"max_offset":%d,"suggest_which_broker_id":%d{x},"body_bytes":%d,"msg_count":%d,"first_queue_offset":%d,'
    '"last_queue_offset":%d,"first_commitlog_offset":%d,"last_commitlog_offset":%d,"last_store_size":{size},'
    '"first_born_ts":%d}}\n'
)
NOT_FOUND = (
    '"response_code":19,"response_name":"PULL_NOT_FOUND","remark":"OFFSET_OVERFLOW_ONE","next_begin_offset":%d,'
    '"min_offset":0,"max_offset":%d,"suggest_which_broker_id":%d{x},"body_bytes":0,"msg_count":0{nothing}}}\n'
)


class MorePulls(Protocol):
    """Pulls beside the estate's own."""

    def pulls(self, k: int, slot: int) -> tuple[list[str], np.ndarray]:
        """Texts of a part of the k-th interval, still without their numbers, and the numbers, a row each."""
        ...

    def answered(self, slot: int, at: np.ndarray, after: np.ndarray) -> np.ndarray:
        """Take note of when the estate's own pulls were answered (epoch ms), and to which offsets they came.

        Return the offsets that were committed before these pulls.
        """
        ...


class PullLog:
    """Writes an interval's pulls, and counts what a replay must say of them."""

    def __init__(self, flow: Flow, out: HourlyLines, more: MorePulls | None = None) -> None:
        """``more``: pulls to write between the estate's own, in the order of their times."""
        self.more = more
        self.flow, self.shape, self.events, self.out = flow, flow.shape, flow.events, out
        count, size = len(self.shape.entry_key), self.shape.size
        self.slot_ms = size.interval_ms // PULLS
        share = FIRST_PHASE + (LAST_PHASE - FIRST_PHASE) * np.arange(count) / count
        self.phase = (share * self.slot_ms).astype(np.int64)
        self.latency = 1 + np.arange(count) * 7 % 23
        self.held = min(HELD_MS, self.slot_ms // 8)
        self.texts = [
            [
                [self._template(a, client, asked, found) for a, client in enumerate(self.shape.entry_client)]
                for found in (0, 1)
            ]
            for asked in (0, 1)
        ]
        self.guests = self._guests()
        self.rows = self.from_slave = 0
        self.undetermined = sum(client.since_ms < 0 for client in self.shape.entry_client)
        self.differ: list[dict[str, object]] = []

    def _template(self, a: int, client: Client, asked: int, found: int) -> str:
        key, broker = self.shape.keys[self.shape.entry_key[a]], self.shape.brokers[self.shape.entry_broker[a]]
        group, queue_id = self.shape.groups[key.group], int(self.shape.entry_queue[a])
        return pull_template(broker, client, group, key.topic, queue_id, asked, found)

    def _guests(self) -> list[tuple[int, int, int, str, str]]:
        """Entries that a second client pulls too: first ms, last ms, entry, texts of its pulls of master and slave."""
        made = []
        for group, (first, last) in self.events.doubles.items():
            client = self.shape.members[group][0]
            since, until = rebalance_ms(client, first), rebalance_ms(client, last)
            for a, owner in enumerate(self.shape.entry_client):
                if owner.group == group and owner is not client:
                    texts = [self._template(a, client, asked, found) for asked in (0, 1) for found in (0, 1)]
                    made.append((since, until, a, texts))
        return made

    def write(self) -> None:
        """The pulls of the flow's interval."""
        flow, k, size = self.flow, self.flow.k, self.shape.size
        broker, left, back = self.events.failover
        asked = flow.slow.astype(np.int64)
        if left <= k < back:
            asked[self.shape.entry_broker == broker] = 1
        differing = [entry for at, entry in self.events.differ if at == k]
        for slot, (start, given, end) in enumerate(flow.slots()):
            sent = size.snapshot_ms(k) + slot * self.slot_ms + self.phase
            to = asked.copy()
            if k == 0 and slot == 0:
                to[:] = 0  # nothing was suggested yet
            if slot == 0:
                to[differing] = 1
                self._note(differing, sent)
            self._write_slot(slot, sent, to, start, given, end)

    def _write_slot(
        self, slot: int, sent: np.ndarray, to: np.ndarray, start: np.ndarray, given: np.ndarray, end: np.ndarray
    ) -> None:
        flow, count = self.flow, len(start)
        found = given > 0
        answered = sent + np.where(found, self.latency, self.held)
        opaque = 100 + (flow.k * PULLS + slot) * count + np.arange(count)
        place = flow.places(slot)
        committed = flow.committed if self.more is None else self.more.answered(slot, answered, start + given)
        born = self.shape.size.snapshot_ms(0) + flow.slot_ms(flow.made - MOST_DELAY, slot)
        numbers = np.stack(
            [
                sent,
                answered,
                opaque,
                start,
                committed,
                start + given,
                end,
                (flow.slow & found).astype(np.int64),
                given * MESSAGE,
                given,
                start,
                start + given - 1,
                place,
                place + (given - 1) * MESSAGE,
                born,
            ],
            axis=1,
        )
        texts = self.texts
        rows = [texts[t][f][a] for a, (t, f) in enumerate(zip(to.tolist(), found.tolist(), strict=True))]
        if slot == PULLS - 1:
            for since, until, a, guest in self.guests:
                if since <= sent[a] < until:
                    rows[a] = guest[2 * int(to[a]) + int(found[a])]
        if self.more is not None:
            texts_more, numbers_more = self.more.pulls(flow.k, slot)
            numbers = np.concatenate([numbers, numbers_more])
            order = np.argsort(numbers[:, 0], kind="stable")
            both, numbers = rows + texts_more, numbers[order]
            rows = [both[row] for row in order.tolist()]
        self.out.write(int(numbers[0, 0]), "".join(rows) % tuple(numbers.ravel().tolist()), len(rows))
        self.rows += len(rows)
        self.from_slave += int(to.sum())

    def _note(self, entries: list[int], sent: np.ndarray) -> None:
        for a in entries:
            key = self.shape.keys[self.shape.entry_key[a]]
            self.differ.append(
                {
                    "consumer_group": self.shape.groups[key.group],
                    "topic": key.topic,
                    "broker_name": self.shape.brokers[self.shape.entry_broker[a]].name,
                    "queue_id": int(self.shape.entry_queue[a]),
                    "client_id": self.shape.entry_client[a].client_id,
                    "request_ts": int(sent[a]),
                }
            )


def pull_template(broker: Broker, client: Client, group: str, topic: str, queue_id: int, asked: int, found: int) -> str:
    """A pull of broker id ``asked`` and its answer, still without their numbers."""
    fixed = {
        "client_id": client.client_id,
        "consumer_group": group,
        "topic": topic,
        "queue_id": queue_id,
        "broker_name": broker.name,
        "broker_addr": broker.addrs[asked],
        "broker_id": asked,
    }
    asks = json.dumps(fixed, separators=(",", ":"))[1:-1].replace("%", "%%")
    more = {
        "sys_flag": 2 if asked else 3,  # only a master is told the offset
        "max_msg_nums": MAX_MSG_NUMS,
        "suspend_timeout_ms": HELD_MS,
        "sub_version": START_MS + client.since_ms,
        "expression_type": "TAG",
    }
    flags = json.dumps(more, separators=(",", ":"))[1:-1]
    x = ',"x_topicSysFlag":"0","x_groupSysFlag":"0"' if broker.is_5 else ""
    answer = (FOUND if found else NOT_FOUND).format(x=x, size=MESSAGE, nothing="%.0s" * 7)
    numbers = '"opaque":%d,"queue_offset":%d,"commit_offset":%d'
    return f'{{"request_ts":%d,"response_ts":%d,{asks},{numbers},{flags},{answer}'
