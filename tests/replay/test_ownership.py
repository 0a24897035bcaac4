"""Who held which queue, and what is told of it: long disputes and idle members, never seconds of disagreement."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as F

from mqreplay.replay.findings.ownership import ownership_findings
from mqreplay.replay.membership import broadcasting_groups, membership, signs
from mqreplay.replay.ownership import disputes, due_queues, idle_members, subscribers
from mqreplay.replay.queue_owner import queue_owner
from silver_moments import at

GROUP = {"consumer_group": "g"}
ALL = [("b", 0), ("b", 1)]


def beat(client: str, seconds: float, model: str = "CLUSTERING", topic: str = "T") -> dict:
    data = ("g", "CONSUME_PASSIVELY", model, "CONSUME_FROM_LAST_OFFSET", False, [(topic, "*", "TAG", 1)])
    return {"client_id": client, "ts": at(seconds), "kind": "HEART_BEAT", "consumer_data_set": [data]}


def left(client: str, seconds: float) -> dict:
    return {"client_id": client, "ts": at(seconds), "kind": "UNREGISTER_CLIENT", "unregistered_consumer_group": "g"}


def took(client: str, seconds: float, queues: list, **differs: object) -> dict:
    row = {"client_id": client, "ts": at(seconds), "topic": "T", "strategy": "AVG", "mq_all": ALL, "mq_divided": queues}
    return row | differs


@pytest.fixture
def told(rows):
    """(owner intervals, findings) of heartbeats and rebalances, or of pulls."""

    def judge(beats, rebalances=(), pulls=()):
        heartbeat = rows("silver.heartbeat", {"broker_name": "b", "broker_id": 0, "response_code": 0}, list(beats))
        rebalance = rows("silver.rebalance", GROUP, list(rebalances))
        pull = rows("silver.pull", GROUP | {"topic": "T", "broker_name": "b", "queue_offset": 0}, list(pulls))
        none = [rows(f"silver.{name}", {}, []) for name in ("assignment", "lock", "offset_commit")]
        members = membership(signs(heartbeat, rebalance, none[0], pull, none[2]), 90)
        broadcasting = broadcasting_groups(heartbeat)
        owners = queue_owner(none[0], rebalance, none[1], pull, members, broadcasting, 35).cache()
        subscribed = subscribers(members, heartbeat, rebalance, owners)
        due = due_queues(rebalance, pull, subscribed, broadcasting, 20)
        idle = idle_members(subscribed, owners, broadcasting)
        found = ownership_findings(disputes(owners, due), idle, 45, 40, 120).collect()
        spans = owners.withColumn("s", (F.unix_millis("to_ts") - F.unix_millis("from_ts")) / 1000)
        held = {(r.client_id, r.queue_id, r.source): r.s for r in spans.collect()}
        return held, sorted((f.kind, f.severity) for f in found)

    return judge


def every(client: str, start: int, end: int, queues: list) -> list[dict]:
    return [took(client, s, queues) for s in range(start, end, 20)]


def test_a_group_that_shares_out_is_silent(told):
    beats = [beat(c, s) for c in ("c1", "c2") for s in range(0, 200, 30)] + [left("c1", 200), left("c2", 200)]
    held, found = told(beats, every("c1", 0, 200, ALL[:1]) + every("c2", 0, 200, ALL[1:]))
    assert held == {("c1", 0, "rebalance"): 200.0, ("c2", 1, "rebalance"): 200.0}
    assert found == []


def test_scaling_out_by_plan_is_silent(told):
    beats = [beat("c1", s) for s in range(0, 300, 30)] + [beat("c2", s) for s in range(100, 300, 30)]
    rebalances = every("c1", 0, 120, ALL) + every("c1", 120, 300, ALL[:1]) + every("c2", 101, 300, ALL[1:])
    assert told(beats, rebalances)[1] == []


def test_a_queue_left_to_nobody_and_one_held_twice_are_told(told):
    beats = [beat(c, s) for c in ("c1", "c2") for s in range(0, 200, 30)]
    _, found = told(beats, every("c1", 0, 200, ALL[:1]) + every("c2", 0, 200, ALL[:1]))
    assert found == [("double_owned_queue", "warning"), ("orphan_queue", "warning")]


@pytest.mark.parametrize(("until", "kinds"), [(38, []), (60, [("idle_consumer", "info")])])
def test_a_member_without_a_queue_is_idle_only_after_a_while(told, until, kinds):
    beats = [beat("c1", s) for s in range(0, 120, 30)] + [beat("c2", 10), left("c2", 10 + until)]
    assert told(beats, every("c1", 0, 120, ALL) + every("c2", 10, 10 + until, []))[1] == kinds


def test_every_client_of_a_broadcasting_group_has_all(told):
    beats = [beat(c, s, "BROADCASTING") for c in ("c1", "c2") for s in range(0, 200, 30)]
    pulls = [{"client_id": c, "queue_id": 0, "request_ts": at(s)} for c in ("c1", "c2") for s in range(0, 200, 15)]
    assert told(beats, pulls=pulls) == ({}, [])


def test_pulls_alone_tell_of_two_holders_and_of_a_silence_nobody_filled(told):
    beats = [beat(c, s) for c in ("c1", "c2") for s in range(0, 200, 30)]
    quiet = [{"client_id": "c1", "queue_id": 0, "request_ts": at(s)} for s in (0, 10, 150, 199)]
    held, found = told(beats, pulls=quiet)
    assert held == {("c1", 0, "pull"): 199.0}
    assert ("orphan_queue", "warning") not in found
    both = [{"client_id": c, "queue_id": 0, "request_ts": at(s)} for c in ("c1", "c2") for s in range(0, 200, 15)]
    assert ("double_owned_queue", "warning") in told(beats, pulls=both)[1]


def test_a_queue_that_goes_to_another_and_comes_back_was_not_held_meanwhile(told):
    beats = [beat(c, s) for c in ("c1", "c2") for s in range(0, 120, 30)]
    pulls = [("c1", s) for s in (0, 10)] + [("c2", s) for s in (12, 30, 45)] + [("c1", s) for s in (55, 70, 100)]
    rows = [{"client_id": c, "queue_id": 0, "request_ts": at(s)} for c, s in pulls]
    assert ("double_owned_queue", "warning") not in told(beats, pulls=rows)[1]
