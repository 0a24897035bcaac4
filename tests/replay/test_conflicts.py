"""Members that allocate or subscribe differently at the same time; a change that is rolled out is no conflict."""

from __future__ import annotations

import pytest

from mqreplay.replay.conflicts import strategy_conflicts, subscription_conflicts
from mqreplay.replay.findings.members import conflict_findings
from mqreplay.replay.membership import membership, signs
from silver_moments import at

REBALANCE_S, HEARTBEAT_S, DISPUTE_S = 20, 30, 45
BROKER = {"broker_name": "b", "broker_id": 0, "response_code": 0}


def rebalanced(group: str, client: str, strategy: str, start: int, end: int, topic: str = "T") -> list[dict]:
    row = {"consumer_group": group, "client_id": client, "strategy": strategy, "topic": topic}
    return [row | {"ts": at(s), "record_id": f"{client}{s}"} for s in range(start, end, REBALANCE_S)]


def beats(group: str, client: str, topics: tuple[str, ...], start: int, end: int) -> list[dict]:
    subscribed = [(topic, "*", "TAG", 1) for topic in (*topics, f"%RETRY%{group}")]
    data = (group, "CONSUME_PASSIVELY", "CLUSTERING", "CONSUME_FROM_LAST_OFFSET", False, subscribed)
    row = {"client_id": client, "kind": "HEART_BEAT", "consumer_data_set": [data]}
    return [row | {"ts": at(s), "record_id": f"{client}{s}"} for s in range(start, end, HEARTBEAT_S)]


def left(group: str, client: str, seconds: float) -> dict[str, object]:
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
    # One client that was started anew with another strategy.
    *rebalanced("one client", "c1", "AVG", 0, 100),
    *rebalanced("one client", "c1", "AVG_BY_CIRCLE", 105, 200),
    *rebalanced("just bearable", "c1", "AVG", 0, 300),
    *rebalanced("just bearable", "c2", "AVG_BY_CIRCLE", 100, 145),
    *rebalanced("just too long", "c1", "AVG", 0, 300),
    *rebalanced("just too long", "c2", "AVG_BY_CIRCLE", 100, 145),
    # Strategies differ, but each topic has one.
    *rebalanced("by topic", "c1", "AVG", 0, 200),
    *rebalanced("by topic", "c2", "AVG_BY_CIRCLE", 0, 200, topic="U"),
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
]


@pytest.fixture(scope="module")
def conflicts(rows):
    rebalance = rows("silver.rebalance", {}, REBALANCES)
    heartbeat = rows("silver.heartbeat", BROKER, BEATS)
    none = [rows(f"silver.{name}", {}, []) for name in ("assignment", "pull", "offset_commit")]
    members = membership(signs(heartbeat, rebalance, *none), 90).localCheckpoint()
    found = conflict_findings(
        strategy_conflicts(rebalance, members, REBALANCE_S),
        subscription_conflicts(heartbeat, members, HEARTBEAT_S),
        DISPUTE_S,
    )
    return {r.consumer_group: r for r in found.collect()}


def test_only_what_lasts_is_a_conflict(conflicts):
    assert {group: (r.kind, r.severity) for group, r in conflicts.items()} == {
        "differ": ("strategy_conflict", "warning"),
        "just too long": ("strategy_conflict", "warning"),
        "subscribed differently": ("subscription_conflict", "warning"),
    }


def test_it_lasts_from_the_first_word_of_the_second_side_until_that_left(conflicts):
    spans = {group: (r.from_ts, r.to_ts) for group, r in conflicts.items()}
    zone = {group: tuple(at(s).replace(tzinfo=None) for s in span) for group, span in SPANS.items()}
    assert spans == zone


SPANS = {"differ": (100, 180), "just too long": (100, 146), "subscribed differently": (100, 210)}


def test_it_names_both_sides_and_rows_of_each(conflicts):
    told = conflicts["differ"]
    assert "shared out T by different strategies: AVG against AVG_BY_CIRCLE" in told.summary
    assert {e.table_name for e in told.evidence} == {"gold.allocation"}
    assert {e.key for e in told.evidence} == {"record_id=c10", "record_id=c2100"}
    assert "T TAG * against U TAG *" in conflicts["subscribed differently"].summary
