"""Members that allocate or subscribe differently at the same time; a change that is rolled out is no conflict."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl
import pytest

from mqreplay.evidence.members import conflicts as module
from mqreplay.evidence.members.conflicts import (
    CONFLICTS,
    alternating_subscriptions,
    logged_conflicts,
    strategy_conflicts,
    subscription_conflicts,
)
from mqreplay.evidence.members.membership import membership, signs
from silver_moments import BEGAN, at
from silver_rows import rows

REBALANCE_S, HEARTBEAT_S, DISPUTE_S = 20, 30, 45
BROKER = {"broker_name": "b", "broker_id": 0, "response_code": 0}
Row = dict[str, Any]


def rebalanced(group: str, client: str, strategy: str | None, start: int, end: int, topic: str = "T") -> list[Row]:
    row = {"consumer_group": group, "client_id": client, "strategy": strategy, "topic": topic}
    return [row | {"ts": at(s), "record_id": f"{client}{s}"} for s in range(start, end, REBALANCE_S)]


def beats(group: str, client: str, topics: tuple[str, ...], start: int, end: int) -> list[Row]:
    subscribed = [(topic, "*", "TAG", 1) for topic in (*topics, f"%RETRY%{group}")]
    data = (group, "CONSUME_PASSIVELY", "CLUSTERING", "CONSUME_FROM_LAST_OFFSET", False, subscribed)
    row = {"client_id": client, "kind": "HEART_BEAT", "consumer_data_set": [data]}
    return [row | {"ts": at(s), "record_id": f"{client}{s}"} for s in range(start, end, HEARTBEAT_S)]


def without_subscriptions(listed: list[Row]) -> list[Row]:
    """The heartbeats of a client with useHeartbeatV2: only the first one lists its subscriptions."""
    data = [(*row["consumer_data_set"][0][:-1], None) for row in listed[1:]]
    return [listed[0], *(row | {"consumer_data_set": [each]} for row, each in zip(listed[1:], data, strict=True))]


def left(group: str, client: str, seconds: float) -> Row:
    row = {"client_id": client, "kind": "UNREGISTER_CLIENT", "unregistered_consumer_group": group}
    return row | {"ts": at(seconds)}


REBALANCES = [
    *rebalanced("agree", "c1", "AVG", 0, 200),
    *rebalanced("agree", "c2", "AVG", 5, 200),
    *rebalanced("differ", "c1", "AVG", 0, 300),
    *rebalanced("differ", "c2", "AVG_BY_CIRCLE", 100, 180),
    # One after the other: the old one left ten seconds after the new one had come.
    *rebalanced("rolled out", "c1", "AVG", 0, 110),
    *rebalanced("rolled out", "c2", "CONSISTENT_HASH", 100, 300),
    # One client that was started again with another strategy.
    *rebalanced("one client", "c1", "AVG", 0, 100),
    *rebalanced("one client", "c1", "AVG_BY_CIRCLE", 105, 200),
    *rebalanced("just bearable", "c1", "AVG", 0, 300),
    *rebalanced("just bearable", "c2", "AVG_BY_CIRCLE", 100, 145),
    *rebalanced("just too long", "c1", "AVG", 0, 300),
    *rebalanced("just too long", "c2", "AVG_BY_CIRCLE", 100, 145),
    # Strategies differ, but each topic has one.
    *rebalanced("by topic", "c1", "AVG", 0, 200),
    *rebalanced("by topic", "c2", "AVG_BY_CIRCLE", 0, 200, topic="U"),
    *rebalanced("not recorded", "c1", "AVG", 0, 200),
    *rebalanced("not recorded", "c2", None, 0, 200),
    # On both topics, and with a third strategy later on.
    *[row for topic in "TU" for row in rebalanced("twice", "c1", "AVG", 0, 400, topic=topic)],
    *[row for topic in "TU" for row in rebalanced("twice", "c2", "AVG_BY_CIRCLE", 0, 100, topic=topic)],
    *rebalanced("twice", "c3", "CONSISTENT_HASH", 300, 400),
]
BEATS = [
    left("differ", "c2", 180),
    left("rolled out", "c1", 110),
    left("just bearable", "c2", 145),
    left("just too long", "c2", 146),
    *beats("subscribed alike", "c1", ("T", "U"), 0, 200),
    *beats("subscribed alike", "c2", ("U", "T"), 7, 200),
    *beats("subscribed differently", "c1", ("T",), 0, 300),
    *beats("subscribed differently", "c2", ("U",), 100, 200),
    left("subscribed differently", "c2", 210),
    *beats("subscription rolled out", "c1", ("T",), 0, 110),
    *beats("subscription rolled out", "c2", ("T", "U"), 100, 300),
    left("subscription rolled out", "c1", 120),
    *without_subscriptions(beats("alike by fingerprint", "c1", ("T",), 0, 200)),
    *without_subscriptions(beats("alike by fingerprint", "c2", ("T",), 100, 200)),
    # What a member subscribed to before the recording is not known.
    *without_subscriptions(beats("alike by fingerprint", "c3", ("U",), 0, 200))[1:],
    *without_subscriptions(beats("different by fingerprint", "c1", ("T",), 0, 300)),
    *without_subscriptions(beats("different by fingerprint", "c2", ("U",), 100, 200)),
    left("different by fingerprint", "c2", 210),
]


def found() -> tuple[pl.DataFrame, pl.DataFrame]:
    rebalance = rows("silver.rebalance", {}, REBALANCES)
    heartbeat = rows("silver.heartbeat", BROKER, BEATS)
    members = membership(signs(heartbeat, rebalance, rows("silver.assignment", {}, [])), 90)
    return (
        strategy_conflicts(rebalance, members, REBALANCE_S),
        subscription_conflicts(heartbeat, members, HEARTBEAT_S),
    )


def spans(conflicts: pl.DataFrame) -> dict[str, list[tuple[float, float]]]:
    """Group -> from, to of those that last longer than DISPUTE_S."""
    long: dict[str, list[tuple[float, float]]] = {}
    for group, since, until in conflicts.sort("from_ts").select("consumer_group", "from_ts", "to_ts").iter_rows():
        if (until - since).total_seconds() > DISPUTE_S:
            long.setdefault(group, []).append(((since - BEGAN).total_seconds(), (until - BEGAN).total_seconds()))
    return long


def test_only_what_lasts_is_a_conflict_until_one_side_left():
    by_strategy, by_subscription = found()
    assert spans(by_strategy) == {
        "differ": [(100, 180)],
        "just too long": [(100, 146)],
        "twice": [(0, 100), (300, 400)],
    }
    assert spans(by_subscription) == {
        "subscribed differently": [(100, 210)],
        "different by fingerprint": [(100, 210)],
    }


def test_it_names_both_sides_topics_and_rows_of_each():
    by_strategy, by_subscription = found()
    (differ,) = by_strategy.filter(pl.col("consumer_group") == "differ").to_dicts()
    assert (differ["sides"], differ["topics"], differ["record_ids"]) == (
        ["AVG", "AVG_BY_CIRCLE"],
        ["T"],
        ["c10", "c2100"],
    )
    first, second = by_strategy.filter(pl.col("consumer_group") == "twice").sort("from_ts").to_dicts()
    assert (first["sides"], first["topics"], first["record_ids"]) == (
        ["AVG", "AVG_BY_CIRCLE"],
        ["T", "U"],
        ["c10", "c20"],
    )
    assert (second["sides"], second["topics"]) == (["AVG", "CONSISTENT_HASH"], ["T"])
    (subscribed,) = by_subscription.filter(pl.col("consumer_group") == "subscribed differently").to_dicts()
    assert subscribed["sides"] == ["T TAG *", "U TAG *"]


@pytest.mark.parametrize("most_pairs", [1, 4, 10])
def test_a_few_spans_at_a_time_give_the_same(monkeypatch, most_pairs):
    whole = found()
    monkeypatch.setattr(module, "MOST_PAIRS", most_pairs)
    for few, all_at_once in zip(found(), whole, strict=True):
        by = ["consumer_group", "from_ts"]
        assert few.sort(by).equals(all_at_once.sort(by))


def test_a_night_without_rows_has_no_conflicts():
    heartbeat, rebalance = rows("silver.heartbeat", {}, []), rows("silver.rebalance", {}, [])
    members = membership(signs(heartbeat, rebalance, rows("silver.assignment", {}, [])), 90)
    for conflicts in (strategy_conflicts(rebalance, members, 20), subscription_conflicts(heartbeat, members, 30)):
        assert conflicts.is_empty()
        assert dict(conflicts.schema) == CONFLICTS


def test_a_strategy_in_a_clients_log_holds_until_the_next_result_or_the_end_of_the_session():
    log = {"consumer_group": "g", "topic": "T", "source": "client_log"}
    one, other = log | {"client_id": "c1", "strategy": "AVG"}, log | {"client_id": "c2", "strategy": "AVG_BY_CIRCLE"}
    logged = [one | {"ts": at(0)}, one | {"ts": at(200)}, other | {"ts": at(100)}]
    rebalance = rows("silver.rebalance", {}, logged)
    heartbeat = rows(
        "silver.heartbeat", BROKER, [*beats("g", "c1", ("T",), 0, 211), *beats("g", "c2", ("T",), 90, 181)]
    )
    members = membership(signs(heartbeat, rebalance, rows("silver.assignment", {}, [])), 90)
    (found,) = strategy_conflicts(rebalance, members, REBALANCE_S).to_dicts()
    assert (found["from_ts"], found["to_ts"], found["sides"]) == (
        at(100),
        at(180 + REBALANCE_S),
        ["AVG", "AVG_BY_CIRCLE"],
    )


def kept(seconds: float, *subscriptions: tuple[str, str], members: tuple[str, ...] = ("h:1", "h:2")) -> Row:
    """A broker's answer about a group: the subscription that it keeps, and its connections."""
    topics = [(topic, text, None, None) for topic, text in (*subscriptions, ("%RETRY%g", "*"))]
    connections = [(f"c@{address}", address, "JAVA", 397) for address in members]
    row = {"consumer_group": "g", "response_code": 0, "ts": at(seconds), "record_id": f"k{seconds}"}
    return row | {"subscriptions": topics, "connections": connections}


