"""Nights of one group, with the findings and the owners that each must give."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from silver_moments import at

REBALANCE_S = 20
BOTH = [("b", 0), ("b", 1)]
FIRST, SECOND = BOTH[:1], BOTH[1:]
ORPHAN, DOUBLE, IDLE = "orphan", "double", "idle"
GROUP = {"consumer_group": "g"}
PULL = GROUP | {"topic": "T", "broker_name": "b", "queue_offset": 0}
Row = dict[str, Any]


def beats(client: str, start: float, end: float, model: str = "CLUSTERING", *, leaves: bool = False) -> list[Row]:
    """A heartbeat every 30 s, and a last one at the end: or the request that the client leaves."""
    data = ("g", "CONSUME_PASSIVELY", model, "CONSUME_FROM_LAST_OFFSET", False, [("T", "*", "TAG", 1)])
    row = {"client_id": client, "kind": "HEART_BEAT", "consumer_data_set": [data]}
    gone = {"client_id": client, "kind": "UNREGISTER_CLIENT", "unregistered_consumer_group": "g"}
    regular = [row | {"ts": at(s)} for s in range(int(start), int(end), 30)]
    return [*regular, (gone if leaves else row) | {"ts": at(end)}]


def took(client: str, start: int, end: int, queues: list, **differs: object) -> list[Row]:
    """What a client took of T, at its rebalances every 20 s."""
    row = {"client_id": client, "topic": "T", "strategy": "AVG", "mq_all": BOTH, "mq_divided": queues} | differs
    return [row | {"ts": at(s)} for s in range(start, end, REBALANCE_S)]


def pulls(client: str, *seconds: float, queue: int = 0) -> list[Row]:
    return [{"client_id": client, "queue_id": queue, "request_ts": at(s)} for s in seconds]


def holds(client: str, seconds: float, *queues: int, dropped: tuple[int, ...] = ()) -> Row:
    held = [("T", "b", q, q in dropped, *[None] * 7) for q in (*queues, *dropped)]
    return {"client_id": client, "ts": at(seconds), "queues": held}


def locked(client: str, seconds: float, *queues: int) -> Row:
    held = [("T", "b", q) for q in queues]
    return {
        "client_id": client,
        "ts": at(seconds),
        "broker_name": "b",
        "kind": "LOCK_BATCH_MQ",
        "mq_set": held,
        "lock_ok_mq_set": held,
    }


def unlocked(client: str, seconds: float, *queues: int) -> Row:
    row = {"client_id": client, "ts": at(seconds), "broker_name": "b", "kind": "UNLOCK_BATCH_MQ"}
    return row | {"mq_set": [("T", "b", q) for q in queues]}


@dataclass(frozen=True)
class Night:
    """What was recorded of a group's night, and what it amounts to. ``owners``: client, queue, source, from, to."""

    beats: list[Row]
    rebalances: list[Row] = field(default_factory=list)
    pulls: list[Row] = field(default_factory=list)
    assignments: list[Row] = field(default_factory=list)
    locks: list[Row] = field(default_factory=list)
    findings: tuple[str, ...] = ()
    owners: set[tuple[str, int, str, float, float]] | None = None


def pair(*, leave: bool = False) -> list[Row]:
    return beats("c1", 0, 200, leaves=leave) + beats("c2", 0, 200, leaves=leave)


def dispute(seconds: float) -> list[Row]:
    """Both take the first queue, and nobody the second, until the other does so many seconds after 60."""
    later = [row | {"ts": at(60 + seconds), "mq_divided": SECOND} for row in took("c2", 0, 1, [])]
    return took("c1", 0, 200, FIRST) + took("c2", 0, 60, SECOND) + took("c2", 60, 81, FIRST) + later


