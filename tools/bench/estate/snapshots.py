"""What brokers write down, byte for byte as fastjson does: consumerOffset.json, topics.json, subscriptionGroup.json.

A broker's file is one template for the whole day, in which only the offsets that ever move are numbers to put in.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Protocol

import numpy as np

from .flow import MEMORY_RATIO, PHYSICAL_MEMORY, Events
from .shape import CLUSTER, Shape

SLAVE_LATER_MS = 2_000  # a slave's copy is looked at a moment after its master's
GONE_KEYS = 1  # at each broker name a key is removed in the day, and one is added


class MoreKeys(Protocol):
    """Keys of consumerOffset.json, topics and groups beside the estate's own."""

    def keys(self, k: int, b: int) -> list[str]:
        """Lines of the k-th consumerOffset.json of a broker name."""
        ...

    def topics_of(self, b: int) -> dict[str, int]:
        """Topics of a broker name, each with its number of queues."""
        ...

    def groups(self) -> dict[str, str]:
        """Group -> its topic."""
        ...


class BrokerFiles:
    """The snapshots of one broker name: its master's and, with the same offsets, its slave's."""

    def __init__(
        self,
        shape: Shape,
        events: Events,
        b: int,
        folder: Path,
        rng: np.random.Generator,
        more: MoreKeys | None = None,
    ) -> None:
        """``more``: keys beside the estate's own."""
        self.more, self.b = more, b
        self.shape, self.broker, self.folder = shape, shape.brokers[b], folder
        mine = np.flatnonzero(shape.entry_broker == b)
        idle = [i for i, (_, broker, _) in enumerate(events.idle) if broker == b]
        moving = {(int(shape.entry_key[a]), int(shape.entry_queue[a])): int(a) for a in mine}
        moving |= {(events.idle[i][0], events.idle[i][2]): len(shape.entry_key) + i for i in idle}
        at_rest = [j for j, key in enumerate(shape.keys) if not key.active and j not in {k for k, _, _ in events.idle}]
        self.still = (10 ** rng.uniform(0, 8.7, (len(shape.keys), 8))).astype(np.int64)
        gone, come = rng.permutation(at_rest)[: 2 * GONE_KEYS].reshape(2, GONE_KEYS).tolist()
        self.gone = {j: int(rng.integers(2, shape.size.snapshots - 1)) for j in gone}  # from then on not there
        self.come = {j: int(rng.integers(2, shape.size.snapshots - 1)) for j in come}  # from then on there
        self._lines = {}
        for j in rng.permutation(len(shape.keys)).tolist():  # a ConcurrentHashMap: no order, but always one
            key, places, numbers = shape.keys[j], [], []
            for q in range(key.queues):
                place = moving.get((j, q))
                numbers.append(f"{q}:{self.still[j, q]}" if place is None else f"{q}:%d")
                places += [] if place is None else [place]
            name = f"{key.topic}@{shape.groups[key.group]}".replace("%", "%%")
            self._lines[j] = (f'\t\t"{name}":{{{",".join(numbers)}\n\t\t}}', places)
        self.idle = idle
        self._there: set[int] | None = None

    def _template(self, k: int) -> None:
        there = {j for j in self._lines if k < self.gone.get(j, k + 1) and k >= self.come.get(j, 0)}
        if there == self._there:
            return
        self._there = there
        lines = [line for j, line in self._lines.items() if j in there]
        self.places = np.array([place for _, places in lines for place in places], np.int64)
        self.entries = sum(self.shape.keys[j].queues for j in there)
        more = "%s" if self.more else ""
        table = '\t"offsetTable":{\n' + ",\n".join(text for text, _ in lines) + more + "\n\t}\n}"
        self.text = "{\n" + (self._more() if self.broker.is_5 else "") + table

    def _more(self) -> str:
        """What 5.x writes before the offsets."""
        topics: dict[str, list[str]] = {}
        for key in self.shape.keys:
            topics.setdefault(self.shape.groups[key.group], []).append(key.topic)
        topics |= {group: [topic] for group, topic in self.more.groups().items()} if self.more else {}
        listed = [f'\t\t"{group}":{json.dumps(t, separators=(",", ":"))}' for group, t in topics.items()]
        version = '\t"dataVersion":{\n\t\t"counter":%d,\n\t\t"stateVersion":0,\n\t\t"timestamp":%d\n\t},\n'
        return version + '\t"groupTopicMap":{\n' + ",\n".join(listed).replace("%", "%%") + "\n\t},\n"

    def write(self, k: int, offsets: np.ndarray) -> int:
        """Writes the k-th snapshot of both brokers; ``offsets`` of all moving entries. Gives its entries."""
        self._template(k)
        numbers = offsets[self.places].tolist()
        if self.broker.is_5:
            counter = k // 10
            numbers = [counter, self.shape.size.snapshot_ms(counter * 10) - 500, *numbers]
        if self.more:
            numbers.append("".join(",\n" + line for line in self.more.keys(k, self.b)))
        data = (self.text % tuple(numbers)).encode("ascii")
        for broker_id in (0, 1):
            self._put(broker_id, k, "consumerOffset.json", data)
        if k == 0:
            self._write_settings()
        return self.entries

    def _put(self, broker_id: int, k: int, name: str, data: bytes) -> None:
        ts = self.shape.size.snapshot_ms(k) + broker_id * SLAVE_LATER_MS
        folder = self.folder / f"{self.broker.name}-{broker_id}" / str(ts)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)

    def _write_settings(self) -> None:
        queues = {key.topic: key.queues for key in self.shape.keys}
        queues |= self.more.topics_of(self.b) if self.more else {}
        topics = {
            topic: {
                "order": False,
                "perm": 6,
                "readQueueNums": count,
                "topicFilterType": "SINGLE_TAG",
                "topicName": topic,
                "topicSysFlag": 0,
                "writeQueueNums": count,
            }
            for topic, count in queues.items()
        }
        groups = {
            name: {
                "brokerId": 0,
                "consumeBroadcastEnable": True,
                "consumeEnable": True,
                "consumeFromMinEnable": True,
                "groupName": name,
                "notifyConsumerIdsChangedEnable": True,
                "retryMaxTimes": 16,
                "retryQueueNums": 1,
                "whichBrokerWhenConsumeSlowly": 1,
            }
            for name in [*self.shape.groups, *(self.more.groups() if self.more else ())]
        }
        version = {"counter": 31, "timestamp": self.shape.size.snapshot_ms(0) - 86_400_000}
        for broker_id in (0, 1):
            self._put(broker_id, 0, "topics.json", _pretty({"dataVersion": version, "topicConfigTable": topics}))
            table = {"dataVersion": version, "subscriptionGroupTable": groups}
            self._put(broker_id, 0, "subscriptionGroup.json", _pretty(table))


