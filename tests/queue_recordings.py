"""Made-up recordings of a few queues, by a seed: events, the silver frames they are of, and numpy's view of them."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable
from random import Random
from typing import Any, NamedTuple

import polars as pl
import pyarrow as pa

from mqreplay.evidence.offsets.queue_events import (
    CHANGE_ROW,
    COMMIT_ROW,
    EVENT_COLUMNS,
    PULL_ROW,
    STATS_ROW,
    QueueEvents,
)
from silver_moments import BEGAN
from silver_rows import rows

SEEDS = range(200)
SECOND = 1_000_000  # instants are microseconds
MINUTE, HOUR = 60 * SECOND, 3600 * SECOND
STEP_S = 600  # the recording in grains of ten minutes: few instants, and hours begin at some
GRAINS = 22
STUCK_S = WINDOW_S = 2 * STEP_S
START = int(BEGAN.timestamp()) * SECOND  # a full hour
# Each differs from the first in one part of its name.
QUEUES = (("broker-a", "Orders", 0), ("broker-a", "Orders", 1), ("broker-a", "Refunds", 0), ("broker-b", "Orders", 0))
GROUPS = ("billing", "shipping")
CLIENTS = ("c2", "c1", "c3")

ARROW = {
    "string": pa.string(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "timestamp": pa.timestamp("us", "UTC"),
    "boolean": pa.bool_(),
}
EVENTS = pa.schema(
    (field.name, pa.string() if pa.types.is_large_string(field.type) else field.type)
    for field in pl.DataFrame(schema=EVENT_COLUMNS).to_arrow().schema
)

Row = tuple[Any, ...]
Queue = tuple[str, str, int]


class Event(NamedTuple):
    """A row of queue_events, its instants in microseconds."""

    what: int
    broker_name: str
    topic: str
    queue_id: int
    consumer_group: str | None = None
    client_id: str | None = None
    broker_id: int | None = None
    at: int = 0
    also_at: int | None = None
    committed: int | None = None
    previous_offset: int | None = None
    queue_offset: int | None = None
    next_begin_offset: int | None = None
    min_offset: int | None = None
    max_offset: int | None = None
    opaque: int | None = None
    counts: bool | None = None

    @property
    def queue(self) -> Queue:
        return self.broker_name, self.topic, self.queue_id

    @property
    def saved_by_master(self) -> bool:
        return self.what == CHANGE_ROW and self.broker_id == 0


class Recording:
    """Events of a few queues, groups, clients and brokers.

    Where a rule leaves open which of several rows at one instant counts, there is one such row; ``open_ties`` lets
    them happen, for rules that do not ask.
    """

    def __init__(self, seed: int, open_ties: bool) -> None:
        self.random = Random(seed)
        self.open_ties = open_ties
        self.events: list[Event] = []
        self.taken: set[Row] = set()
        for kind in (self._saved, self._sent, self._pulled, self._looked_at):
            if self.random.random() < 0.9:  # some recordings lack a kind
                kind()
        self._tell_what_counts()
        self.random.shuffle(self.events)

    def _instant(self) -> int:
        # Less than a millisecond apart, less than a second apart, or at the same instant.
        grain = self.random.randrange(GRAINS) * STEP_S * SECOND
        return START + grain + self.random.choice([0, 0, 0, 1, 999, 1_000, 400_000])

    def _maybe(self, value: int, missing: float = 0.2, least: int = 0) -> int | None:
        return None if self.random.random() < missing else max(value, least)

    def _is_new(self, *what: Any) -> bool:
        fresh = what not in self.taken
        self.taken.add(what)
        return fresh

    def _saved(self) -> None:
        for queue, group, broker_id in itertools.product(QUEUES, GROUPS, (0, 1)):
            if self.random.random() < 0.4:
                continue
            # Most files only ever show an offset that rises: else every queue were suspect for that alone.
            steps, vanishing = self.random.choice([([0, 1, 1, 2], 0.0)] * 2 + [([-2, 0, 1, 1, 2, 3], 0.1)])
            offset, instants = self._maybe(self.random.randrange(-1, 6), least=-1), {self._instant() for _ in range(5)}
            for at in sorted(instants):
                new = self._maybe((offset or 0) + self.random.choice(steps), vanishing, least=-1)
                copied = at - self.random.choice([1, 1, 2, 4]) * STEP_S * SECOND - self.random.choice([0, 0, 1, 2_000])
                self.events.append(
                    Event(
                        *(CHANGE_ROW, *queue, group),
                        broker_id=broker_id,
                        at=at,
                        also_at=self._maybe(copied, 0.1),
                        committed=new,
                        previous_offset=offset,
                    )
                )
                missed = vanishing and self.random.random() < 0.2  # a file between was not copied
                offset = self._maybe(self.random.randrange(8)) if missed else new

    def _sent(self) -> None:
        for group in GROUPS:
            # None were recorded, each reached a broker, some did, or none did.
            failing = self.random.choice([None, None, 0.0, 0.4, 1.0])
            for queue, client in itertools.product(QUEUES, CLIENTS):
                for _ in range(0 if failing is None else self.random.randrange(4)):
                    reached = self.random.random() >= (failing or 0)
                    at, offset = self._instant(), self.random.randrange(6)
                    self.events.append(
                        Event(COMMIT_ROW, *queue, group, client, 0, at=at, committed=offset, counts=reached)
                    )

    def _pulled(self) -> None:
        for group in GROUPS:
            carries = self.random.random() < 0.4
            for queue, client in itertools.product(QUEUES, CLIENTS):
                for _ in range(self.random.randrange(4)):
                    self._pull(queue, group, client, carries)

    def _pull(self, queue: Queue, group: str, client: str, carries: bool) -> None:
        at, opaque = self._instant(), self._maybe(self.random.randrange(1, 4), 0.1)
        if not self._is_new(queue, group, at, opaque, client if self.open_ties else ""):
            return
        begins = self._maybe(self.random.randrange(12), 0.1)
        answered = self._maybe(at + self.random.choice([0, 1, 300_000, STEP_S * SECOND]))
        given = None if answered is None else self._maybe((begins or 0) + self.random.choice([-1, 0, 0, 1, 3]), 0.1)
        high = self._maybe((begins or 0) + self.random.choice([-1, 0, 1, 3, 6]))
        broker_id = self.random.choice([0, 0, 0, 1, None])
        came = at if answered is None else answered
        if broker_id == 0 and high is not None and not self._may_tell(queue, came, high):
            broker_id = 1
        self.events.append(
            Event(
                *(PULL_ROW, *queue, group, client, broker_id, at, answered),
                committed=self._maybe(self.random.randrange(1, 6)) if carries else None,
                queue_offset=begins,
                next_begin_offset=given,
                min_offset=self._maybe(self.random.choice([0, 0, 1, 4])),
                max_offset=high,
                opaque=opaque,
            )
        )

    def _looked_at(self) -> None:
        for queue in QUEUES:
            for _ in range(self.random.randrange(8)):
                at, low = self._instant(), self._maybe(self.random.choice([0, 0, 1, 2, 4]))
                high = self._maybe(self.random.choice([0, 2, 3, 5, 8, 12]))
                if self._may_tell(queue, at, high):
                    self.events.append(Event(STATS_ROW, *queue, broker_id=0, at=at, min_offset=low, max_offset=high))

    def _may_tell(self, queue: Queue, at: int, high: int | None) -> bool:
        """Of two words on a queue's end at one instant it is open which was the last."""
        return self._is_new(queue, at, high or 0) if self.open_ties else self._is_new(queue, at)

    def _tell_what_counts(self) -> None:
        known = {e.consumer_group for e in self.events if e.what == COMMIT_ROW and e.counts}
        self.events = [
            e._replace(counts=e.broker_id == 0 and e.committed is not None and e.consumer_group not in known)
            if e.what == CHANGE_ROW
            else e
            for e in self.events
        ]


