"""Groups that skipped messages, or began with the oldest ones, because no offset was stored."""

from __future__ import annotations

from typing import Any

import polars as pl

from evidence_keys import keys_of
from mqreplay.findings.shape import SCHEMA
from mqreplay.findings.starts import first_uses_of_shard, new_starts_of_shard, oldest_starts, skipped_starts
from silver_moments import at
from silver_rows import rows

START = {"consumer_group": "g", "topic": "t", "broker_name": "b", "queue_id": 0, "client_id": "c1"}
START |= {"request_ts": at(300), "had_offset": False, "actual_offset": 51, "skipped": 51, "max_offset": 60}
START |= {"consume_from_where": "CONSUME_FROM_LAST_OFFSET"}
OLDEST = {"actual_offset": 0, "skipped": 0, "max_offset": 600, "consume_from_where": "CONSUME_FROM_FIRST_OFFSET"}
Row = dict[str, Any]


def starts(differs: list[Row]) -> pl.DataFrame:
    return new_starts_of_shard(rows("gold.queue_start", START, differs))


def uses(*seconds: float, **more: str) -> pl.DataFrame:
    return first_uses_of_shard(rows("silver.pull", START | more, [{"request_ts": at(s)} for s in seconds]))


def skipped(differs: list[Row], used: pl.DataFrame) -> list[Row]:
    return skipped_starts(starts(differs), used, "c", 120).rows(named=True)


def oldest(differs: list[Row], used: pl.DataFrame, least: int = 1000) -> list[Row]:
    return oldest_starts(starts([OLDEST | row for row in differs]), used, "c", 120, least).rows(named=True)


def test_a_new_queue_of_a_group_that_consumed_the_topic_loses_what_was_in_it() -> None:
    (found,) = skipped([{"queue_id": 4}, {"queue_id": 5, "skipped": 9, "request_ts": at(320)}], uses(10, 300))
    assert (found["severity"], found["from_ts"], found["to_ts"]) == ("critical", at(300), at(320))
    assert found["summary"] == (
        "Group g skipped 60 messages of t in 2 queues (b/4, b/5): no stored offset, and CONSUME_FROM_LAST_OFFSET."
        " It had consumed the topic before: these messages are lost to it."
    )
    assert keys_of(found["evidence"]) == ["record_id=r0", "record_id=r1"]


def test_a_new_group_that_skips_is_only_reported() -> None:
    (found,) = skipped([{}], uses(299, 300))
    assert (found["severity"], found["queue_id"], found["client_id"]) == ("info", 0, "c1")
    assert found["summary"].endswith("No earlier pull of the group from the topic was recorded.")


def test_what_is_no_loss_is_no_finding() -> None:
    none = [{"had_offset": True}, {"had_offset": None}, {"skipped": 0}, {"skipped": None}, {"topic": "%RETRY%g"}]
    assert skipped(none, uses(10)) == []


def test_starts_far_apart_are_two_findings() -> None:
    assert len(skipped([{}, {"request_ts": at(421)}], uses(300))) == 2


def test_the_oldest_messages_are_reported_if_many_wait() -> None:
    assert oldest([{}], uses(300)) == []
    (found,) = oldest([{"queue_id": q} for q in range(9)], uses(300))
    assert (found["severity"], found["queue_id"]) == ("info", None)
    assert found["summary"] == (
        "Group g began with the oldest messages of t in 9 queues; 5400 messages waited."
        " It has CONSUME_FROM_FIRST_OFFSET."
    )
    assert oldest([{"had_offset": True}], uses(300), 1) == []


def test_lost_offsets_and_a_young_topic_are_a_warning() -> None:
    (lost,) = oldest([{}], uses(10), 600)
    assert lost["severity"] == "warning"
    assert lost["summary"].endswith("It had consumed the topic before, and had no stored offset any more.")
    (young,) = oldest([{"consume_from_where": "CONSUME_FROM_LAST_OFFSET"}], uses(300), 600)
    assert young["severity"] == "warning"
    assert "which does not count in queues that still have all messages" in young["summary"]


def test_no_starts_no_findings() -> None:
    assert dict(skipped_starts(starts([]), uses(), "c", 120).schema) == SCHEMA
    assert dict(oldest_starts(starts([]), uses(), "c", 120, 1).schema) == SCHEMA
