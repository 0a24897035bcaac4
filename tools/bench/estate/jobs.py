"""Groups of one client and one queue: many that live for two minutes, and some that live almost all day.

Every ``every_ms`` a batch of messages is sent to the queue, and read a second later. The long-lived jobs have what the
rest of an estate has not: a clock that is behind, an offset that is reset, or an orderly listener with its locks.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from . import lines
from .flow import MESSAGE, log_end
from .lines import Line
from .records import heartbeat_template
from .shape import Broker, Client
from .sizes import HOUR_MS, START_MS, Size

BATCH = 4  # messages
BACK = 3  # batches that a reset goes back
GROUPS_OF_TOPIC = 10  # short-lived groups that read one topic at the same time
SHORT_PULLS, SHORT_EVERY_MS, SHORT_HEARTBEAT_MS = 10, 10_000, 30_000
SENT_BEFORE_MS, COMMIT_AFTER_MS, WRITTEN_MS = 1_000, 2_000, 1_000
RESET_BEFORE_MS = 10_000  # before the snapshot that shows it
LOCK_MS = 20_000  # ConsumeMessageOrderlyService renews so often
# Clocks ahead would show ends of queues too early to who corrects no clocks, as the peers.
SKEWS_MS = (-2_400_000, -1_500_000, -1_200_000)


@dataclass(frozen=True)
class Job:
    """One group. Times are true; the client's own records have them ``skew_ms`` later."""

    group: str
    topic: str
    broker_index: int
    broker: Broker
    client: Client
    sent_ms: int  # when its topic's first batch was sent (epoch ms)
    begin_ms: int  # when it pulls first (epoch ms)
    every_ms: int
    pulls: int
    base: int  # its queue's offset before the first batch
    skew_ms: int = 0
    is_orderly: bool = False
    reset_pull: int | None = None  # the pull that follows the reset
    reset_ms: int = 0
    produces: bool = True  # whether its lines tell what was sent to the topic: one group of a topic does
    queue: dict[str, object] = field(default_factory=dict)

    def begins(self) -> np.ndarray:
        """The offset at which each pull begins (messages)."""
        offsets = self.base + BATCH * np.arange(self.pulls)
        if self.reset_pull is not None:
            offsets[self.reset_pull] -= BATCH * BACK
        return offsets

    def place(self, size: Size, offset: np.ndarray) -> np.ndarray:
        """Where in the commit log messages begin (bytes)."""
        nth = (offset - self.base) % BATCH
        return log_end(size.interval_ms, self.born(offset) - size.snapshot_ms(0)) + nth * MESSAGE

    def born(self, offset: np.ndarray) -> np.ndarray:
        """When messages were sent (epoch ms)."""
        return self.sent_ms + (offset - self.base) // BATCH * self.every_ms

    def numbers(self, size: Size) -> np.ndarray:
        """A row for each pull, of the columns that a line of the pull log takes."""
        nth = np.arange(self.pulls)
        sent = self.begin_ms + nth * self.every_ms + self.skew_ms
        start, after = self.begins(), self.base + BATCH * (nth + 1)
        given = after - start
        places = self.place(size, start), self.place(size, after - 1)
        columns = [sent, sent + 5, 100 + nth, start, start, after, after, 0 * nth, given * MESSAGE, given]
        return np.stack([*columns, start, after - 1, *places, self.born(start)], axis=1)

    def commits(self) -> np.ndarray:
        """Rows of two columns: when an offset was committed (epoch ms, true), and the offset; in order of time."""
        nth = np.arange(self.pulls)
        times = self.begin_ms + nth * self.every_ms + COMMIT_AFTER_MS
        rows = np.stack([times, self.base + BATCH * (nth + 1)], axis=1)
        if self.reset_pull is not None:
            back = [self.reset_ms + 1_000, self.base + BATCH * (self.reset_pull - BACK)]
            rows = np.insert(rows, self.reset_pull, back, axis=0)
        return rows

    def offsets(self, size: Size) -> np.ndarray:
        """What each snapshot of the broker shows; -1 where the group is not there yet."""
        commits = self.commits()
        at = size.snapshot_ms(0) + np.arange(size.snapshots) * size.interval_ms - WRITTEN_MS
        seen = np.searchsorted(commits[:, 0], at, "right")
        return np.where(seen > 0, commits[np.maximum(seen - 1, 0), 1], -1)

    def streamed(self, size: Size) -> dict[str, list[Line]]:
        """Lines of commits and deliveries."""
        template = lines.commit_template(self.client, self.group, self.queue, self.broker)
        found: dict[str, list[Line]] = {"offset_commits": [], "consume_log": [], "produce_log": []}
        asked = self.begin_ms - 500 + self.skew_ms
        found["offset_commits"].append(lines.query(asked, self.client, self.group, self.queue, self.broker))
        for ts, offset in np.add(self.commits(), [self.skew_ms, 0]).tolist():
            found["offset_commits"].append((ts, template % (ts, ts, offset)))
        for row in self.numbers(size).tolist():
            offsets = np.arange(row[3], row[5])
            told = zip(offsets.tolist(), self.place(size, offsets).tolist(), self.born(offsets).tolist(), strict=True)
            for nth, (offset, place, born) in enumerate(told):
                done = row[1] + 20 + nth
                line = lines.consumed(done, self.client, self.group, self.queue, offset, place, born, self.is_orderly)
                found["consume_log"].append(line)
        if self.produces:
            offsets = self.base + np.arange(BATCH * self.pulls)
            told = zip(offsets.tolist(), self.place(size, offsets).tolist(), self.born(offsets).tolist(), strict=True)
            found["produce_log"] = [
                lines.produced(born, self.queue, self.broker_index, offset, place) for offset, place, born in told
            ]
        return found

    def records(self) -> dict[str, list[Line]]:
        """Lines of the small kinds, by file."""
        begin, end = self.begin_ms - 2_000, self.begin_ms + self.pulls * self.every_ms
        skew, is_short = self.skew_ms, self.every_ms == SHORT_EVERY_MS
        beat = heartbeat_template(self.client, self.group, [self.topic], self.client.since_ms, self.broker)
        every = SHORT_HEARTBEAT_MS if is_short else 2 * SHORT_HEARTBEAT_MS
        beats = [(ts, beat % (ts, ts + lines.ANSWER_MS)) for ts in range(begin + skew, end + skew, every)]
        beats.append(lines.unregister(end + skew, self.client, self.group, self.broker))
        found = {"heartbeats": beats, "routes": [self._route(begin + skew - 100)]}
        found["rebalance_log"] = [self._rebalance(begin + skew + 500)]
        if self.is_orderly:
            times = range(begin + skew + 600, end + skew, LOCK_MS)
            found["lock_requests"] = [
                lines.lock(ts, self.client, self.group, [self.queue], self.broker) for ts in times
            ]
        if self.reset_pull is not None:
            to = self.base + BATCH * (self.reset_pull - BACK)
            found["server_requests"] = [
                lines.reset(self.reset_ms, self.client, self.group, self.queue, self.broker, to)
            ]
        return found

    def _route(self, ts: int) -> Line:
        addrs = {str(i): addr for i, addr in enumerate(self.broker.addrs)}
        brokers = [{"brokerAddrs": addrs, "brokerName": self.broker.name, "cluster": "estate-cluster"}]
        counts = {"readQueueNums": 1, "topicSysFlag": 0, "writeQueueNums": 1}
        queues = [{"brokerName": self.broker.name, "perm": 6, **counts}]
        body = lines.text({"brokerDatas": brokers, "filterServerTable": {}, "queueDatas": queues})[:-1]
        line = {"ts": ts, "response_ts": ts + lines.ANSWER_MS, "client_id": self.client.client_id, "topic": self.topic}
        line |= {"namesrv_addr": None, "response_code": 0, "remark": None, "error": None}
        return ts, lines.text({**line, "body": body})

    def _rebalance(self, ts: int) -> Line:
        queues = [[self.broker.name, 0]]
        line = {"ts": ts, "client_id": self.client.client_id, "consumer_group": self.group, "topic": self.topic}
        line |= {"strategy": "AVG", "cid_all": [self.client.client_id], "mq_all": queues, "mq_divided": queues}
        return ts, lines.text({**line, "error": None})


