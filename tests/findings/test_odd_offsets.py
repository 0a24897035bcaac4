"""Findings about offsets that no queue has: once for each group, topic and client."""

from __future__ import annotations

from typing import Any

import polars as pl

from evidence_keys import evidence_of, keys_of
from mqreplay.evidence.offsets.odd_offsets import NEGATIVE, ODD, PAST_END, UNSURE
from mqreplay.findings.odd_offsets import odd_offset_findings
from mqreplay.findings.offsets import with_deleted_topics
from mqreplay.findings.shape import SCHEMA
from silver_moments import at
from silver_rows import rows

Row = dict[str, Any]


def odd(kind: str, offset: int, end: int | None = None, queue_id: int = 0, **differs: Any) -> Row:
    row = {"odd": kind, "consumer_group": "g", "topic": "T", "broker_name": "b", "queue_id": queue_id}
    row |= {"offset": offset, "queue_max_offset": end, "from_ts": at(queue_id), "to_ts": at(queue_id)}
    of_file = {"table_name": "silver.offset_change", "source_name": "b-0"}
    of_answer = {"table_name": "silver.consume_stats", "source_name": None}
    return row | (of_answer if "record_id" in differs else of_file) | differs


def found(*odds: Row, breaks: list[Row] | None = None) -> list[Row]:
    frame = pl.DataFrame([{name: row.get(name) for name in ODD} for row in odds], ODD)
    findings = odd_offset_findings(frame, rows("gold.offset_continuity", {}, breaks or []), "c")
    assert dict(findings.schema) == SCHEMA
    return findings.sort("kind", "client_id", "severity").to_dicts()


def test_a_negative_offset_says_where_the_group_goes_on() -> None:
    (row,) = found(odd(NEGATIVE, -1), odd(NEGATIVE, -7955368551255983524, queue_id=1))
    assert (row["kind"], row["severity"], row["broker_name"], row["queue_id"]) == (
        "negative_offset",
        "warning",
        "b",
        None,
    )
    assert row["summary"] == (
        "Group g on T: the saved offset of 2 queues (b/1: -7955368551255983524) is negative."
        " A pull at it gets the begin of the queue; its lag is not known."
    )
    assert len(row["evidence"]) == 2


def test_an_answer_past_the_end_names_both_numbers() -> None:
    (row,) = found(odd(PAST_END, 647260583, 100, record_id="r1"))
    assert (row["kind"], row["severity"], row["confidence"], row["queue_id"]) == (
        "offset_beyond_max",
        "warning",
        1.0,
        0,
    )
    assert row["summary"] == (
        "Group g on T: the saved offset of 1 queue (b/0: 647260583) is past the end of the queue at 100."
    )
    assert row["evidence"] == [evidence_of("silver.consume_stats", record_id="r1")]


def test_an_offset_past_any_end_needs_no_end() -> None:
    (row,) = found(odd(PAST_END, 2**63 - 1))
    assert "(b/0: 9223372036854775807) is past the end of any queue." in row["summary"]


def test_what_copies_show_is_not_reported_twice() -> None:
    entry = {"consumer_group": "g", "topic": "T", "broker_name": "b", "broker_id": 0, "queue_id": 0}
    shown = [entry | {"kind": "beyond_max", "from_ts": at(0), "to_ts": at(0), "cause": "unknown"}]
    answers = [odd(PAST_END, 5000, 100, record_id="r1"), odd(PAST_END, 6000, 100, queue_id=1, record_id="r2")]
    (row,) = found(*answers, breaks=shown)
    assert "1 queue (b/1: 6000)" in row["summary"]
    assert found(odd(UNSURE, 101, 100, record_id="r1"), breaks=shown) == []
    assert found(odd(PAST_END, 5000, 100, client_id="c1"), breaks=shown), "a client's file is another one"


def test_each_client_has_a_finding_that_names_it() -> None:
    first, second = found(
        odd(PAST_END, 999999999, 500, 6, client_id="c1", source_name="client-c1"),
        odd(PAST_END, 999999999, 500, 7, client_id="c1", source_name="client-c1"),
        odd(PAST_END, 700, 500, client_id="c2", source_name="client-c2"),
    )
    assert (first["client_id"], second["client_id"]) == ("c1", "c2")
    assert first["summary"] == (
        "Group g on T: the saved offset of 2 queues in the file of client c1 (b/6: 999999999)"
        " is past the end of the queue at 500."
    )
    assert first["advice"].startswith("The client keeps its offsets in a file")
    assert "source_name=client-c1" in keys_of(first["evidence"])[0]


def test_a_difference_of_a_few_messages_is_a_doubt() -> None:
    (row,) = found(odd(UNSURE, 130, 120, record_id="r1"))
    assert (row["severity"], row["confidence"]) == ("info", 0.5)
    assert "may have received messages between its two numbers" in row["summary"]
    assert "Ask twice" in row["advice"]


def test_no_rows_are_no_findings() -> None:
    assert found() == []


def test_an_offset_past_the_end_of_a_topic_that_was_deleted() -> None:
    frame = pl.DataFrame([{name: odd(PAST_END, 5, 1, record_id="r1").get(name) for name in ODD}], ODD)
    findings = odd_offset_findings(frame, rows("gold.offset_continuity", {}, []), "c")
    event = {"event": "topic_deleted", "broker_name": "b", "topic": "T"}
    before, after = ([event | {"ts": at(s)}] for s in (-60, 60))
    (row,) = with_deleted_topics(findings, rows("silver.broker_event", {}, before)).to_dicts()
    assert row["summary"].endswith("at 1; its topic had been deleted and created again, and its queues began at 0.")
    assert with_deleted_topics(findings, rows("silver.broker_event", {}, after)).to_dicts() == findings.to_dicts()
