"""Messages that are deleted before a group reads them."""

from __future__ import annotations

from typing import Any

from mqreplay.findings.expired_unread import expired_reads_of_shard, expired_unread
from mqreplay.findings.shape import SCHEMA
from silver_moments import at
from silver_rows import rows

PULL = {"consumer_group": "audit", "topic": "events", "broker_name": "broker-a", "queue_id": 0, "response_code": 21}
PULL |= {"queue_offset": 14568, "next_begin_offset": 32831, "min_offset": 32831, "max_offset": 40000}


def found(*pulls: dict[str, Any]) -> list[dict[str, Any]]:
    findings = expired_unread(expired_reads_of_shard(rows("silver.pull", PULL, pulls)), "c", 120)
    assert dict(findings.schema) == SCHEMA
    return findings.rows(named=True)


def test_a_pull_below_the_begin_of_its_queue() -> None:
    (row,) = found({"request_ts": at(0)}, {"request_ts": at(10)})
    assert row["summary"] == (
        "Group audit lost 18263 messages of events in broker-a/0 (offsets 14568 to 32831): the broker had deleted them"
        " before the group read them."
    )
    assert (row["severity"], row["queue_id"], row["evidence_count"]) == ("warning", 0, 1)


def test_other_answers_are_none() -> None:
    new_group, past_end = {"queue_offset": 0}, {"queue_offset": 50000, "next_begin_offset": 40000}
    reset, of_slave = {"queue_offset": 35000, "next_begin_offset": 33000}, {"broker_id": 1}
    for other in (new_group, past_end, reset, of_slave, {"response_code": 0}):
        assert found({"request_ts": at(0)} | other) == []