def short_jobs(size: Size, brokers: list[tuple[int, Broker]], rng: np.random.Generator) -> list[Job]:
    """``size.small_groups`` groups; those of a topic read it at the same time."""
    made = []
    for n in range(size.small_groups):
        t = n // GROUPS_OF_TOPIC
        if n % GROUPS_OF_TOPIC == 0:
            sent = START_MS + int(rng.integers(2 * HOUR_MS, 22 * HOUR_MS))
            base = 100 * int(rng.integers(10**4))
        b, broker = brokers[t % len(brokers)]
        begin = sent + SENT_BEFORE_MS + 37 * (n % GROUPS_OF_TOPIC)
        topic, group = f"job-topic-{t:04d}", f"job-group-{n:05d}"
        client = Client(
            f"10.{100 + n // 2500}.{n // 10 % 250}.{n % 10 + 1}@{4000 + n % 977}#{n}", 0, begin - 3_000 - START_MS
        )
        timing = (sent, begin, SHORT_EVERY_MS, SHORT_PULLS, base)
        first = n % GROUPS_OF_TOPIC == 0
        queue = lines.queue_names(topic, broker, 0)
        made.append(Job(group, topic, b, broker, client, *timing, produces=first, queue=queue))
    return made


def long_jobs(size: Size, brokers: list[tuple[int, Broker]], rng: np.random.Generator) -> list[Job]:
    """Clients with clocks that are behind, groups that are reset, and orderly ones, in this order."""
    first, snapshots = size.snapshots // 10, size.snapshots * 8 // 10
    every = size.interval_ms // 2
    old = [(b, broker) for b, broker in brokers if not broker.is_5]  # 5.x answers a reset otherwise
    orderly = max(1, size.events // 2)
    made = []
    for n in range(len(SKEWS_MS) + size.events + orderly):
        skew = SKEWS_MS[n] if n < len(SKEWS_MS) else 0
        is_reset = len(SKEWS_MS) <= n < len(SKEWS_MS) + size.events
        b, broker = old[n % len(old)]
        begin = size.snapshot_ms(first) + every * 3 // 10
        topic, group = f"steady-topic-{n:02d}", f"steady-group-{n:02d}"
        client = Client(f"10.99.{n}.1@{3000 + n}#{n}", 0, begin - 3_000 - START_MS + skew)
        nth = int(rng.integers(10, snapshots - 10)) if is_reset else 0
        reset = {"reset_pull": 2 * nth, "reset_ms": size.snapshot_ms(first + nth) - RESET_BEFORE_MS}
        timing = (begin - SENT_BEFORE_MS, begin, every, 2 * snapshots, 100 * int(rng.integers(10**4)))
        more = {"queue": lines.queue_names(topic, broker, 0), "is_orderly": n >= len(SKEWS_MS) + size.events}
        made.append(Job(group, topic, b, broker, client, *timing, skew_ms=skew, **(reset if is_reset else {}), **more))
    return made