def _pretty(value: object) -> bytes:
    return json.dumps(value, indent="\t", separators=(",", ":")).encode("ascii")


def brokers_json(shape: Shape) -> bytes:
    """The cluster's brokers and their settings, as a recorder asks for them."""
    brokers = {}
    for broker in shape.brokers:
        for broker_id, addr in enumerate(broker.addrs):
            # A 5.x slave works with ten percent less than was configured.
            effective = MEMORY_RATIO - 10 * (broker.is_5 and broker_id > 0)
            brokers[f"{broker.name}-{broker_id}"] = {
                "addr": addr,
                "rocketmq_version": broker.version,
                "properties": {
                    "brokerClusterName": CLUSTER,
                    "brokerName": broker.name,
                    "brokerId": broker_id,
                    "brokerRole": "SLAVE" if broker_id else "ASYNC_MASTER",
                    "slaveReadEnable": "true",
                    "accessMessageInMemoryMaxRatio": MEMORY_RATIO,
                },
                "effective_accessMessageInMemoryMaxRatio": effective,
            }
    root = {
        "cluster": CLUSTER,
        "physical_memory_bytes": PHYSICAL_MEMORY,
        "name_servers": ["10.0.200.1:9876", "10.0.200.2:9876"],
        "brokers": brokers,
    }
    return json.dumps(root, indent=1).encode("ascii")
