"""The list of all kinds, and the findings of a day as a whole: every family is asked, and a day keeps its own."""

from __future__ import annotations

from dataclasses import replace

import pytest

from evidence_of_rows import LIMITS, evidence_of
from mqreplay.findings.every import KINDS, all_findings
from mqreplay.findings.shape import SCHEMA
from silver_moments import at

NAMES = {
    *("offset_rewind", "offset_jump", "offset_reset", "stuck_queue", "orphan_queue", "double_owned_queue"),
    *(
        "lag_grows",
        "idle_consumer",
        "uneven_allocation",
        "strategy_conflict",
        "subscription_conflict",
        "topic_unsubscribed",
        "consumer_lost",
    ),
    *(
        "broker_unlisted",
        "master_changed",
        "broker_moved",
        "name_server_down",
        "slave_config_drift",
        "revive_lag",
        "pop_order_blocked",
    ),
    *("broker_down", "failover_pull", "slave_pull", "stale_slave_offsets", "offset_beyond_max", "retry_growth"),
    *(
        "dead_letter",
        "late_retry",
        "slow_failover",
        "queue_count_changed",
        "duplicate_delivery",
        "torn_snapshot",
        "orphan_offset_key",
        "clock_skew",
    ),
    *("duplicate_client_id", "negative_offset", "start_skipped", "start_from_oldest"),
    *("lock_blocked", "rebalance_storm"),
    *("slow_listener", "slow_broker", "unfinished_commit", "expired_unread"),
    *("pull_refused", "send_failed", "not_stored", "sends_avoid_broker", "restart_loop"),
    *("replication_lag", "unflushed_data", "disk_bound_catchup"),
    "disk_full",
    "delay_offset_stuck",
    *("disk_full", "stale_route"),
    *("disk_full", "stale_route", "pull_expired"),
}


def test_every_kind_is_described() -> None:
    assert KINDS.keys() == NAMES
    assert all(name == kind.name for name, kind in KINDS.items())
    assert all(kind.text("rule").endswith(".") and kind.text("advice").endswith(".") for kind in KINDS.values())
    assert all(0 < kind.confidence <= 1 for kind in KINDS.values())


def test_an_empty_day_has_no_findings() -> None:
    nothing = evidence_of()
    for kind in KINDS.values():
        if kind.find is not None:
            found = kind.find(nothing, LIMITS)
            assert (len(found), dict(found.schema)) == (0, SCHEMA), kind.name
    assert len(all_findings(nothing, LIMITS)) == 0


QUEUE = {"consumer_group": "g", "topic": "T", "broker_name": "b", "queue_id": 0}
SESSION = {"session": 1, "left": False, "watched": True, "beat": True, "consumer_group": "g"}
HELD = QUEUE | {"client_id": "c1", "from_ts": at(0), "to_ts": at(300), "source": "assignment"}
BREAK = QUEUE | {"broker_id": 0, "from_ts": at(0), "to_ts": at(5), "previous_offset": 90, "new_offset": 10, "size": 80}
BREAK |= {"cause": "unknown", "redelivered_max": 80}
STUCK = QUEUE | {
    "spans": [{"offset": 5, "since_ts": at(0), "from_ts": at(0), "to_ts": at(100), "waiting": 3, "arrived": 2}]
}
PULL = QUEUE | {"client_id": "c1", "queue_offset": 5, "broker_id": 1}
ROUTE = PULL | {"request_ts": at(0), "route_broker_ids": [1], "cause": "master_gone", "actual_broker_id": 1}
CONSUMED = QUEUE | {"queue_topic": "T", "queue_offset": 5, "status": "CONSUME_SUCCESS", "reconsume_times": 0}
CONFIG = {"source_name": "b-0", "broker_name": "b", "broker_id": 0, "topic": "T", "change": "changed"}
TAKEN = {"consumer_group": "g", "topic": "T", "client_id": "c1", "strategy": "AVG", "cid_all": ["c1", "c2"]}
TAKEN |= {"mq_all": [("b", q) for q in range(8)], "actual": [("b", q) for q in range(8)]}
OUTAGE = {
    "broker_name": "b",
    "broker_id": 0,
    "from_ts": at(0),
    "to_ts": at(50),
    "errors": 1,
    "polled": True,
    "keys": [],
}


def rebalanced(client: str, strategy: str) -> list[dict]:
    row = {"consumer_group": "g", "client_id": client, "topic": "T", "strategy": strategy, "mq_all": [("b", 0)]}
    return [row | {"ts": at(s), "record_id": f"{client}{s}"} for s in range(0, 100, 20)]


def beats(client: str, topic: str) -> list[dict]:
    data = ("g", "CONSUME_PASSIVELY", "CLUSTERING", "CONSUME_FROM_LAST_OFFSET", False, [(topic, "*", "TAG", 1)])
    row = {"client_id": client, "kind": "HEART_BEAT", "consumer_data_set": [data]}
    return [row | {"ts": at(s), "record_id": f"{client}{s}"} for s in range(0, 100, 30)]


