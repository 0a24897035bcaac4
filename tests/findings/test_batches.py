"""Groups that catch up slowly because their brokers read from disk."""

from __future__ import annotations

from typing import Any

import polars as pl

from mqreplay.decisions.pull_batch import pull_batches
from mqreplay.findings.batches import disk_bound
from mqreplay.findings.shape import SCHEMA
from silver_moments import at
from silver_rows import rows

Row = dict[str, Any]
PULL = {"consumer_group": "g", "topic": "t", "broker_name": "b", "queue_id": 0, "client_id": "c1", "broker_id": 0}
PULL |= {"response_code": 0, "msg_count": 8, "body_bytes": 800, "last_store_size": 100}
SLOW = {"response_code": 0, "diff_min": 2000, "memory": 1000}


def read(s: int, queue_id: int = 0, arrived: int = 0, **more: Any) -> Row:
    """A read of 8 messages at a second; ``arrived`` messages came to the queue by then."""
    return {"request_ts": at(s), "queue_id": queue_id, "next_begin_offset": 8 * s, "max_offset": 5000 + arrived} | more


def found(pulls: list[Row], memory: int = 1000, fast: tuple[str, ...] = ()) -> list[Row]:
    pull = rows("silver.pull", PULL, pulls)
    slow = [{"record_id": name, "memory": memory} for name in pull["record_id"] if name not in fast]
    suggestions = rows("gold.slave_suggestion", PULL | SLOW, slow)
    broker = rows("silver.broker", {}, [])
    runs = pull_batches(pull, suggestions, broker, pl.lit(True), 120).disk_runs
    return disk_bound(runs, "c", 120, 60).rows(named=True)


def test_a_group_that_reads_from_disk() -> None:
    (row,) = found([read(s, queue) for s in range(101) for queue in (0, 1)])
    assert (row["severity"], row["from_ts"], row["to_ts"], row["queue_id"]) == ("warning", at(0), at(100), None)
    assert row["summary"] == (
        "Group g read t in 2 queues (b/0, b/1) from disk for 100 s: 1616 messages in 202 pulls, 8 messages or 65536"
        " bytes at most in each; 0 messages arrived meanwhile. 8400 messages are waiting: at this speed it catches up"
        " in 8 min."
    )
    assert (row["evidence_count"], row["evidence"][0]["table_name"]) == (202, "gold.slave_suggestion")


def test_as_many_arrive_as_it_reads() -> None:
    (row,) = found([read(s, arrived=8 * s + 8 * (s > 99)) for s in range(101)])
    assert row["summary"].endswith("at this speed it never catches up.")


def test_a_group_that_reads_from_memory_again_is_only_reported() -> None:
    (row,) = found([*(read(s) for s in range(101)), read(102)], fast=("r101",))
    assert row["severity"] == "info"
    assert row["summary"].endswith(" Then the group was near enough to the end to read from memory again.")


def test_a_slave_that_takes_everything_to_be_on_disk() -> None:
    (row,) = found([read(s) for s in range(101)], memory=-90)
    assert row["summary"].endswith(" A slave takes all messages to be on disk: its effective ratio is below 1 percent.")


def test_short_times_are_no_finding() -> None:
    assert found([read(s) for s in range(60)]) == []
    assert dict(disk_bound(pl.DataFrame(), "c", 120, 60).schema) == SCHEMA