def alternations(*answers: Row) -> list[tuple[object, ...]]:
    frame = rows("silver.consumer_connection", {}, list(answers))
    spans = [((pl.col(name) - BEGAN).dt.total_seconds()).alias(name) for name in ("from_ts", "to_ts")]
    return alternating_subscriptions(frame).select(*spans, "sides", "returns").rows()


A, B = ("T", "a"), ("T", "b")


def test_a_subscription_that_returns_again_and_again_is_that_of_two_members():
    answers = [kept(seconds, side) for seconds, side in ((0, A), (40, B), (90, A), (130, B), (150, B))]
    assert alternations(*answers) == [(0, 130, ["T a", "T b"], 2)]


def test_topics_that_come_and_go_are_a_conflict_too():
    answers = [kept(0, A), kept(30, A, ("U", "*")), kept(60, A), kept(90, A, ("U", "*"))]
    assert alternations(*answers) == [(0, 90, ["T a", "T a; U *"], 2)]


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ([kept(0, A), kept(60, A), kept(120, A)], []),
        # A release: other processes, another subscription; and one that is taken back half an hour later.
        ([kept(0, A), kept(60, B, members=("h:3", "h:4"))], []),
        ([kept(0, A), kept(60, B, members=("h:3",)), kept(1860, A, members=("h:5",))], []),
        # One change while no process started or ended.
        ([kept(0, A), kept(60, B)], [(0, 60, ["T a", "T b"], 0)]),
        # What is not known of the members says nothing.
        ([kept(0, A, members=()), kept(60, B, members=())], []),
    ],
)
def test_a_change_is_no_alternation_unless_all_members_stay(answers: list[Row], expected: list[tuple[object, ...]]):
    assert alternations(*answers) == expected