def sessions(**until: float) -> list[dict]:
    return [SESSION | {"client_id": client, "from_ts": at(0), "to_ts": at(s)} for client, s in until.items()]


def reset(topic: str) -> dict:
    return {"ts": at(0), "consumer_group": "g", "client_id": "c1", "reset_offsets": [(topic, "b", 0, 5)]}


def ended(seconds: float, offset: int) -> dict:
    queue = {"topic": "%DLQ%g", "broker_name": "b", "queue_id": 0, "min_offset": 0, "max_offset": offset}
    return {"ts": at(seconds), "broker_name": "b", "broker_id": 0, "offsets": [queue]}


CASES: dict[str, tuple[dict[str, list[dict]], set[str]]] = {
    "offsets that moved": (
        {"offset_continuity": [BREAK | {"kind": "rewind"}], "server_request": [reset("T")]},
        {"offset_rewind", "offset_reset"},
    ),
    "a slave that stayed behind": (
        {"offset_continuity": [BREAK | {"kind": "stale", "broker_id": 1}]},
        {"stale_slave_offsets"},
    ),
    "a queue that did not advance while a member held it": (
        {"standstills": [STUCK], "queue_owner": [HELD]},
        {"stuck_queue"},
    ),
    "members that disagree": (
        {
            "rebalance": [*rebalanced("c1", "AVG"), *rebalanced("c2", "AVG_BY_CIRCLE")],
            "heartbeat": [*beats("c1", "T"), *beats("c2", "U")],
        },
        {"strategy_conflict", "subscription_conflict"},
    ),
    "a member that was lost": ({"members": sessions(c1=60, c2=300)}, {"consumer_lost"}),
    "a share that is not even": (
        {"allocation": [TAKEN | {"rebalance_ts": at(s), "record_id": f"r{s}"} for s in (0, 20, 40)]},
        {"uneven_allocation"},
    ),
    "queues without an owner": (
        {"members": sessions(c1=100), "rebalance": rebalanced("c1", "AVG")},
        {"orphan_queue", "idle_consumer"},
    ),
    "a broker that was gone": ({"outages": [OUTAGE], "pull_route": [ROUTE]}, {"broker_down"}),
    "a master that left the route": ({"pull_route": [ROUTE]}, {"failover_pull"}),
    "a group that lagged": (
        {"pull_route": [ROUTE | {"cause": "suggested", "route_broker_ids": [0, 1], "request_ts": at(1)}]},
        {"slave_pull"},
    ),
    "a slave that refuses": ({"pull": [PULL | {"request_ts": at(0), "response_code": 2}]}, {"slave_pull"}),
    "messages that came back": (
        {
            "consume": [
                CONSUMED | {"client_id": "c1", "ts": at(0)},
                CONSUMED | {"client_id": "c2", "ts": at(1)},
                CONSUMED | {"client_id": "c2", "ts": at(2), "status": "RECONSUME_LATER", "queue_offset": 6},
            ],
            "topic_stats": [ended(0, 5), ended(10, 7)],
        },
        {"duplicate_delivery", "retry_growth", "dead_letter"},
    ),
    "topics that changed": (
        {
            "topic_config": [
                CONFIG | {"ts": at(s), "read_queue_nums": n, "write_queue_nums": n} for s, n in ((0, 2), (9, 1))
            ],
            "offset_change": [
                QUEUE | {"source_name": "b-0", "broker_id": 0, "queue_id": 1, "to_ts": at(5), "new_offset": 1}
            ],
        },
        {"queue_count_changed", "orphan_offset_key"},
    ),
    "a file that was not whole": (
        {
            "quarantine": [
                {"path": "snapshots/b-0/1795228800000/topics.json", "line_number": 0, "detail_key": "", "code": "torn"}
            ]
        },
        {"torn_snapshot"},
    ),
    "a clock that is off": (
        {
            "clocks": [{"client_id": "c1", "skew_ms": 90_000, "matches": 9}],
            "offset_commit": [QUEUE | {"client_id": "c1", "ts": at(5), "kind": "UPDATE", "commit_offset": 1}],
        },
        {"clock_skew"},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_each_function_is_called(case: str) -> None:
    silver, kinds = CASES[case]
    found = all_findings(evidence_of(**silver), LIMITS)
    assert set(found["kind"].to_list()) == kinds
    assert dict(found.schema) == SCHEMA


def test_what_a_broker_that_was_gone_cost() -> None:
    silver, _ = CASES["a broker that was gone"]
    found = all_findings(evidence_of(**silver), LIMITS).filter(kind="broker_down")
    assert "did not answer for 50 s; 1 pull of 1 group went to a slave instead." in found["summary"].item()


def test_the_recording_ends_when_the_recorder_says() -> None:
    evidence = evidence_of(members=sessions(c1=60, ahead=3_600))
    assert set(all_findings(evidence, LIMITS)["client_id"]) == {"c1"}
    assert len(all_findings(replace(evidence, recorded_until=at(90)), LIMITS)) == 0
