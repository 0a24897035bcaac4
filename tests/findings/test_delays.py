"""Delay levels that stay behind what was due."""

from __future__ import annotations

import dataclasses
from typing import Any

import polars as pl

from evidence_keys import keys_of
from findings.test_every import LIMITS, evidence_of
from mqreplay.findings.delays import find
from mqreplay.findings.shape import SCHEMA
from silver_moments import at
from silver_rows import rows

Row = dict[str, Any]
READING = {"broker_name": "b", "broker_id": 0, "queue_id": 2, "delay_level": 3, "delay_ms": 10_000, "due_offset": 10}
READING |= {"delivered_offset": 5, "delayed_end": 20, "judgement": "differ"}


def found(*readings: Row) -> list[Row]:
    stated = [row.pop("is_stated", False) for row in readings]
    delays = rows("gold.delay_progress", READING, readings).with_columns(pl.Series("is_stated", stated, pl.Boolean))
    made = find(dataclasses.replace(evidence_of(), delays=delays), LIMITS)
    assert dict(made.schema) == SCHEMA
    return made.sort("from_ts").rows(named=True)


def test_an_offset_that_stays_behind() -> None:
    (row,) = found({"ts": at(0)}, {"ts": at(60)}, {"ts": at(120), "due_offset": 17})
    assert row["summary"] == (
        "The master of b delivered no messages of delay level 3 (10 s) for 120 s or longer: 12 messages are overdue."
    )
    assert (row["kind"], row["severity"], row["topic"], row["queue_id"]) == (
        "delay_offset_stuck",
        "warning",
        "SCHEDULE_TOPIC_XXXX",
        2,
    )
    assert keys_of(row["evidence"]) == [f"record_id=r{n} broker_name=b queue_id=2" for n in range(3)]


def test_one_reading_or_an_offset_that_moves_is_none() -> None:
    assert found({"ts": at(0)}) == []
    assert found({"ts": at(0)}, {"ts": at(60), "delivered_offset": 6}, {"ts": at(120), "delivered_offset": 7}) == []
    assert found({"ts": at(0)}, {"ts": at(60), "judgement": "agree"}, {"ts": at(120)}) == []


def test_undetermined_readings_and_other_levels_are_apart() -> None:
    unclear = {"ts": at(30), "judgement": "undetermined"}
    (row,) = found({"ts": at(0)}, unclear, {"ts": at(60)})
    assert len(row["evidence"]) == 2
    other = {"delay_level": 4, "queue_id": 3}
    assert found({"ts": at(0)}, {"ts": at(60)} | other) == []
    assert len(found({"ts": at(0)}, {"ts": at(60)}, {"ts": at(0)} | other, {"ts": at(60)} | other)) == 2


def test_an_offset_after_the_end() -> None:
    (row,) = found({"ts": at(0), "delivered_offset": 77, "delayed_end": 74, "due_offset": None})
    assert row["summary"].startswith(
        "Delay level 3 of the master of b has the offset 77, after the end of its queue (74). A broker before 4.9.2"
    )


def test_one_reading_of_offset_and_end_is_enough() -> None:
    (row,) = found({"ts": at(0), "is_stated": True})
    assert row["summary"] == "The master of b delivered no messages of delay level 3 (10 s): 5 messages are overdue."
