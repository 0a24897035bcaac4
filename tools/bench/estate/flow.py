"""What moves: messages produced and consumed, interval by interval, and the events that break the run of offsets.

A group reads what was produced ``delay`` intervals ago. A rewind is a delay that grows, a jump one that shrinks, a
stall an offset that stands while its pulls go on (one message does not end). So places in the commit log, queue ends
and offsets agree with each other, as the replay expects of a real estate.

Each pull takes all messages of its slot. A broker gives fewer messages from disk than from memory, so fewer are sent to
the queues that some group reads from disk.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from mqreplay.core.slave_suggestion import (
    SLAVE,
    can_be_batch,
    check_in_disk_by_commit_offset,
    effective_ratio,
    memory_threshold,
)

from .shape import Shape
from .sizes import PULLS

PHYSICAL_MEMORY = 32 << 30
MEMORY_RATIO = 40
MEMORY = memory_threshold(PHYSICAL_MEMORY, MEMORY_RATIO)  # bytes: farther behind, and a master suggests its slave
PER_INTERVAL = 8  # a commit log grows by an eighth of that in an interval
SLOW_DELAY, JUMP_FROM, JUMP_TO, REWIND_BY = 24, 4, 1, 3  # intervals
MOST_DELAY = SLOW_DELAY + REWIND_BY
MESSAGE = 600  # bytes stored of a message
MAX_MSG_NUMS = 32  # messages that a pull asks for
LOG_BEGAN = 1 << 42  # bytes in every commit log when the recording began


@dataclass
class Events:
    """What happens to entries, by their place in the shape's entries; idle ones are counted on from there."""

    delays: dict[int, list[tuple[int, int]]] = field(default_factory=dict)  # interval -> (entry, delay from then on)
    stalls: dict[int, tuple[int, int]] = field(default_factory=dict)  # entry -> first interval, interval it ends
    rewinds: dict[int, int] = field(default_factory=dict)  # entry -> interval
    jumps: dict[int, int] = field(default_factory=dict)
    idle: list[tuple[int, int, int]] = field(default_factory=list)  # key, broker, queue of an idle entry that rewinds
    idle_interval: list[int] = field(default_factory=list)
    differ: set[tuple[int, int]] = field(default_factory=set)  # interval, entry: the first pull goes to the slave
    doubles: dict[int, tuple[int, int]] = field(default_factory=dict)  # group -> while one sees itself only
    failover: tuple[int, int, int] = (0, 0, 0)  # broker, interval its master left the route, interval it came back


