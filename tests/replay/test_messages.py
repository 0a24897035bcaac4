"""Messages that came back, were given up or came twice: what is normal is silent, each bound is where it is."""

from __future__ import annotations

import pytest

from mqreplay.replay.deliveries import came_back, repeated_deliveries
from mqreplay.replay.findings.messages import dead_letters, duplicate_findings, retry_findings
from mqreplay.replay.queue_ends import queue_ends
from silver_moments import at

GAP_S, WARN = 120, 5
PLACE = {"topic": "T", "queue_topic": "T", "broker_name": "b", "queue_id": 0, "reconsume_times": 0, "orderly": False}
CONFIG = {"source_name": "b-0", "broker_name": "b", "broker_id": 0, "read_queue_nums": 1, "write_queue_nums": 1}
PULL = {"consumer_group": "x", "client_id": "x", "broker_name": "b", "queue_id": 0, "queue_offset": 0, "broker_id": 0}


def consumed(group: str, offset: int, seconds: float, client: str = "c1", **differs: object) -> dict[str, object]:
    row = {"consumer_group": group, "queue_offset": offset, "ts": at(seconds), "client_id": client}
    return row | {"status": "CONSUME_SUCCESS", "record_id": f"{group}{offset}{seconds}"} | differs


def failed(group: str, n: int, times: int = 0) -> list[dict[str, object]]:
    row = {"status": "RECONSUME_LATER", "reconsume_times": times}
    return [consumed(group, offset, offset, **row) for offset in range(n)]


def topic(name: str, seconds: float, change: str = "first", **differs: object) -> dict[str, object]:
    return {"topic": name, "ts": at(seconds), "change": change} | differs


def told_end(topic: str, seconds: float, end: int, **differs: object) -> dict[str, object]:
    return {"topic": topic, "request_ts": at(seconds), "response_ts": at(seconds), "max_offset": end} | differs


CONSUMED = [
    *[consumed("once", offset, offset) for offset in range(3)],
    *[consumed("same client", 1, s) for s in (1, 9)],
    *[consumed("moved", 1, 1, "c1"), consumed("moved", 1, 9, "c2")],
    *[consumed("moved and back", 1, 1, "c1"), consumed("moved and back", 1, 9, "c2")],
    *[consumed("moved and back", 2, s, "c1") for s in (2, 10)],
    *[consumed("tried again", 1, 1, status="RECONSUME_LATER"), consumed("tried again", 1, 9)],
    *[consumed("suspended", 1, s, status="SUSPEND_CURRENT_QUEUE_A_MOMENT", orderly=True) for s in (1, 2, 3)],
    *[consumed("suspended", 1, 4, status="SUCCESS", orderly=True)],
    *[consumed("broadcast", 1, s, client) for s, client in ((1, "c1"), (2, "c2"))],
    *[consumed("logged twice", 1, 1) | {"record_id": f"r{n}"} for n in (1, 2)],
    *[consumed("one queue of many", 1, 1), consumed("one queue of many", 1, 2, queue_id=1)],
    *failed("four failed", WARN - 1),
    *failed("five failed", WARN),
    *failed("last try", 1, times=16),
    *failed("last try but one", 1, times=15),
]
CONFIGS = [
    topic("T", 0),
    topic("%DLQ%old", 0),  # was there when the recording began
    topic("%DLQ%new", 60),
    topic("%DLQ%new", 70, broker_id=1, source_name="b-1"),
    topic("T", 0, broker_id=1, source_name="b-1"),
    topic("%DLQ%old", 90, "changed"),
]
ENDS = [
    *[told_end("%DLQ%grown", s, end) for s, end in ((0, 4), (50, 4), (60, 7))],
    *[told_end("%RETRY%unlogged", s, end) for s, end in ((0, 0), (10, 6))],
    *[told_end("%RETRY%five failed", s, end) for s, end in ((0, 0), (10, 6))],
    *[told_end("%DLQ%slave lags", s, end, broker_id=1) for s, end in ((0, 0), (60, 7))],
]


@pytest.fixture(scope="module")
def told(rows, spark):
    consume = rows("silver.consume", PLACE, CONSUMED)
    broadcasting = spark.createDataFrame([("c", "broadcast")], "cluster STRING, consumer_group STRING")
    ends = queue_ends(rows("silver.pull", PULL, ENDS), rows("silver.topic_stats", {}, []))
    back = came_back(consume)
    findings = (
        duplicate_findings(repeated_deliveries(consume, broadcasting), GAP_S)
        .unionByName(retry_findings(back, ends, "c", WARN, GAP_S))
        .unionByName(dead_letters(back, rows("silver.topic_config", CONFIG, CONFIGS), ends, "c", GAP_S))
    )
    return findings.collect()


def of(told, kind: str) -> dict[str, object]:
    found = [row for row in told if row.kind == kind]
    assert len({row.consumer_group for row in found}) == len(found), "one for each group"
    return {row.consumer_group: row for row in found}


def test_only_a_second_success_is_a_duplicate(told):
    found = of(told, "duplicate_delivery")
    assert {group: row.severity for group, row in found.items()} == {
        "same client": "warning",
        "moved": "info",
        "moved and back": "warning",
    }
    assert "2 messages more than once" in found["moved and back"].summary
    assert [e.key for e in found["moved"].evidence] == ["record_id=moved19"]


def test_retries_are_told_by_the_log_and_only_without_it_by_the_topic(told):
    found = of(told, "retry_growth")
    assert {group: row.severity for group, row in found.items() if "failed" in group or group == "unlogged"} == {
        "four failed": "info",
        "five failed": "warning",
        "unlogged": "warning",
    }
    assert "5 times" in found["five failed"].summary
    assert "6 times" in found["unlogged"].summary
    assert "suspended" not in found


def test_dead_letters_are_a_topic_that_came_or_grew_or_a_last_try(told):
    found = of(told, "dead_letter")
    assert found.keys() == {"new", "grown", "last try"}
    assert "gave up 3 messages" in found["grown"].summary
    assert found["new"].from_ts == at(60).replace(tzinfo=None)
    assert {row.severity for row in found.values()} == {"warning"}
