"""expect_offset_continuity: a chain passes, whatever the offsets do; a gap or a contradiction does not."""

from __future__ import annotations

import json
from typing import Any

from quality_rows import Judge, at, change

NAME = "expect_offset_continuity"


GOOD = {
    "forwards": [change(1, None, 5), change(2, 5, 9)],
    "not from the beginning": [change(7, 5, 9)],
    "a rewind whose cause is known, or that no replay has judged": [
        change(1, None, 63),
        change(2, 63, 28),
        change(3, 28, 999_999),
    ],
    "gone and come again": [change(1, None, 5), change(2, 5, None), change(3, None, 7)],
    "other queues have other chains": [change(1, None, 5), change(2, None, 7, queue_id=1)],
    "other sources have other chains": [change(1, None, 5), change(2, None, 4, source_name="broker-a-1")],
    "not read in order": [change(3, 9, 12), change(1, None, 5), change(2, 5, 9)],
    "first snapshot of all": [change(1, None, 5, from_ts=None)],
}
BAD = {
    "a change is missing": ([change(1, None, 5), change(2, 7, 9)], [(7, 9)]),
    "it came from nowhere": ([change(1, None, 5), change(2, None, 9)], [(None, 9)]),
    "it was gone": ([change(1, 5, None), change(2, 5, 9)], [(5, 9)]),
    "it ends before it begins": ([change(1, None, 5), change(2, 5, 9, from_ts=at(3))], [(5, 9)]),
    "no offset is lost in a float": (
        [change(1, None, 9_007_199_254_740_993), change(2, 9_007_199_254_740_992, 9), change(3, None, 1)],
        [(9_007_199_254_740_992, 9), (None, 1)],
    ),
}


def each_in_its_own_topic(cases: dict[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """All cases in one table: on Spark a table costs seconds, and a topic of its own keeps a case's chains apart."""
    return [row | {"topic": topic} for topic, rows in cases.items() for row in rows]


def test_a_chain_passes(judged: Judge) -> None:
    found = judged("silver.offset_change", each_in_its_own_topic(GOOD))
    assert {name: row.unexpected_sample for name, row in found.items() if not row.passed} == {}
    assert found[NAME].unexpected_count == 0


def gold_break(minutes: float, kind: str, cause: str, **differs: Any) -> dict[str, Any]:
    offset = {
        key: value for key, value in change(minutes, 1, 0).items() if key in ("topic", "consumer_group", "queue_id")
    }
    return {
        **offset,
        "broker_name": "broker-a",
        "broker_id": 0,
        "to_ts": at(minutes),
        "kind": kind,
        "cause": cause,
    } | differs


def test_a_rewind_without_a_cause_fails_and_others_do_not(judged: Judge) -> None:
    rows = [change(1, None, 63), change(2, 63, 28), change(3, 28, 20), change(4, 20, 90), change(5, 90, 80)]
    breaks = [
        gold_break(2, "rewind", "reset"),
        gold_break(3, "rewind", "unknown"),
        gold_break(4, "jump", "unknown"),
        gold_break(5, "rewind", "unknown", queue_id=9),
        gold_break(5, "rewind", "unknown", broker_id=1),
    ]
    found = judged("silver.offset_change", rows, beside={"gold.offset_continuity": breaks})[NAME]
    assert (found.passed, found.unexpected_count) == (False, 1)
    (sample,) = json.loads(found.unexpected_sample or "")
    assert (sample["previous_offset"], sample["new_offset"]) == (28, 20)


def test_a_broken_chain_fails_and_names_its_rows(judged: Judge) -> None:
    cases = {topic: rows for topic, (rows, _) in BAD.items()}
    expected = [(topic, *row) for topic, (_, broken) in BAD.items() for row in broken]
    found = judged("silver.offset_change", each_in_its_own_topic(cases))[NAME]
    assert (found.passed, found.unexpected_count) == (False, len(expected))
    sample = json.loads(found.unexpected_sample or "")
    named = [(row["topic"], row["previous_offset"], row["new_offset"]) for row in sample]
    assert sorted(named, key=str) == sorted(expected, key=str)
    assert {row["source_name"] for row in sample} == {"broker-a-0"}
    assert all(row["to_ts"].startswith("2026-11-21T03:0") and row["to_ts"].endswith("Z") for row in sample)
