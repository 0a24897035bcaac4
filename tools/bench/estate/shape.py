"""What stands still for a day: names, queues, groups, clients, and which client pulls which queue of which broker."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from .sizes import Size

QUEUES = 8
CLUSTER = "estate-cluster"
DOMAINS = ("trade", "stock", "parcel", "ledger", "member", "coupon", "meter", "ticket", "price", "refund")
NOUNS = ("created", "paid", "closed", "synced", "audited", "moved", "graded")
SLOW_EVERY, OLDER_EVERY = 12, 8  # of the active groups: one reads far behind; one has a client older than the recording
MEMBERS = (2, 1, 2, 3)  # clients of a group, in turn
WHOLE, HALF, RETRY = 4, 4, 2  # of 60 keys: active on all queues, on half of them; active retry keys


@dataclass(frozen=True)
class Broker:
    """A broker name: its master and slave run the same version."""

    name: str
    version: str
    addrs: tuple[str, str]

    @property
    def is_5(self) -> bool:
        """Whether it writes what 5.x writes."""
        return self.version.startswith("5")


@dataclass(frozen=True)
class Key:
    """A key topic@group of consumerOffset.json: so many queues, the first ``active`` of them moving."""

    topic: str
    group: int
    queues: int
    active: int


@dataclass(frozen=True)
class Client:
    """A member of one group. ``since_ms`` is its subVersion, when it subscribed (ms after the recording began)."""

    client_id: str
    group: int
    since_ms: int


@dataclass
class Shape:
    """The estate. ``entries`` are the moving (key, broker, queue), in the order of their pulls within an interval."""

    size: Size
    brokers: list[Broker]
    groups: list[str]
    strategies: list[str]
    keys: list[Key]
    members: dict[int, list[Client]]
    entry_key: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    entry_broker: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    entry_queue: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    entry_client: list[Client] = field(default_factory=list)

    def topics_of(self, group: int) -> list[Key]:
        """The keys that a group's clients subscribe to: its active ones."""
        return [key for key in self.keys if key.group == group and key.active]

    def mq_all(self, key: Key) -> list[tuple[str, int]]:
        """(broker name, queue id) of the key's topic, as a client sorts them."""
        return [(broker.name, queue) for broker in self.brokers for queue in range(key.queues)]

    def busy(self, key: Key) -> bool:
        """Whether messages always come: topics of groups that may lag. Others have pulls that find nothing."""
        return key.active == QUEUES

    def slow(self, group: int) -> bool:
        """Whether the group reads what the master no longer keeps in memory."""
        return group % SLOW_EVERY == 1


def make_shape(size: Size, rng: np.random.Generator) -> Shape:
    """The estate of that size."""
    brokers = [
        Broker(f"broker-{b:02d}", "5.3.3" if b % 2 else "4.9.7", (f"10.0.{b}.1:10911", f"10.0.{b}.2:10911"))
        for b in range(size.names)
    ]
    groups = [f"{DOMAINS[g % 10]}-{NOUNS[g % 7]}-group-{g:03d}" for g in range(size.groups)]
    strategies = ["AVG_BY_CIRCLE" if g % 5 == 3 else "AVG" for g in range(size.groups)]
    whole, half = WHOLE * size.scale, HALF * size.scale
    keys = []
    for j in range(size.keys):
        # Two groups read each topic; three topics to a group.
        topic = f"{DOMAINS[j // 2 % 10]}-{NOUNS[j // 2 % 7]}-topic-{j // 2:04d}"
        active = QUEUES if j < whole else QUEUES // 2 if j < whole + half else 0
        keys.append(Key(topic, j // 6 * 2 + j % 2, QUEUES, active))
    for g, name in enumerate(groups):
        keys.append(Key(f"%RETRY%{name}", g, 1, int(g < RETRY * size.scale)))
    members = _members(keys, rng)
    shape = Shape(size, brokers, groups, strategies, keys, members)
    _set_entries(shape, rng)
    return shape


def _members(keys: list[Key], rng: np.random.Generator) -> dict[int, list[Client]]:
    members: dict[int, list[Client]] = {}
    for g in sorted({key.group for key in keys if key.active}):
        made = []
        for c in range(MEMBERS[g % 4]):
            nanos = int(rng.integers(10**12, 10**13))
            older = c == 0 and g % OLDER_EVERY == 2
            since = -int(rng.integers(10**6, 10**8)) if older else int(rng.integers(6_000, 12_000))
            made.append(
                Client(f"10.{20 + g // 200}.{g % 200}.{c + 1}@{int(rng.integers(1000, 30000))}#{nanos}", g, since)
            )
        members[g] = sorted(made, key=lambda client: client.client_id)
    return members


def _set_entries(shape: Shape, rng: np.random.Generator) -> None:
    places = [
        (j, b, q) for j, key in enumerate(shape.keys) for b in range(len(shape.brokers)) for q in range(key.active)
    ]
    order = rng.permutation(len(places))  # by this order their pulls are spread over an interval
    shape.entry_key, shape.entry_broker, shape.entry_queue = np.array(places, np.int64)[order].T
    owner = {
        (j, broker, queue): client
        for j, key in enumerate(shape.keys)
        if key.active
        for client in shape.members[key.group]
        for broker, queue in share_of(shape, key, client.client_id, [c.client_id for c in shape.members[key.group]])
    }
    shape.entry_client = [
        owner[(int(j), shape.brokers[b].name, int(q))]
        for j, b, q in zip(shape.entry_key, shape.entry_broker, shape.entry_queue, strict=True)
    ]


def share_of(shape: Shape, key: Key, client_id: str, cid_all: list[str]) -> list[tuple[str, int]]:
    """What AllocateMessageQueueAveragely or ...AveragelyByCircle gives the client."""
    mq_all, index = shape.mq_all(key), cid_all.index(client_id)
    if shape.strategies[key.group] == "AVG_BY_CIRCLE":
        return mq_all[index :: len(cid_all)]
    average, mod = divmod(len(mq_all), len(cid_all))
    if average == 0:
        return mq_all[index : index + 1]
    start = index * average + min(index, mod)
    return mq_all[start : start + average + (index < mod)]
