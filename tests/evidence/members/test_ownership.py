"""Owners of queues by the best evidence, long disputes, and idle members."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqreplay.decisions.queue_owner import owned_from, pull_intervals_of_shard, queue_owner
from mqreplay.evidence.members.duplicate_clients import DUPLICATES
from mqreplay.evidence.members.membership import (
    membership,
    pull_signs_of_shard,
    pulling_groups_of_shard,
    signs,
    unregistrations,
    unshared_groups,
)
from mqreplay.evidence.members.ownership import (
    disputes,
    due_queues,
    empty_rebalances,
    idle_members,
    pulled_queues_of_shard,
    subscribers,
)
from mqreplay.evidence.members.unread_logs import unpulled_members
from queue_shards import queue_shards
from silver_moments import BEGAN, at
from silver_rows import rows

PULL_GAP_S, REBALANCE_S, DISPUTE_S, IDLE_S, SILENT_S = 35, 20, 45, 40, 90
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


class Judged(NamedTuple):
    owners: pl.DataFrame
    disputes: pl.DataFrame
    idle: pl.DataFrame


def judge(night: Night, shards: int) -> Judged:
    heartbeat = rows("silver.heartbeat", {"broker_name": "b", "broker_id": 0, "response_code": 0}, night.beats)
    rebalance = rows("silver.rebalance", GROUP, night.rebalances)
    assignment = rows("silver.assignment", GROUP, night.assignments)
    lock = rows("silver.lock", GROUP, night.locks)
    of_shards = queue_shards(rows("silver.pull", PULL, night.pulls), shards)
    gone = unregistrations(heartbeat)
    pulled = [pull_signs_of_shard(pull, gone, SILENT_S) for pull in of_shards]
    members = membership(pl.concat([signs(heartbeat, rebalance, assignment), *pulled]), SILENT_S)
    groups = pl.concat([pulling_groups_of_shard(pull) for pull in of_shards])
    unshared = unshared_groups(heartbeat, rebalance, assignment, groups, set())
    intervals = pl.concat([pull_intervals_of_shard(pull, PULL_GAP_S) for pull in of_shards])
    owners = queue_owner(assignment, rebalance, lock, intervals, members, unshared)
    subscribed = subscribers(members, heartbeat, rebalance, owners)
    queues = pl.concat([pulled_queues_of_shard(pull) for pull in of_shards])
    unwatched = unpulled_members(members, owners, assignment, rebalance, unshared)
    due = due_queues(rebalance, queues, subscribed, owners, unshared, REBALANCE_S, unwatched=unwatched)
    idle = idle_members(subscribed, owners, unshared, rebalance, REBALANCE_S, unwatched)
    return Judged(owners, disputes(owners, due), idle)


def seconds(frame: pl.DataFrame) -> pl.Series:
    return (frame["to_ts"] - frame["from_ts"]).dt.total_milliseconds() / 1000


def span(since: Any, until: Any) -> tuple[float, float]:
    return (since - BEGAN).total_seconds(), (until - BEGAN).total_seconds()


@pytest.fixture(scope="module", params=[1, 7], ids=["one shard", "seven shards"])
def judged(request) -> dict[str, Judged]:
    return {name: judge(night, request.param) for name, night in NIGHTS.items()}


@pytest.mark.parametrize("night", NIGHTS)
def test_long_disputes_and_idle_members(judged, night):
    found = judged[night]
    long = found.disputes.filter(seconds(found.disputes) > DISPUTE_S)
    topics = {
        (ORPHAN if owners == 0 else DOUBLE, topic) for owners, topic in long.select("owners", "topic").iter_rows()
    }
    idle = found.idle.filter(seconds(found.idle) > IDLE_S)
    assert sorted([*(kind for kind, _ in topics), *[IDLE] * len(idle)]) == list(NIGHTS[night].findings)


@pytest.mark.parametrize("night", [name for name, night in NIGHTS.items() if night.owners is not None])
def test_owners(judged, night):
    owners = judged[night].owners
    held = ["client_id", "queue_id", "source", "from_ts", "to_ts"]
    found = [(*key, *span(since, until)) for *key, since, until in owners.select(held).iter_rows()]
    assert sorted(found) == sorted(NIGHTS[night].owners or ())
    assert owners.schema == rows("gold.queue_owner", {}, []).schema
    assert set(owners["day"]) <= {BEGAN.date()}


def test_how_long_and_how_many(judged):
    found = judged["one left to nobody, and one held twice"].disputes.sort("owners")
    assert found.select("queue_id", "owners").rows() == [(1, 0), (0, 2)]
    assert [span(*ts) for ts in found.select("from_ts", "to_ts").iter_rows()] == [(0, 200), (0, 200)]


def test_a_queue_held_twice_by_evidence_of_pulls(judged):
    (row,) = judged["two that pull"].disputes.filter(pl.col("owners") == 2).to_dicts()
    assert (row["queue_id"], span(row["from_ts"], row["to_ts"])) == (0, (0, 195))


def test_each_process_of_a_client_id_holds_its_queues(judged):
    owners = judged["a group that shares out, and stops by plan"].owners
    due = owners.select("consumer_group", "topic", "broker_name", "queue_id", "from_ts", "to_ts")
    twice = {"consumer_group": "g", "from_ts": at(50), "to_ts": at(120), "processes": 2, "addresses": [], "tables": []}
    rows_of = [twice | {"client_id": "c1", "certain": True}, twice | {"client_id": "c2", "certain": False}]
    found = disputes(owners, due, pl.DataFrame(rows_of, DUPLICATES))
    assert found.select("queue_id", "owners").rows() == [(0, 2)]
    assert span(*found.select("from_ts", "to_ts").row(0)) == (50, 120)


@pytest.mark.parametrize("released", [101, 112])
def test_the_rebalance_that_took_the_last_queue_counts(released):
    # A client releases its queue some time after it: two rebalances gave it nothing before it left.
    night = Night(
        beats("c1", 0, 140) + beats("c2", 0, 140, leaves=True),
        took("c1", 0, 140, BOTH) + took("c2", 0, 100, SECOND) + took("c2", 100, 140, []),
        assignments=[holds("c2", 0, 1), holds("c2", released)],
    )
    found = judge(night, 1).idle.filter(client_id="c2")
    assert [(*span(since, until), rebalances) for *_, since, until, rebalances in found.rows()] == [(released, 140, 2)]


def test_what_was_held_before_midnight_begins_with_the_day():
    base = {"consumer_group": "g", "topic": "T", "broker_name": "b", "queue_id": 0, "source": "rebalance"}
    spans = {"over before": (0, 50), "at its end": (0, 100), "over it": (50, 150), "after it": (120, 150)}
    held = [{"client_id": name, "from_ts": at(since), "to_ts": at(until)} for name, (since, until) in spans.items()]
    cut = owned_from(rows("gold.queue_owner", base, held), at(100))
    assert dict(cut.select("client_id", "from_ts").iter_rows()) == {"over it": at(100), "after it": at(120)}


def test_the_day_of_an_interval_that_is_cut_is_the_day_of_its_new_start():
    base = {"consumer_group": "g", "topic": "T", "broker_name": "b", "queue_id": 0, "source": "rebalance"}
    night = rows("gold.queue_owner", base, [{"client_id": "c", "from_ts": at(0), "to_ts": at(200_000)}])
    (row,) = owned_from(night, at(100_000)).to_dicts()
    assert row["day"] == at(100_000).date() != BEGAN.date()


@given(
    st.lists(st.tuples(st.integers(0, 300), st.sampled_from(["c1", "c2"]), st.integers(0, 5)), max_size=40),
    st.sampled_from([2, 7]),
    st.randoms(use_true_random=False),
)
def test_intervals_of_pulls_depend_neither_on_shards_nor_on_the_order_of_rows(moments, shards, random):
    rows_of = [pulls(client, second, queue=queue)[0] for second, client, queue in moments]
    shuffled = random.sample(rows_of, len(rows_of))
    whole = pull_intervals_of_shard(rows("silver.pull", PULL, rows_of), PULL_GAP_S)
    of_shards = queue_shards(rows("silver.pull", PULL, shuffled), shards)
    parts = pl.concat([pull_intervals_of_shard(pull, PULL_GAP_S) for pull in of_shards])
    assert parts.sort(parts.columns).equals(whole.sort(whole.columns))
    queues = pl.concat([pulled_queues_of_shard(pull) for pull in of_shards])
    assert len(queues) == len({queue for _, _, queue in moments})


def test_an_interval_ends_with_the_last_answer():
    answered = pulls("c1", 0, 10)
    answered[0]["response_ts"] = at(15)
    (row,) = pull_intervals_of_shard(rows("silver.pull", PULL, answered), PULL_GAP_S).to_dicts()
    assert span(row["from_ts"], row["to_ts"]) == (0, 15)
    (row,) = pulled_queues_of_shard(rows("silver.pull", PULL, answered)).to_dicts()
    assert span(row["first_ts"], row["last_ts"]) == (0, 15)


def test_rebalances_of_an_idle_member_are_counted(judged):
    counts = [judged[name].idle.filter(client_id="c2")["rebalances"].to_list() for name in NIGHTS if "idle for" in name]
    assert counts == [[2], [3]]


SEEN = {"client_id": "c2", "topic": "T", "mq_all": BOTH, "cid_all": ["c1", "c2"], "mq_divided": []}


@pytest.mark.parametrize(
    ("differs", "seconds_of"),
    [
        ([{"ts": at(s)} for s in (0, 0.5, 20, 40, 41, 60)], [0.5, 20, 41, 60]),
        # The lock of an orderly listener is still held by another client.
        ([{"ts": at(0)}, {"ts": at(20), "mq_divided": FIRST}, {"ts": at(40)}], [0, 40]),
        ([{"ts": at(0), "cid_all": ["c1"]}, {"ts": at(0.2)}], [0.2]),
        ([{"ts": at(0), "cid_all": ["c1"]}], []),
        ([{"ts": at(0), "mq_all": []}], []),
        ([{"ts": at(0), "error": "no route"}], []),
        ([{"ts": at(0), "topic": "%RETRY%g"}], []),
        # A list of members that was not recorded.
        ([{"ts": at(0), "cid_all": None}], [0]),
    ],
)
def test_rebalances_that_give_nothing(differs, seconds_of):
    found = empty_rebalances(rows("silver.rebalance", GROUP | SEEN, differs), REBALANCE_S)
    assert found["ts"].sort().to_list() == [at(s) for s in seconds_of]
