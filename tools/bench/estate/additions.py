"""What `--full` adds to an estate: see jobs.py and giant.py; and the commits of the estate's own clients.

All is drawn from a seed of its own: the rest of the recording is what it is without it, but for the order of lines.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from . import lines
from .flow import Events, Flow
from .giant import GROUP as GIANT_GROUP
from .giant import TOPIC as GIANT_TOPIC
from .giant import Giant
from .jobs import BACK, BATCH, COMMIT_AFTER_MS, Job, long_jobs, short_jobs
from .lines import Line
from .pulls import pull_template
from .shape import QUEUES, Shape
from .sizes import PULLS
from .snapshots import SLAVE_LATER_MS

STREAMED = ("offset_commits", "produce_log", "consume_log")
Spot = dict[str, object]


class Additions:
    """All of them. ``lines`` counts what was written, by file."""

    def __init__(self, shape: Shape, events: Events, flow: Flow, seed: int) -> None:
        """``shape``, ``events`` and ``flow`` are those of the estate that they are added to."""
        rng = np.random.default_rng([seed, 1])
        self.shape, self.events, self.flow, self.size = shape, events, flow, shape.size
        # A job's few minutes are no match for a failover: jobs are where there is none.
        homes = [(b, broker) for b, broker in enumerate(shape.brokers) if b != events.failover[0]]
        self.jobs = [*long_jobs(self.size, homes, rng), *short_jobs(self.size, homes, rng)]
        others = len(shape.entry_key) * PULLS * self.size.snapshots + sum(job.pulls for job in self.jobs)
        self.giant = Giant(shape, events, others, rng)
        self._commit_texts = self._own_commits()
        self._giant_texts = [
            [pull_template(broker, owner, GIANT_GROUP, GIANT_TOPIC, q, asked, 1) for asked in (0, 1)]
            for owner, (b, q) in zip(self.giant.owners, self.giant.places, strict=True)
            for broker in [shape.brokers[b]]
        ]
        self._job_texts = [pull_template(j.broker, j.client, j.group, j.topic, 0, 0, 1) for j in self.jobs]
        made = [job.numbers(self.size) for job in self.jobs]
        owner = np.repeat(np.arange(len(made)), [len(rows) for rows in made])
        numbers = np.concatenate(made)
        order = np.argsort(numbers[:, 0], kind="stable")
        self._owner, self._numbers = owner[order], numbers[order]
        self._streamed: dict[int, dict[str, list[Line]]] = defaultdict(lambda: defaultdict(list))
        for job in self.jobs:
            for stem, found in job.streamed(self.size).items():
                for line in found:
                    self._streamed[self._bucket(line[0])][stem].append(line)
        self._job_offsets = np.stack([job.offsets(self.size) for job in self.jobs], axis=1)
        self._jobs_of = [self._of_broker(b) for b in range(self.size.names)]
        self._before = np.empty(0, np.int64)
        # Of each part of the interval: when pulls were answered, what was committed then, and what before.
        self._own: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        self.entries = self.changes = self.from_slave = self.pulls_of_queue = self.pulls_of_group = 0
        self.lines = dict.fromkeys(STREAMED, 0)
        self.rewinds: list[dict[str, object]] = []

    def _own_commits(self) -> list[str]:
        shape, places = self.shape, zip(self.shape.entry_key, self.shape.entry_queue, strict=True)
        brokers = [shape.brokers[b] for b in self.shape.entry_broker]
        made = []
        for client, broker, (j, q) in zip(shape.entry_client, brokers, places, strict=True):
            key = shape.keys[j]
            queue = lines.queue_names(key.topic, broker, int(q))
            made.append(lines.commit_template(client, shape.groups[key.group], queue, broker))
        return made

    def _of_broker(self, b: int) -> tuple[list[int], list[str]]:
        """A broker name's jobs by their numbers, and how their lines of consumerOffset.json begin."""
        here = [n for n, job in enumerate(self.jobs) if job.broker_index == b]
        return here, [f'\t\t"{self.jobs[n].topic}@{self.jobs[n].group}":{{0:' for n in here]

    def _bucket(self, ts: int) -> int:
        """The interval with whose lines a line is written."""
        nth = (ts - self.size.snapshot_ms(0)) // self.size.interval_ms
        return int(np.clip(nth, 0, self.size.snapshots - 1))

    def pulls(self, k: int, slot: int) -> tuple[list[str], np.ndarray]:
        """Lines of the pull log of a part of the interval, still without their numbers, and those numbers."""
        queue, numbers = self.giant.numbers(k)
        now = self.giant.slot_of(k, numbers[:, 0]) == slot
        queue, numbers = queue[now], numbers[now]
        asked = np.array([self.giant.is_gone(k, b) for b, _ in self.giant.places], np.int64)
        texts = [self._giant_texts[e][asked[e]] for e in queue.tolist()]
        self.from_slave += int(asked[queue].sum())
        self.pulls_of_queue += int((queue == 0).sum())
        self.pulls_of_group += len(queue)
        begin = self.size.snapshot_ms(k) + slot * self.size.interval_ms // PULLS
        end = self.size.snapshot_ms(k) + (slot + 1) * self.size.interval_ms // PULLS
        first, last = np.searchsorted(self._numbers[:, 0], [begin, end])
        texts += [self._job_texts[owner] for owner in self._owner[first:last].tolist()]
        return texts, np.concatenate([numbers, self._numbers[first:last]])

    def answered(self, slot: int, at: np.ndarray, after: np.ndarray) -> np.ndarray:
        """Note when the estate's own pulls of a part of the interval were answered, and how far they came.

        Return the offsets that were committed before: a client commits after each pull, unless a message is stalled.
        """
        before = self.flow.committed if slot == 0 else self._own[-1][1]
        committed = after.copy()
        stalled = [entry for entry, (first, last) in self.events.stalls.items() if first <= self.flow.k < last]
        committed[stalled] = before[stalled]
        self._own = [*self._own[:slot], (at, committed, before)]
        return before

    def streamed(self, k: int, committed: np.ndarray) -> dict[str, list[Line]]:
        """Lines of commits and deliveries of the k-th interval; ``committed``: the estate's own offsets at its end."""
        found = self._streamed.pop(k, {})
        made = {stem: found.get(stem, []) for stem in STREAMED}
        made["offset_commits"] += [*self._commits(k, committed), *self.giant.commits(k)]
        for stem, line in self.giant.deliveries(k):
            made[stem].append(line)
        for stem, some in made.items():
            some.sort()
            self.lines[stem] += len(some)
        return made

    def _commits(self, k: int, committed: np.ndarray) -> Iterator[Line]:
        """A commit after each pull that brought something; the last one leads to what the next snapshot shows."""
        for slot, (at, after, before) in enumerate(self._own):
            now = committed if slot == PULLS - 1 else after
            for entry in np.flatnonzero(now != before).tolist():
                if not self.giant.is_gone(k, int(self.shape.entry_broker[entry])):
                    ts = int(at[entry]) + COMMIT_AFTER_MS
                    yield ts, self._commit_texts[entry] % (ts, ts, now[entry])

    def records(self) -> dict[str, list[Line]]:
        """Lines of the small kinds, by file."""
        found: dict[str, list[Line]] = defaultdict(list)
        for stem, some in itertools.chain(self.giant.records().items(), *(job.records().items() for job in self.jobs)):
            found[stem] += some
        return found

    def topics_of(self, b: int) -> dict[str, int]:
        """Topics of a broker, each with its number of queues."""
        return {GIANT_TOPIC: QUEUES} | {job.topic: 1 for job in self.jobs if job.broker_index == b}

    def groups(self) -> dict[str, str]:
        """Group -> its topic."""
        return {GIANT_GROUP: GIANT_TOPIC} | {job.group: job.topic for job in self.jobs}

    def look(self, k: int) -> None:
        """Count what the k-th snapshots show."""
        now = np.concatenate([self.giant.offsets(k), self._job_offsets[k]])
        there = int((now >= 0).sum())
        self.entries += 2 * there
        self.changes += 2 * (int((now != self._before).sum()) if k else there)
        for place in np.flatnonzero(now < self._before).tolist() if k else ():
            self._fell(k, self.jobs[place - len(self.giant.places)], int(self._before[place]), int(now[place]))
        self._before = now

    def _fell(self, k: int, job: Job, old: int, new: int) -> None:
        for broker_id in (0, 1):
            later = broker_id * SLAVE_LATER_MS
            spot = {"broker_name": job.broker.name, "broker_id": broker_id, "topic": job.topic}
            spot |= {"consumer_group": job.group, "queue_id": 0, "previous_offset": old, "new_offset": new}
            times = {"from_ts": self.size.snapshot_ms(k - 1) + later, "to_ts": self.size.snapshot_ms(k) + later}
            self.rewinds.append({**spot, **times})

    def keys(self, k: int, b: int) -> list[str]:
        """Lines of the k-th consumerOffset.json of a broker name."""
        giant = self.giant.offsets(k)
        mine = [f"{q}:{giant[e]}" for e, (broker, q) in enumerate(self.giant.places) if broker == b]
        found = [f'\t\t"{GIANT_TOPIC}@{GIANT_GROUP}":{{{",".join(mine)}\n\t\t}}']
        here = self._jobs_of[b]
        for begins, offset in zip(here[1], self._job_offsets[k, here[0]].tolist(), strict=True):
            if offset >= 0:
                found.append(f"{begins}{offset}\n\t\t}}")
        return found

    def answers(self) -> dict[str, object]:
        """What is known of them; times in epoch ms."""
        of_group = {"consumer_group": GIANT_GROUP, "topic": GIANT_TOPIC, "pulls": self.pulls_of_group}
        b, q = self.giant.places[0]
        place = {"topic": GIANT_TOPIC, "broker_name": self.shape.brokers[b].name, "queue_id": q}
        resets = [_reset(job) for job in self.jobs if job.reset_pull is not None]
        skewed = [{"client_id": job.client.client_id, "skew_ms": job.skew_ms} for job in self.jobs if job.skew_ms]
        return {
            **self.lines,
            "giant_group": of_group,
            "giant_queue": {**place, "pulls": self.pulls_of_queue},
            "small_groups": self.size.small_groups,
            "resets": resets,
            "clock_skews": skewed,
            "orderly_groups": [job.group for job in self.jobs if job.is_orderly],
            "delivered_again": sum(BATCH * BACK for _ in resets),
        }


def _reset(job: Job) -> Spot:
    assert job.reset_pull is not None
    offset = job.base + BATCH * (job.reset_pull - BACK)
    spot = {"consumer_group": job.group, "topic": job.topic, "broker_name": job.broker.name, "queue_id": 0}
    return {**spot, "client_id": job.client.client_id, "ts": job.reset_ms, "offset": offset}