def shared(client: str, topic: str, seconds: float, queues: int = 4, clients: int = 2) -> Row:
    row = {"consumer_group": "g", "client_id": client, "topic": topic, "ts": at(seconds), "source": "client_log"}
    return row | {"mq_all_size": queues, "cid_all_size": clients, "record_id": f"{client}{topic}"}


LOGS = [shared("c1", "T", 10), shared("c2", "U", 30), shared("c1", "%RETRY%g", 10), shared("c2", "%RETRY%g", 30)]


def logged(rebalances: list[Row], held: Sequence[Row] = ()) -> list[tuple[object, ...]]:
    owners = rows("gold.queue_owner", {"consumer_group": "g", "broker_name": "b", "queue_id": 0}, held)
    sessions = {"consumer_group": ["g", "g"], "client_id": ["c1", "c2"]}
    members = pl.DataFrame(sessions | {"from_ts": [at(0), at(20)], "to_ts": [at(200), at(200)]})
    conflicts = logged_conflicts(rows("silver.rebalance", {}, rebalances), owners, members)
    spans = [((pl.col(name) - BEGAN).dt.total_seconds()).alias(name) for name in ("from_ts", "to_ts")]
    return conflicts.select(*spans, "sides", "topics", "record_ids").rows()


def test_members_whose_logs_rebalance_different_topics():
    ids = ["silver.rebalance c1T", "silver.rebalance c2U"]
    assert logged(LOGS) == [(30, 200, ["T", "U"], ["T", "U"], ids)]


@pytest.mark.parametrize(
    ("rebalances", "held"),
    [
        ([*LOGS, shared("c2", "T", 30)], []),  # a share of the second topic need not have changed
        (LOGS, [{"topic": "T", "client_id": "c2", "from_ts": at(20), "to_ts": at(60)}]),  # it commits this topic
        ([shared("c1", "T", 10, queues=1), *LOGS[1:]], []),  # no queue for each member
    ],
)
def test_a_log_without_a_topic_proves_nothing_alone(rebalances: list[Row], held: list[Row]):
    assert logged(rebalances, held) == []
