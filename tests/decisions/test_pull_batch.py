"""The size of batches, against the limits of reads from memory and from disk."""

from __future__ import annotations

from typing import Any

import polars as pl

from mqreplay.decisions.pull_batch import FROM_DISK, WITHIN, Batches, pull_batches
from mqreplay.evidence.brokers.broker_descriptions import STORE_PLUG_IN
from silver_moments import at
from silver_rows import rows

Row = dict[str, Any]
PULL = {"consumer_group": "g", "topic": "t", "broker_name": "b", "queue_id": 0, "client_id": "c1", "broker_id": 0}
PULL |= {"request_ts": at(0), "response_ts": at(1), "response_code": 0, "msg_count": 8, "body_bytes": 800}
PULL |= {"next_begin_offset": 8, "max_offset": 100, "last_store_size": 100}
SLOW = {"response_code": 0, "diff_min": 2000, "memory": 1000, "effective_ratio": 40}
BROKER = {"broker_name": "b", "broker_id": 0, "ts": at(-9), "rocketmq_version": "4.9.7", "properties": {}}


def batches(pulls: list[Row], slow: tuple[str, ...] = (), memory: int = 1000, **properties: str) -> Batches:
    suggestions = rows("gold.slave_suggestion", PULL | SLOW, [{"record_id": name, "memory": memory} for name in slow])
    broker = rows("silver.broker", BROKER, [{"properties": properties}])
    return pull_batches(rows("silver.pull", PULL, pulls), suggestions, broker, pl.lit(True), 120)


def counts(found: Batches) -> dict[tuple[str, str], int]:
    return {(row["judgement"], row["reason"]): row["decisions"] for row in found.counts.rows(named=True)}


def test_batches_within_the_limits_are_counted() -> None:
    found = batches([{}, {"msg_count": 32, "body_bytes": 262_144}, {"response_code": 19, "msg_count": 0}], ("r0",))
    assert counts(found) == {("agree", FROM_DISK): 1, ("agree", WITHIN): 1}
    assert found.differing.is_empty()


def test_more_than_8_messages_from_disk_differ() -> None:
    found = batches([{"msg_count": 9, "body_bytes": 900}, {"msg_count": 9, "body_bytes": 900}], ("r1",))
    (row,) = found.differing.rows(named=True)
    assert (row["record_id"], row["from_disk"], row["most_messages"], row["most_bytes"]) == ("r1", True, 8, 65_536)
    assert row["reason"] == "9 messages of 900 bytes read from disk, which gives at most 8 and 65536 bytes"
    assert sum(counts(found).values()) == 2


def test_more_than_32_messages_or_256_kib_differ_wherever_they_lie() -> None:
    large = {"msg_count": 2, "body_bytes": 262_145}
    found = batches([{"msg_count": 33}, large, large | {"msg_count": 1, "last_store_size": 262_145}])
    assert found.differing["record_id"].to_list() == ["r0", "r1"], "one message may be of any size"


def test_the_settings_of_the_broker_count() -> None:
    raised = {"maxTransferCountOnMessageInDisk": "32"}
    assert batches([{"msg_count": 9, "body_bytes": 900}], ("r0",), **raised).differing.is_empty()
    lowered = {"maxTransferCountOnMessageInMemory": "4"}
    assert batches([{"msg_count": 5}], **lowered).differing["most_messages"].to_list() == [4]


def test_a_plug_in_of_the_store_bounds_batches_otherwise() -> None:
    found = batches([{"msg_count": 9, "body_bytes": 900}], ("r0",), messageStorePlugIn="a.TieredMessageStore")
    assert found.differing.is_empty()
    assert counts(found) == {("undetermined", STORE_PLUG_IN): 1}


def test_the_settings_at_the_time_of_the_pull_count() -> None:
    pulls = [{"msg_count": 33, "request_ts": at(s)} for s in (-60, 50, 150)]
    described = [
        {"properties": {"maxTransferCountOnMessageInMemory": "40"}},  # also before its recording
        {"properties": {}, "ts": at(100)},  # the broker was restarted with the default of 32
    ]
    nothing = rows("gold.slave_suggestion", PULL | SLOW, [])
    found = pull_batches(
        rows("silver.pull", PULL, pulls), nothing, rows("silver.broker", BROKER, described), pl.lit(True), 120
    )
    assert found.differing["request_ts"].to_list() == [at(150)]
    assert found.differing["most_messages"].to_list() == [32]


def test_reads_from_disk_are_one_run_of_a_queue() -> None:
    second = {"request_ts": at(60), "response_ts": at(61), "next_begin_offset": 16, "max_offset": 130}
    (run,) = batches([{}, second], ("r0", "r1")).disk_runs.rows(named=True)
    assert (run["pulls"], run["messages"], run["bytes"], run["arrived"], run["waiting"]) == (2, 16, 1600, 30, 114)
    assert (run["from_ts"], run["to_ts"], run["went_on"], run["never_in_memory"]) == (at(0), at(61), False, False)
    (run,) = batches([{}, {}, second], ("r0", "r1"), memory=-90).disk_runs.rows(named=True)
    assert (run["pulls"], run["went_on"], run["never_in_memory"]) == (2, True, True)
    assert batches([{}, second], ("r0",)).disk_runs.is_empty(), "one read has no speed"
    assert batches([{"next_begin_offset": 100}], ("r0",)).disk_runs.is_empty(), "nothing was left in the queue"
