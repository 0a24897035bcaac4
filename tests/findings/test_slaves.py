"""Slaves that no longer copy offsets: one finding a slave, of all its queues."""

from __future__ import annotations

import pytest

from evidence_keys import keys_of
from mqreplay.findings.shape import SCHEMA
from mqreplay.findings.slaves import stale_slave_offsets
from silver_moments import at
from silver_rows import rows

BASE = {"broker_id": 1, "topic": "T", "consumer_group": "g", "queue_id": 0, "kind": "stale", "cause": "not_copied"}


def stale(broker: str, start: float, end: float, size: int, **differs: object) -> dict[str, object]:
    return {"broker_name": broker, "from_ts": at(start), "to_ts": at(end), "size": size} | differs


BREAKS = [
    stale("stuck", 305, 900, 600),
    stale("stuck", 900, 1000.5, 700),
    stale("stuck", 310, 1000, 700, consumer_group="h", queue_id=7),
    stale("one queue", 500, 1000, 1),
    stale("two slaves", 300, 1000, 690, broker_id=2),
    stale("full", 300, 1000, 2**63 - 1),
    stale("full", 300, 1000, 5, queue_id=1),
    stale("set back", 400, 410, 480, kind="rewind"),
]


@pytest.fixture(scope="module")
def found() -> dict[tuple[str, int], dict]:
    found = stale_slave_offsets(rows("gold.offset_continuity", BASE, BREAKS), "c")
    assert dict(found.schema) == SCHEMA
    return {(row["broker_name"], row["broker_id"]): row for row in found.to_dicts()}


def test_each_slave_with_a_stale_copy_has_one_finding(found: dict) -> None:
    assert found.keys() == {("stuck", 1), ("one queue", 1), ("two slaves", 2), ("full", 1)}
    row = found["one queue", 1]
    assert (row["kind"], row["severity"], row["queue_id"], row["topic"]) == (
        "stale_slave_offsets",
        "warning",
        None,
        None,
    )
    assert (row["from_ts"], row["to_ts"]) == (at(500), at(1000))
    assert row["summary"] == (
        "Slave 1 of one queue kept offsets of 1 queue of 1 group below all that its master held, for up to 500 s."
        " If consumers read them now, they would receive up to 1 message again."
    )


def test_all_its_queues_are_one_finding(found: dict) -> None:
    row = found["stuck", 1]
    assert "2 queues of 2 groups below all that its master held, for up to 690 s." in row["summary"]
    assert "up to 1400 messages" in row["summary"], "the most of each copy"
    assert (row["from_ts"], row["to_ts"]) == (at(305), at(1000.5))
    assert {each["table_name"] for each in row["evidence"]} == {"gold.offset_continuity"}
    assert keys_of(row["evidence"]) == [
        f"consumer_group={group} topic=T broker_name=stuck broker_id=1 queue_id={queue} kind=stale to_ts={ended}"
        for group, queue, ended in (
            ("g", 0, "2026-11-21 02:15:00"),
            ("g", 0, "2026-11-21 02:16:40.500000"),
            ("h", 7, "2026-11-21 02:16:40"),
        )
    ]


def test_what_no_number_holds_is_the_most_that_one_does(found: dict) -> None:
    assert f"up to {2**63 - 1} messages" in found["full", 1]["summary"]


def test_no_breaks_are_no_findings() -> None:
    none = stale_slave_offsets(rows("gold.offset_continuity", BASE, []), "c")
    assert (len(none), dict(none.schema)) == (0, SCHEMA)
