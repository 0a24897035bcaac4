"""Who held which queue, and what is told of it: long disputes and idle members, never seconds of disagreement."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from mqreplay.replay.findings.ownership import ownership_findings
from mqreplay.replay.membership import membership, signs, unshared_groups
from mqreplay.replay.ownership import disputes, due_queues, idle_members, subscribers
from mqreplay.replay.queue_owner import owned_from, queue_owner
from silver_moments import at

PULL_GAP_S, REBALANCE_S, DISPUTE_S, IDLE_S, GAP_S = 35, 20, 45, 40, 120
BOTH = [("b", 0), ("b", 1)]
FIRST, SECOND = BOTH[:1], BOTH[1:]
ORPHAN, DOUBLE, IDLE = ("orphan_queue", "warning"), ("double_owned_queue", "warning"), ("idle_consumer", "info")


def beats(client: str, start: float, end: float, model: str = "CLUSTERING", *, leaves: bool = False) -> list[dict]:
    """A heartbeat every 30 s, and a last one at the end: or the word that the client leaves."""
    data = ("g", "CONSUME_PASSIVELY", model, "CONSUME_FROM_LAST_OFFSET", False, [("T", "*", "TAG", 1)])
    row = {"client_id": client, "kind": "HEART_BEAT", "consumer_data_set": [data]}
    gone = {"client_id": client, "kind": "UNREGISTER_CLIENT", "unregistered_consumer_group": "g"}
    told = [row | {"ts": at(s)} for s in range(int(start), int(end), 30)]
    return [*told, (gone if leaves else row) | {"ts": at(end)}]


def took(client: str, start: int, end: int, queues: list, **differs: object) -> list[dict]:
    """What a client took of T, at its rebalances every 20 s."""
    row = {"client_id": client, "topic": "T", "strategy": "AVG", "mq_all": BOTH, "mq_divided": queues} | differs
    return [row | {"ts": at(s)} for s in range(start, end, REBALANCE_S)]


def pulls(client: str, *seconds: float, queue: int = 0) -> list[dict]:
    return [{"client_id": client, "queue_id": queue, "request_ts": at(s)} for s in seconds]


def holds(client: str, seconds: float, *queues: int, dropped: tuple[int, ...] = ()) -> dict:
    held = [("T", "b", q, q in dropped, *[None] * 7) for q in (*queues, *dropped)]
    return {"client_id": client, "ts": at(seconds), "queues": held}


def locked(client: str, seconds: float, *queues: int) -> dict:
    held = [("T", "b", q) for q in queues]
    return {
        "client_id": client,
        "ts": at(seconds),
        "broker_name": "b",
        "kind": "LOCK_BATCH_MQ",
        "mq_set": held,
        "lock_ok_mq_set": held,
    }


def unlocked(client: str, seconds: float, *queues: int) -> dict:
    row = {"client_id": client, "ts": at(seconds), "broker_name": "b", "kind": "UNLOCK_BATCH_MQ"}
    return row | {"mq_set": [("T", "b", q) for q in queues]}


@dataclass(frozen=True)
class Told:
    """What was recorded of a group's night, and what is told of it. ``owners``: client, queue, source -> from, to."""

    beats: list[dict]
    rebalances: list[dict] = field(default_factory=list)
    pulls: list[dict] = field(default_factory=list)
    assignments: list[dict] = field(default_factory=list)
    locks: list[dict] = field(default_factory=list)
    findings: tuple[tuple[str, str], ...] = ()
    owners: dict[tuple[str, int, str], tuple[float, float]] | None = None


def pair(*, leave: bool = False) -> list[dict]:
    return beats("c1", 0, 200, leaves=leave) + beats("c2", 0, 200, leaves=leave)


def dispute(seconds: float) -> list[dict]:
    """Both take the first queue, and nobody the second, until the other does so many seconds after 60."""
    later = [row | {"ts": at(60 + seconds), "mq_divided": SECOND} for row in took("c2", 0, 1, [])]
    return took("c1", 0, 200, FIRST) + took("c2", 0, 60, SECOND) + took("c2", 60, 81, FIRST) + later


