"""Owners of queues by the best evidence, long disputes, and idle members."""

from __future__ import annotations

from typing import Any, NamedTuple

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqreplay.decisions.queue_owner import lock_intervals, owned_from, pull_intervals_of_shard, queue_owner
from mqreplay.evidence.members.duplicate_clients import DUPLICATES
from mqreplay.evidence.members.member_gaps import unpulled_members
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
from ownership_nights import (
    BOTH,
    DOUBLE,
    FIRST,
    GROUP,
    IDLE,
    NIGHTS,
    ORPHAN,
    PULL,
    REBALANCE_S,
    SECOND,
    Night,
    beats,
    holds,
    pulls,
    took,
)
from queue_shards import queue_shards
from silver_moments import BEGAN, at
from silver_rows import rows

PULL_GAP_S, DISPUTE_S, IDLE_S, SILENT_S = 35, 45, 40, 90


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
    owners = queue_owner(assignment, rebalance, lock_intervals(lock, members), intervals, members, unshared)
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