def table(events: Iterable[Event]) -> pa.Table:
    columns = list(zip(*events, strict=True)) or [()] * len(EVENTS)
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, EVENTS, strict=True)], schema=EVENTS)


class Silver(NamedTuple):
    """The silver frames that events are made from."""

    offset_change: pl.DataFrame
    offset_commit: pl.DataFrame
    pull: pl.DataFrame
    topic_stats: pl.DataFrame


def silver(events: Iterable[Event]) -> Silver:
    """Frames of which these are the events."""
    of_table: dict[int, list[dict[str, Any]]] = {what: [] for what in (CHANGE_ROW, COMMIT_ROW, PULL_ROW, STATS_ROW)}
    for e in events:
        of_table[e.what].append(_SILVER_ROWS[e.what](e))
    return Silver(
        rows("silver.offset_change", {"source_name": "s"}, of_table[CHANGE_ROW]),
        rows("silver.offset_commit", {}, of_table[COMMIT_ROW]),
        rows("silver.pull", {}, of_table[PULL_ROW]),
        rows("silver.topic_stats", {"broker_id": 0, "broker_name": "asked", "topic": "asked"}, of_table[STATS_ROW]),
    )


def _change(e: Event) -> dict[str, Any]:
    return e._asdict() | {"from_ts": e.also_at, "to_ts": e.at, "new_offset": e.committed}


def _commit(e: Event) -> dict[str, Any]:
    error = None if e.counts else "connect failed"
    return e._asdict() | {"ts": e.at, "kind": "UPDATE", "commit_offset": e.committed, "error": error}


def _pull(e: Event) -> dict[str, Any]:
    # Without the commit bit of PullSysFlag the offset is 0; a pull that was not answered may still have an offset.
    answered = e.next_begin_offset is not None
    return e._asdict() | {
        "request_ts": e.at,
        "response_ts": e.also_at,
        "commit_offset": e.at % 2 - 1 if e.committed is None else e.committed,
        "response_code": 0 if answered else None,
        "next_begin_offset": e.next_begin_offset if answered else 7,
    }


def _stats(e: Event) -> dict[str, Any]:
    return {"ts": e.at, "offsets": [(e.topic, e.broker_name, e.queue_id, e.min_offset, e.max_offset, None)]}


_SILVER_ROWS = {CHANGE_ROW: _change, COMMIT_ROW: _commit, PULL_ROW: _pull, STATS_ROW: _stats}


@functools.cache
def recorded(seed: int, open_ties: bool = False) -> tuple[list[Event], QueueEvents]:
    events = Recording(seed, open_ties).events
    return events, QueueEvents(table(events))


def copies_of(seed: int) -> dict[str, int]:
    """When each master's file was last copied; at times not told, or long before the end."""
    random = Random(seed)
    return {
        broker_name: START + random.randrange(GRAINS + 3) * STEP_S * SECOND + random.choice([0, 999])
        for broker_name in ("broker-a", "broker-b")
        if random.random() < 0.8
    }


def slaves_of(seed: int) -> dict[str, dict[int, int]]:
    """When each slave's file was last copied; of one that nobody copied nothing was told, and of some names none."""
    random = Random(seed)
    return {
        broker_name: {
            broker_id: START + random.randrange(GRAINS + 3) * STEP_S * SECOND + random.choice([0, 1_999])
            for broker_id in random.choice([(1,), (1,), (1, 2), ()])
        }
        for broker_name in ("broker-a", "broker-b")
    }