NIGHTS = {
    "a group that shares out, and stops by plan": Told(
        pair(leave=True),
        took("c1", 0, 200, FIRST) + took("c2", 0, 200, SECOND),
        owners={("c1", 0, "rebalance"): (0, 200), ("c2", 1, "rebalance"): (0, 200)},
    ),
    "scaled out by plan": Told(
        beats("c1", 0, 300) + beats("c2", 100, 300),
        took("c1", 0, 120, BOTH) + took("c1", 120, 300, FIRST) + took("c2", 101, 300, SECOND),
    ),
    "scaled in by plan": Told(
        beats("c1", 0, 300) + beats("c2", 0, 100, leaves=True),
        took("c1", 0, 120, FIRST) + took("c1", 120, 300, BOTH) + took("c2", 0, 100, SECOND),
        owners={("c1", 0, "rebalance"): (0, 300), ("c1", 1, "rebalance"): (120, 300), ("c2", 1, "rebalance"): (0, 100)},
    ),
    "one left to nobody, and one held twice": Told(
        pair(), took("c1", 0, 200, FIRST) + took("c2", 0, 200, FIRST), findings=(DOUBLE, ORPHAN)
    ),
    "a dispute of 45 s": Told(pair(), dispute(45)),
    "a dispute of 46 s": Told(pair(), dispute(46), findings=(DOUBLE, ORPHAN)),
    "nobody holds the retry topic": Told(
        pair(),
        took("c1", 0, 200, BOTH) + took("c2", 0, 200, [], topic="%RETRY%g"),
        findings=(("idle_consumer", "info"), ("orphan_queue", "info")),
    ),
    "idle for 40 s": Told(
        beats("c1", 0, 120) + beats("c2", 10, 50, leaves=True), took("c1", 0, 120, BOTH) + took("c2", 10, 50, [])
    ),
    "idle for longer": Told(
        beats("c1", 0, 120) + beats("c2", 10, 51, leaves=True),
        took("c1", 0, 120, BOTH) + took("c2", 10, 51, []),
        findings=(IDLE,),
    ),
    "seen in heartbeats alone": Told(beats("c1", 0, 120) + beats("c2", 0, 120), took("c1", 0, 120, BOTH)),
    "broadcasting": Told(
        beats("c1", 0, 200, "BROADCASTING") + beats("c2", 0, 200, "BROADCASTING"),
        pulls=pulls("c1", *range(0, 200, 15)) + pulls("c2", *range(0, 200, 15)),
        owners={},
    ),
    "a silence that nobody filled": Told(
        pair(), pulls=pulls("c1", 0, 10, 150, 199), owners={("c1", 0, "pull"): (0, 199)}
    ),
    "two that pull": Told(
        pair(), pulls=pulls("c1", *range(0, 200, 15)) + pulls("c2", *range(0, 200, 15)), findings=(DOUBLE,)
    ),
    "to another and back": Told(
        beats("c1", 0, 100) + beats("c2", 0, 45, leaves=True),
        pulls=pulls("c1", 0, 10, 48, 70, 100) + pulls("c2", 12, 30, 45),
    ),
    "the client's own table counts before what it computed": Told(
        beats("c1", 0, 200),
        took("c1", 0, 200, BOTH),
        assignments=[holds("c1", 5, 0, 1), holds("c1", 100, 0, dropped=(1,)), holds("c1", 200, 0)],
        findings=(ORPHAN,),
        owners={("c1", 0, "assignment"): (5, 200), ("c1", 1, "assignment"): (5, 100)},
    ),
    # An orderly listener that suspends a queue keeps it locked, and its offset may stand.
    "locks of an orderly listener": Told(
        beats("c1", 0, 200),
        pulls=pulls("c1", 1, 2),
        locks=[locked("c1", s, 0, 1) for s in range(0, 200, 20)],
        owners={("c1", 0, "lock"): (0, 200), ("c1", 1, "lock"): (0, 200)},
    ),
    # Each queue is asked for when it is taken: that one of them is not in a request does not give it back.
    "locks given back and taken over": Told(
        pair(),
        locks=[
            *(locked("c1", 0, 0), locked("c1", 1, 1), unlocked("c1", 30, 1), locked("c2", 30.2, 1)),
            *[locked("c1", s, 0) for s in range(20, 200, 20)],
            *[locked("c2", s, 1) for s in range(50, 200, 20)],
            unlocked("c1", 90, 1),  # of what is another's by then
        ],
        owners={("c1", 0, "lock"): (0, 200), ("c1", 1, "lock"): (1, 30), ("c2", 1, "lock"): (30.2, 200)},
    ),
    "a lock that is not renewed runs out": Told(
        beats("c1", 0, 200),
        locks=[locked("c1", 5, 0)],
        owners={("c1", 0, "lock"): (5, 65)},
    ),
}


