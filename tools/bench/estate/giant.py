"""One group that pulls as much as all others together, and a queue of it that has a fifth of all pulls."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from . import lines
from .flow import MESSAGE, Events, log_end
from .lines import Line
from .records import client_heartbeats, rebalance_line, rebalance_times, routes_of
from .shape import QUEUES, Client, Key, Shape, share_of
from .sizes import PULLS

GROUP, TOPIC = "giant-group", "giant-topic"
CLIENTS, BATCH = 4, 4
FIRST_PHASE, LAST_PHASE = 0.10, 0.95  # of an interval
COMMITS, COMMIT_AFTER_MS = 8, 1  # of a queue in an interval; after the pull's answer
SENT_BEFORE_MS = 20  # a message is sent so long before it is pulled
LOGGED_EVERY = 100  # offsets: of a busy queue the logs of deliveries hold each hundredth
QUEUE_SHARE, GROUP_SHARE = 0.2, 0.5  # of all pulls


class Giant:
    """Its queues, the giant one first; a queue's offsets rise by the same number in every interval."""

    def __init__(self, shape: Shape, events: Events, other_pulls: int, rng: np.random.Generator) -> None:
        """``other_pulls``: how many pulls all other groups make in the day."""
        size = shape.size
        self.size, self.events = size, events
        members = sorted((_client(n) for n in range(CLIENTS)), key=lambda client: client.client_id)
        key = Key(TOPIC, 0, QUEUES, QUEUES)
        self.shape = Shape(size, shape.brokers, [GROUP], ["AVG"], [key], {0: members})
        cid_all = [client.client_id for client in members]
        owner = {q: c for c in members for q in share_of(self.shape, key, c.client_id, cid_all)}
        self.places = [(b, q) for b in range(size.names) for q in range(QUEUES)]
        self.owners = [owner[shape.brokers[b].name, q] for b, q in self.places]
        self.queues = [lines.queue_names(TOPIC, shape.brokers[b], q) for b, q in self.places]
        all_pulls = other_pulls / (1 - GROUP_SHARE) / size.snapshots
        others = (GROUP_SHARE - QUEUE_SHARE) * all_pulls / (len(self.places) - 1)
        self.pulls = np.full(len(self.places), max(1, round(others)))  # of each queue in an interval
        self.pulls[0] = round(QUEUE_SHARE * all_pulls)
        self.base = 100 * rng.integers(10**4, 10**6, len(self.places))
        commit = zip(self.owners, self.queues, self.places, strict=True)
        self.commit_texts = [lines.commit_template(c, GROUP, q, shape.brokers[b]) for c, q, (b, _) in commit]

    def offsets(self, k: int) -> np.ndarray:
        """What the k-th snapshot shows of each queue; the pulls after it begin there."""
        return self.base + BATCH * self.pulls * k

    def is_gone(self, k: int, broker: int) -> bool:
        """Whether the broker's master is not in the routes while the k-th interval lasts."""
        name, left, back = self.events.failover
        return broker == name and left <= k < back

    def numbers(self, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Of each pull of the interval its queue, and the columns that a line of the pull log takes."""
        queue = np.repeat(np.arange(len(self.places)), self.pulls)
        nth = np.concatenate([np.arange(n) for n in self.pulls])
        sent = self.sent(k, queue, nth)
        start = self.offsets(k)[queue] + BATCH * nth
        after, born = start + BATCH, sent - SENT_BEFORE_MS
        place = self.place(born)
        given = np.full(len(queue), BATCH)
        committed = self.offsets(k)[queue] + BATCH * self._done(queue, nth * COMMITS // self.pulls[queue])
        opaque = 100 + (k * self.pulls[queue] + nth) * len(self.places) + queue
        columns = [sent, sent + 1, opaque, start, committed, after, after, 0 * nth, given * MESSAGE, given]
        return queue, np.stack([*columns, start, after - 1, place, place + (BATCH - 1) * MESSAGE, born], axis=1)

    def _done(self, queue: np.ndarray | int, commit: np.ndarray | int) -> np.ndarray:
        """How many of an interval's pulls of a queue come before so many commits."""
        return self.pulls[queue] * commit // COMMITS

    def commits(self, k: int) -> Iterator[Line]:
        """Commits of the interval: an offset is committed once what lies before it was pulled."""
        for place, first in enumerate(self.offsets(k).tolist()):
            if self.is_gone(k, self.places[place][0]):
                continue
            done = np.unique(self._done(place, np.arange(1, COMMITS + 1)))
            done = done[done > 0]
            sent = self.sent(k, np.full(len(done), place), done - 1)
            for ts, pulls in zip((sent + COMMIT_AFTER_MS).tolist(), done.tolist(), strict=True):
                yield ts, self.commit_texts[place] % (ts, ts, first + BATCH * pulls)

    def sent(self, k: int, queue: np.ndarray, nth: np.ndarray) -> np.ndarray:
        """When pulls are sent (epoch ms)."""
        share = (nth + queue / len(self.places)) / self.pulls[queue]
        phase = FIRST_PHASE + (LAST_PHASE - FIRST_PHASE) * share
        return self.size.snapshot_ms(k) + (phase * self.size.interval_ms).astype(np.int64)

    def place(self, born: np.ndarray) -> np.ndarray:
        """Where in its broker's commit log a batch begins (bytes)."""
        return log_end(self.size.interval_ms, born - self.size.snapshot_ms(0))

    def slot_of(self, k: int, sent: np.ndarray) -> np.ndarray:
        """In which part of the interval pulls are sent."""
        return (sent - self.size.snapshot_ms(k)) * PULLS // self.size.interval_ms

    def deliveries(self, k: int) -> Iterator[tuple[str, Line]]:
        """Lines of the logs of producers and consumers, with the name of their file."""
        for place, first in enumerate(self.offsets(k).tolist()):
            b, _ = self.places[place]
            offsets = np.arange(
                -(-first // LOGGED_EVERY) * LOGGED_EVERY, first + BATCH * self.pulls[place], LOGGED_EVERY
            )
            nth, beside = np.divmod(offsets - first, BATCH)
            sent = self.sent(k, np.full(len(nth), place), nth)
            born = sent - SENT_BEFORE_MS
            at = self.place(born) + beside * MESSAGE
            for one in zip(offsets.tolist(), sent.tolist(), born.tolist(), at.tolist(), strict=True):
                offset, asked, made, where = one
                yield "produce_log", lines.produced(made, self.queues[place], b, offset, where)
                read = lines.consumed(
                    asked + 10, self.owners[place], GROUP, self.queues[place], offset, where, made, False
                )
                yield "consume_log", read

    def records(self) -> dict[str, list[Line]]:
        """Lines of the small kinds, by file."""
        (key,), members = self.shape.keys, self.shape.members[0]
        cid_all = [client.client_id for client in members]
        rebalances = []
        for client in members:
            rest = rebalance_line(self.shape, key, client, cid_all, 0)
            rebalances += [(ts, f'{{"ts":{ts},{rest}') for ts in rebalance_times(client)]
        beats = list(client_heartbeats(self.shape))
        return {"heartbeats": beats, "routes": list(routes_of(self.shape, self.events)), "rebalance_log": rebalances}


def _client(nth: int) -> Client:
    return Client(f"10.98.0.{nth + 1}@{2000 + nth}#{nth}", 0, 6_000 + 500 * nth)