class Flow:
    """Offsets of one interval after another: `step` moves on."""

    def __init__(self, shape: Shape, events: Events, rng: np.random.Generator) -> None:
        self.shape, self.events = shape, events
        topics = sorted({key.topic for key in shape.keys if key.active})
        place = {topic: t for t, topic in enumerate(topics)}
        widest, brokers = 8, len(shape.brokers)
        of_key = np.array([place.get(key.topic, 0) for key in shape.keys])
        self.queue_of = (of_key[shape.entry_key] * brokers + shape.entry_broker) * widest + shape.entry_queue
        queues = len(topics) * brokers * widest
        busy = {key.topic for key in shape.keys if shape.busy(key)}
        is_busy = np.repeat(np.array([topic in busy for topic in topics]), brokers * widest)
        # Where in the commit log, after the moment of production, a queue's messages of a slot begin (bytes).
        self.beside = (
            (np.arange(queues) // (brokers * widest) * widest + np.arange(queues) % widest) * MAX_MSG_NUMS * MESSAGE
        )
        slow = np.array([shape.slow(shape.keys[j].group) and shape.busy(shape.keys[j]) for j in shape.entry_key])
        self.delay = np.where(slow, SLOW_DELAY, 0)
        self.slow = slow
        for entry in events.jumps:
            self.delay[entry] = JUMP_FROM
        from_disk = np.zeros(queues, bool)
        from_disk[self.queue_of[self._from_disk()]] = True
        most = np.where(from_disk, most_messages(is_in_disk=True), most_messages(is_in_disk=False))
        self.first, self.head = _production(is_busy, most, shape.size.snapshots, rng)
        self.committed = np.empty(0, np.int64)
        self.start = np.empty(0, np.int64)
        self.k = -1

    def _from_disk(self) -> np.ndarray:
        """Whether an entry ever reads what its master or its slave no longer keeps in memory."""
        furthest = self.delay.copy()
        for entry, delay in (change for changes in self.events.delays.values() for change in changes):
            furthest[entry] = max(furthest[entry], delay)
        interval = self.shape.size.interval_ms
        # A slave of 5.x keeps less in memory than its master.
        ratio = min(effective_ratio(MEMORY_RATIO, SLAVE, broker.version) for broker in self.shape.brokers)

        def is_in_disk(delay: int) -> bool:
            end = int(log_end(interval, (delay + 1) * interval))  # when the interval of the read ends
            return check_in_disk_by_commit_offset(int(log_end(interval, 0)), end, PHYSICAL_MEMORY, ratio)

        return np.isin(furthest, [delay for delay in np.unique(furthest).tolist() if is_in_disk(delay)])

    def step(self) -> None:
        """Moves to the next interval: ``start`` is where its pulls begin, ``committed`` what the snapshot shows."""
        self.k += 1
        for entry, delay in self.events.delays.get(self.k, ()):
            self.delay[entry] = delay
        self.made = self.k - self.delay + MOST_DELAY  # the interval, of those produced, that is read now
        before, self.start = self.committed, self.head[self.queue_of, self.made]
        self.committed = self.start.copy()
        for entry, (first, last) in self.events.stalls.items():
            if first < self.k < last:
                self.committed[entry] = before[entry]

    def slots(self) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """For each pull of the interval: where it begins, how many messages it is given, the queue's end."""
        given = self.first[self.queue_of, self.made].astype(np.int64)
        after = self.head[self.queue_of, self.made + 1]
        now = self.k + MOST_DELAY
        ends = self.head[self.queue_of, now] + self.first[self.queue_of, now], self.head[self.queue_of, now + 1]
        middle = self.start + given
        return [(self.start, given, ends[0]), (middle, after - middle, ends[1])]

    def reached(self) -> np.ndarray:
        """How far the interval's pulls come (messages)."""
        return self.head[self.queue_of, self.made + 1]

    def places(self, slot: int) -> np.ndarray:
        """Bytes in the commit log before the messages that each entry's pull of the slot gives."""
        return (
            log_end(self.shape.size.interval_ms, self.slot_ms(self.made - MOST_DELAY, slot))
            + self.beside[self.queue_of]
        )

    def slot_ms(self, k: np.ndarray | int, slot: int) -> np.ndarray | int:
        """When the messages of a slot were produced, in ms after the first snapshot."""
        interval = self.shape.size.interval_ms
        return k * interval + slot * interval // PULLS


def log_end(interval_ms: int, after_ms: np.ndarray | int) -> np.ndarray | int:
    """End of a commit log so many ms after the first snapshot (bytes); all brokers are written to alike."""
    return LOG_BEGAN + after_ms * (MEMORY // (PER_INTERVAL * interval_ms))


def most_messages(*, is_in_disk: bool) -> int:
    """How many messages of the estate's size a broker gives to one pull, of the number that the pull asks for."""
    possible = range(1, MAX_MSG_NUMS + 1)
    return max(n for n in possible if can_be_batch(n, n * MESSAGE, MESSAGE, is_in_disk))


def _production(
    is_busy: np.ndarray, most: np.ndarray, intervals: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Messages of an interval's first slot, and each queue's end at the start of every interval.

    ``most``: of each queue, how many messages a slot of it has at most.
    """
    queues, count = len(is_busy), intervals + MOST_DELAY + 1
    busy = rng.integers(1, MAX_MSG_NUMS + 1, (2, queues, count), np.int8)
    busy = (busy - 1) % most.astype(np.int8)[None, :, None] + 1
    quiet = np.maximum(rng.integers(-3, 6, (2, queues, count), np.int8), 0)
    first, second = np.where(is_busy[None, :, None], busy, quiet)
    head = np.zeros((queues, count + 1), np.int64)
    np.cumsum(first.astype(np.int64) + second, axis=1, out=head[:, 1:])
    head += (10 ** rng.uniform(4, 8.7, (queues, 1))).astype(np.int64)
    return first, head


def make_events(shape: Shape, rng: np.random.Generator) -> Events:
    """Events at places drawn from the seed: each entry has one at most."""
    size, events = shape.size, Events()
    calm = [
        a
        for a, (j, client) in enumerate(zip(shape.entry_key, shape.entry_client, strict=True))
        if shape.busy(shape.keys[j]) and not shape.slow(client.group) and client.since_ms > 0
    ]
    drawn = iter(rng.permutation(calm).tolist())
    low, high = size.snapshots // 10, size.snapshots * 8 // 10

    def moment() -> int:
        return int(rng.integers(low, high))

    for _ in range(size.events):
        entry, k = next(drawn), moment()
        events.rewinds[entry] = k
        events.delays.setdefault(k, []).append((entry, REWIND_BY))
        entry, k = next(drawn), moment()
        events.jumps[entry] = k
        events.delays.setdefault(k, []).append((entry, JUMP_TO))
        entry, k = next(drawn), moment()
        events.stalls[entry] = (k, k + size.snapshots // 10)
    idle = [j for j, key in enumerate(shape.keys) if not key.active]
    for j in rng.permutation(idle)[: size.events].tolist():
        queue = int(rng.integers(shape.keys[j].queues))
        events.idle.append((j, int(rng.integers(len(shape.brokers))), queue))
        events.idle_interval.append(moment())
    whole = [g for g, clients in shape.members.items() if len(clients) > 1 and all(c.since_ms > 0 for c in clients)]
    for g in rng.permutation([g for g in whole if not shape.slow(g)])[: max(1, size.events // 3)].tolist():
        first = int(rng.integers(20, 120))
        events.doubles[g] = (first, first + int(rng.integers(2, 5)))
    left = moment()
    events.failover = (1, left, left + max(2, size.snapshots // 100))
    while len(events.differ) < size.events:
        entry = next(drawn)
        if shape.entry_broker[entry] != events.failover[0]:
            events.differ.add((moment(), entry))
    return events