@pytest.fixture(scope="module")
def judged(rows):
    """All nights at once, each a cluster of its own: {night: (findings, owners)}."""

    def of(table: str, base: dict, part: str):
        return rows(
            table, base, [row | {"cluster": name} for name, night in NIGHTS.items() for row in getattr(night, part)]
        )

    group, none = {"consumer_group": "g"}, rows("silver.offset_commit", {}, [])
    heartbeat = of("silver.heartbeat", {"broker_name": "b", "broker_id": 0, "response_code": 0}, "beats")
    rebalance, assignment = of("silver.rebalance", group, "rebalances"), of("silver.assignment", group, "assignments")
    pull = of("silver.pull", group | {"topic": "T", "broker_name": "b", "queue_offset": 0}, "pulls")
    lock = of("silver.lock", group, "locks")
    members = membership(signs(heartbeat, rebalance, assignment, pull, none), 90).localCheckpoint()
    everyone = unshared_groups(heartbeat, rebalance, assignment, pull, none).localCheckpoint()
    owners = queue_owner(assignment, rebalance, lock, pull, members, everyone, PULL_GAP_S).localCheckpoint()
    subscribed = subscribers(members, heartbeat, rebalance, owners).localCheckpoint()
    due = due_queues(rebalance, pull, subscribed, everyone, REBALANCE_S)
    idle = idle_members(subscribed, owners, everyone)
    found = ownership_findings(disputes(owners, due), idle, DISPUTE_S, IDLE_S, GAP_S)
    nights: dict[str, tuple[list, dict]] = {name: ([], {}) for name in NIGHTS}
    for row in found.collect():
        nights[row.cluster][0].append(row)
    for row in owners.collect():
        span = tuple((ts - at(0).replace(tzinfo=None)).total_seconds() for ts in (row.from_ts, row.to_ts))
        nights[row.cluster][1][row.client_id, row.queue_id, row.source] = span
    return nights


@pytest.mark.parametrize("night", NIGHTS)
def test_what_is_told(judged, night):
    found, owners = judged[night]
    assert sorted((row.kind, row.severity) for row in found) == list(NIGHTS[night].findings)
    if NIGHTS[night].owners is not None:
        assert owners == NIGHTS[night].owners


def test_how_long_and_how_many(judged):
    double, orphan = sorted(judged["one left to nobody, and one held twice"][0], key=lambda row: row.kind)
    assert "1 queue of T was held by up to 2 clients at once, for 200 queue-seconds" in double.summary
    assert "left 1 queue of T to nobody: 200 queue-seconds" in orphan.summary
    assert (double.queue_id, orphan.queue_id, orphan.broker_name) == (0, 1, "b")
    assert [e.table_name for e in double.evidence] == ["gold.queue_owner"]
    assert [e.table_name for e in orphan.evidence] == ["silver.rebalance"], "no row of queue_owner tells of nobody"


def test_what_was_held_before_midnight_begins_with_the_day(rows):
    base = {"consumer_group": "g", "topic": "T", "broker_name": "b", "queue_id": 0, "source": "rebalance"}
    spans = {"over before": (0, 50), "at its end": (0, 100), "over it": (50, 150), "after it": (120, 150)}
    held = [{"client_id": name, "from_ts": at(since), "to_ts": at(until)} for name, (since, until) in spans.items()]
    cut = owned_from(rows("gold.queue_owner", base, held), at(100)).collect()
    naive = {"over it": at(100), "after it": at(120)}
    assert {r.client_id: r.from_ts for r in cut} == {name: ts.replace(tzinfo=None) for name, ts in naive.items()}
