"""Queues that a client could not lock for longer than a handover takes."""

from __future__ import annotations

from typing import Any

import polars as pl

from evidence_keys import keys_of
from mqreplay.findings.locks import blocked_locks, lock_findings
from mqreplay.findings.shape import SCHEMA
from silver_moments import at
from silver_rows import rows

ASKED = {"consumer_group": "g", "topic": "t", "broker_name": "b", "queue_id": 0, "client_id": "c2", "ts": at(0)}
ASKED |= {"holder": "c1", "actual": "refused"}
Row = dict[str, Any]


def found(*differs: Row, blocked_s: int = 80) -> list[Row]:
    grants = [row.pop("grants", 0) for row in differs]
    locks = rows("gold.queue_lock", ASKED, differs).with_columns(pl.Series("grants", grants, pl.Int64))
    made = lock_findings(blocked_locks(locks), "c", blocked_s, 120)
    assert dict(made.schema) == SCHEMA
    return made.sort("from_ts").rows(named=True)


def every(seconds: int, until: int, **differs: Any) -> list[Row]:
    return [{"ts": at(s)} | differs for s in range(0, until + 1, seconds)]


def test_a_client_that_waits_for_the_lock_of_another_one() -> None:
    (row,) = found(*every(20, 140))
    assert row["summary"] == (
        "Group g: 1 client (c2) could not lock 1 queue (t b/0) for 140 s: client c1 had the lock."
    )
    assert (row["client_id"], row["queue_id"], row["severity"]) == ("c2", 0, "warning")
    assert keys_of(row["evidence"])[0] == "record_id=r0 topic=t broker_name=b queue_id=0"
    assert row["evidence_count"] == 8


def test_the_lock_of_a_client_that_died_is_none() -> None:
    # outages-5.3.3: the client of version 5 asks each second until the lock expires.
    assert found(*every(1, 60)) == []


def test_a_grant_in_between_ends_the_wait() -> None:
    assert found(*every(20, 60), *({"ts": at(s), "grants": 1} for s in (120, 140, 160))) == []


def test_attempts_far_between_are_several() -> None:
    assert found({"ts": at(0)}, {"ts": at(600)}, {"ts": at(1200)}) == []


def test_queues_of_one_holder_are_one_finding() -> None:
    (row,) = found(*every(20, 100), *every(20, 100, queue_id=1, client_id="c3"))
    assert "2 clients (c2, c3) could not lock 2 queues (t b/0, t b/1) for 100 s" in row["summary"]
    assert "client c1 had the locks" in row["summary"]
    assert (row["client_id"], row["topic"]) == (None, "t")


def test_an_unknown_holder_is_named_so() -> None:
    (row,) = found(*every(20, 100, holder=None))
    assert row["summary"].endswith("for 100 s; the client that had them was not recorded.")


def test_granted_locks_are_none() -> None:
    assert found(*every(20, 200, actual="granted")) == []
