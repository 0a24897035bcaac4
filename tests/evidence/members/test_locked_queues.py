"""Groups that lock queues without a record of it."""

from __future__ import annotations

from mqreplay.evidence.members.member_gaps import lock_gaps
from silver_moments import at
from silver_rows import rows

HELD = {"consumer_group": "g", "client_id": "c", "ts": at(0)}
QUEUE = {"topic": "t", "broker_name": "b", "queue_id": 0}


def test_a_locked_queue_without_lock_requests_is_a_gap() -> None:
    assignment = rows("silver.assignment", HELD, [{"queues": [QUEUE | {"locked": True}]}, {"queues": [], "ts": at(9)}])
    made = lock_gaps(assignment, rows("silver.lock", {}, []))
    assert made.select("decision", "evidence", "consumer_group").sort("decision").rows() == [
        ("finding lock_blocked", "lock_requests", "g"),
        ("gold.queue_lock", "lock_requests", "g"),
    ]
    assert "lock.log" in made["reason"][0]
    request = {"consumer_group": "g", "client_id": "c", "kind": "LOCK_BATCH_MQ", "ts": at(0)}
    assert len(lock_gaps(assignment, rows("silver.lock", {}, [request]))) == 0


def test_queues_that_need_no_lock_are_none() -> None:
    assignment = rows("silver.assignment", HELD, [{"queues": [QUEUE | {"locked": False}]}, {"queues": None}])
    assert len(lock_gaps(assignment, rows("silver.lock", {}, []))) == 0
