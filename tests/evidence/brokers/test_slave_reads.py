"""Why a pull went to a slave: each reason where it is shown, and none where the evidence is missing."""

from __future__ import annotations

import pytest

from mqreplay.evidence.brokers.slave_reads import BY_GROUP, KEPT_BY_RATIO, LAGGED, UNKNOWN_RATIO, slave_reads
from silver_moments import at
from silver_rows import rows

READER = {"consumer_group": "g", "topic": "T", "broker_name": "b", "queue_id": 0, "client_id": "c"}
ROUTED = READER | {"route_broker_ids": [0, 1], "actual_broker_id": 1, "cause": "suggested"}
ANSWER = READER | {"request_ts": at(0), "broker_id": 0, "recorded_suggest": 1, "record_id": "a"}
# The master keeps 40 bytes in memory, a slave of 5.x 30 of the same 100.
MASTER = {"ts": at(-60), "broker_name": "b", "broker_id": 0, "broker_role": "ASYNC_MASTER", "rocketmq_version": "5.3.3"}
MASTER |= {"physical_memory_bytes": 100, "access_message_in_memory_max_ratio": 40}
SLAVE = MASTER | {"broker_id": 1, "broker_role": "SLAVE", "broker_addr": "10.0.0.2:1"}
KEEPER = SLAVE | {"access_message_in_memory_max_ratio": 1}
OF_MASTER = {"memory": 40, "effective_ratio": 40}
OF_KEEPER = {"broker_id": 1, "memory": -9, "effective_ratio": -9, "expected_suggest": 1}

WHY = {
    "the master's bounds show it": (
        [MASTER],
        OF_MASTER | {"diff_min": 41, "diff_max": 50, "expected_suggest": 1},
        LAGGED,
    ),
    "the bounds do not decide, so the master did": ([MASTER], OF_MASTER | {"diff_min": 1, "diff_max": 50}, LAGGED),
    "no bounds": ([MASTER], OF_MASTER, LAGGED),
    "the group's brokerId": ([MASTER], OF_MASTER | {"diff_min": 1, "diff_max": 40, "expected_suggest": 1}, BY_GROUP),
    "slow or not, the same": ([MASTER], OF_MASTER | {"diff_min": 1, "diff_max": 50, "expected_suggest": 1}, BY_GROUP),
    "no brokers.json": ([], {"diff_min": None}, UNKNOWN_RATIO),
    "no memory": ([MASTER | {"physical_memory_bytes": None}], {"effective_ratio": 40}, UNKNOWN_RATIO),
    "a slave with a ratio, that compares": (
        [MASTER, SLAVE],
        {"broker_id": 1, "memory": 30, "effective_ratio": 30, "diff_min": 31, "diff_max": 35, "expected_suggest": 1},
        LAGGED,
    ),
    "a slave whose ratio keeps all readers": (
        [MASTER, KEEPER],
        OF_KEEPER | {"diff_min": 0, "diff_max": 40},
        KEPT_BY_RATIO,
    ),
    "such a slave, and the master would send it too": (
        [MASTER, KEEPER],
        OF_KEEPER | {"diff_min": 41, "diff_max": 90},
        LAGGED,
    ),
    "such a slave, with a master that is not described": (
        [KEEPER],
        OF_KEEPER | {"diff_min": 41, "diff_max": 90},
        KEPT_BY_RATIO,
    ),
}


def judged(brokers: list[dict], answers: list[dict], routes: list[dict], pulls: list[dict] | None = None) -> list[dict]:
    ends = [{"record_id": "a", "max_offset": 9, "next_begin_offset": 9}] if pulls is None else pulls
    return (
        slave_reads(
            rows("gold.pull_route", ROUTED, routes),
            rows("gold.slave_suggestion", ANSWER, answers),
            rows("silver.pull", READER | {"broker_id": 0, "request_ts": at(0)}, ends),
            rows("silver.broker", {}, brokers),
        )
        .sort("request_ts")
        .to_dicts()
    )


@pytest.mark.parametrize("case", WHY)
def test_the_answer_before_says_why(case: str) -> None:
    brokers, answer, why = WHY[case]
    (row,) = judged(brokers, [answer], [{"request_ts": at(1)}])
    assert row["why"] == why
    keeper = tuple(row[name] for name in ("keeper_id", "keeper_ratio", "keeper_configured", "keeper_addr"))
    assert keeper == ((1, -9, 1, "10.0.0.2:1") if why == KEPT_BY_RATIO else (None,) * 4)


def test_only_the_readers_own_last_answer_with_a_suggestion_counts() -> None:
    lagged = OF_MASTER | {"diff_min": 41, "diff_max": 50, "expected_suggest": 1}
    answers = [
        lagged | {"record_id": "a"},
        OF_KEEPER | {"request_ts": at(10), "diff_min": 0, "diff_max": 40, "record_id": "k"},
        OF_KEEPER | {"request_ts": at(5), "queue_id": 1, "diff_max": 40, "record_id": "other"},
        OF_MASTER | {"request_ts": at(12), "recorded_suggest": 0, "record_id": "back"},
    ]
    ends = [
        {"record_id": "a", "max_offset": 9, "next_begin_offset": 5},
        {"record_id": "k", "max_offset": 9, "next_begin_offset": 9},
    ]
    found = judged([MASTER, KEEPER], answers, [{"request_ts": at(s)} for s in (0, 10, 11, 13)], ends)
    assert [(row["why"], row["behind"]) for row in found] == [
        (LAGGED, False),
        (LAGGED, True),
        (KEPT_BY_RATIO, False),
        (KEPT_BY_RATIO, False),
    ]


def test_other_pulls_are_left_out() -> None:
    routes = [
        {"request_ts": at(1), "cause": "master_gone"},
        {"request_ts": at(2), "cause": None, "actual_broker_id": 0},
        {"request_ts": at(3), "route_broker_ids": [1]},
        {"request_ts": at(4), "route_broker_ids": None},
    ]
    assert judged([MASTER], [OF_MASTER], routes) == []


def test_no_rows_give_no_reads() -> None:
    assert judged([], [], [], []) == []
    (row,) = judged([], [], [{"request_ts": at(1)}], [])
    assert (row["why"], row["keeper_id"]) == (UNKNOWN_RATIO, None)