NIGHTS = {
    "nothing recorded": Night([], owners=set()),
    "a group that shares out, and stops by plan": Night(
        pair(leave=True),
        took("c1", 0, 200, FIRST) + took("c2", 0, 200, SECOND),
        owners={("c1", 0, "rebalance", 0, 200), ("c2", 1, "rebalance", 0, 200)},
    ),
    "scaled out by plan": Night(
        beats("c1", 0, 300) + beats("c2", 100, 300),
        took("c1", 0, 120, BOTH) + took("c1", 120, 300, FIRST) + took("c2", 101, 300, SECOND),
    ),
    "scaled in by plan": Night(
        beats("c1", 0, 300) + beats("c2", 0, 100, leaves=True),
        took("c1", 0, 120, FIRST) + took("c1", 120, 300, BOTH) + took("c2", 0, 100, SECOND),
        owners={("c1", 0, "rebalance", 0, 300), ("c1", 1, "rebalance", 120, 300), ("c2", 1, "rebalance", 0, 100)},
    ),
    "one left to nobody, and one held twice": Night(
        pair(), took("c1", 0, 200, FIRST) + took("c2", 0, 200, FIRST), findings=(DOUBLE, ORPHAN)
    ),
    "a dispute of 45 s": Night(pair(), dispute(45)),
    "a dispute of 46 s": Night(pair(), dispute(46), findings=(DOUBLE, ORPHAN)),
    "nobody holds the retry topic": Night(
        pair(),
        took("c1", 0, 200, BOTH) + took("c2", 0, 200, [], topic="%RETRY%g"),
        findings=(IDLE, ORPHAN),
    ),
    "idle for 40 s": Night(
        beats("c1", 0, 120) + beats("c2", 10, 50, leaves=True), took("c1", 0, 120, BOTH) + took("c2", 10, 50, [])
    ),
    "idle for longer": Night(
        beats("c1", 0, 120) + beats("c2", 10, 51, leaves=True),
        took("c1", 0, 120, BOTH) + took("c2", 10, 51, []),
        findings=(IDLE,),
    ),
    "seen in heartbeats alone": Night(beats("c1", 0, 120) + beats("c2", 0, 120), took("c1", 0, 120, BOTH)),
    "broadcasting": Night(
        beats("c1", 0, 200, "BROADCASTING") + beats("c2", 0, 200, "BROADCASTING"),
        pulls=pulls("c1", *range(0, 200, 15)) + pulls("c2", *range(0, 200, 15)),
        owners=set(),
    ),
    "a silence that nobody filled": Night(
        pair(), pulls=pulls("c1", 0, 10, 150, 199), owners={("c1", 0, "pull", 0, 199)}
    ),
    "two that pull": Night(
        pair(), pulls=pulls("c1", *range(0, 200, 15)) + pulls("c2", *range(0, 200, 15)), findings=(DOUBLE,)
    ),
    # A POP group: another group pulls the topic's queues, and its own members their retry topic alone.
    "heartbeats of a group that does not pull": Night(
        pair(),
        pulls=[
            *[row | {"consumer_group": "other"} for q in (0, 1) for row in pulls("o", *range(0, 200, 15), queue=q)],
            *[row | {"topic": "%RETRY%g"} for row in pulls("c1", *range(0, 200, 15))],
        ],
    ),
    "a queue that only another group pulls": Night(
        pair(),
        pulls=[
            *pulls("c1", *range(0, 200, 15)),
            *[row | {"consumer_group": "other"} for row in pulls("o", *range(0, 200, 15), queue=1)],
        ],
        findings=(ORPHAN,),
    ),
    "to another and back": Night(
        beats("c1", 0, 100) + beats("c2", 0, 45, leaves=True),
        pulls=pulls("c1", 0, 10, 48, 70, 100) + pulls("c2", 12, 30, 45),
    ),
    # A member's pulls count only without better evidence; they bound what the others held all the same.
    "pulls of a member that rebalances": Night(
        beats("c1", 0, 100) + beats("c2", 0, 100),
        took("c1", 0, 100, SECOND),
        pulls=pulls("c1", 0, 40, 99) + pulls("c2", 2, 50, 98) + pulls("c2", 2, 50, 98, queue=1),
        owners={("c1", 1, "rebalance", 0, 100), ("c2", 0, "pull", 50, 98), ("c2", 1, "pull", 2, 98)},
        findings=(DOUBLE, ORPHAN),
    ),
    "the client's own table counts before what it computed": Night(
        beats("c1", 0, 200),
        took("c1", 0, 200, BOTH),
        assignments=[holds("c1", 5, 0, 1), holds("c1", 100, 0, dropped=(1,)), holds("c1", 200, 0)],
        findings=(ORPHAN,),
        owners={("c1", 0, "assignment", 5, 200), ("c1", 1, "assignment", 5, 100)},
    ),
    "released, and held again": Night(
        beats("c1", 0, 200),
        assignments=[holds("c1", 0, 0, 1), holds("c1", 50, 0), holds("c1", 60, 1, 0), holds("c1", 200)],
        owners={("c1", 0, "assignment", 0, 200), ("c1", 1, "assignment", 0, 50), ("c1", 1, "assignment", 60, 200)},
    ),
    # An orderly listener that suspends a queue keeps it locked, and its offset may not move.
    "locks of an orderly listener": Night(
        beats("c1", 0, 200),
        pulls=pulls("c1", 1, 2),
        locks=[locked("c1", s, 0, 1) for s in range(0, 200, 20)],
        owners={("c1", 0, "lock", 0, 200), ("c1", 1, "lock", 0, 200)},
    ),
    # Each queue is asked for when it is taken: a queue that is not in a request is not released by it.
    "locks released and taken over": Night(
        pair(),
        locks=[
            *(locked("c1", 0, 0), locked("c1", 1, 1), unlocked("c1", 30, 1), locked("c2", 30.2, 1)),
            *[locked("c1", s, 0) for s in range(20, 200, 20)],
            *[locked("c2", s, 1) for s in range(50, 200, 20)],
            unlocked("c1", 90, 1),  # another client holds it by then
        ],
        owners={("c1", 0, "lock", 0, 200), ("c1", 1, "lock", 1, 30), ("c2", 1, "lock", 30.2, 200)},
    ),
    "a lock that is not renewed expires": Night(
        beats("c1", 0, 200),
        locks=[locked("c1", 5, 0)],
        owners={("c1", 0, "lock", 5, 65)},
    ),
}
