"""Findings of queues that do not advance."""

from __future__ import annotations

from typing import Any

import polars as pl

from evidence_keys import evidence_of
from mqreplay.findings.shape import SCHEMA
from mqreplay.findings.stuck_queues import stuck_findings
from silver_moments import at

GAP_S = 120
STANDSTILL = {
    "consumer_group": pl.String,
    "topic": pl.String,
    "broker_name": pl.String,
    "queue_id": pl.Int32,
    "from_ts": pl.Datetime("us", "UTC"),
    "to_ts": pl.Datetime("us", "UTC"),
    "offset": pl.Int64,
    "waiting": pl.Int64,
    "refused": pl.Int64,
    "age_s": pl.Int64,
}
Row = dict[str, Any]


def standstill(began: float, ended: float, **differs: object) -> Row:
    row = {"consumer_group": "g", "topic": "T", "broker_name": "b", "queue_id": 0, "offset": 30, "waiting": 110}
    return row | {"from_ts": at(began), "to_ts": at(ended), "refused": 0} | differs


def found(*standstills: Row) -> list[Row]:
    return stuck_findings(pl.DataFrame(standstills, STANDSTILL), "c", GAP_S).sort("from_ts").to_dicts()


def test_a_stuck_queue_is_named():
    (row,) = found(standstill(5, 100.5))
    assert row["summary"] == "Group g stood still on T in b/0 at 30 for 96 s, with up to 110 messages waiting."
    place = {"broker_name": "b", "queue_id": 0, "consumer_group": "g", "topic": "T", "severity": "warning"}
    assert place.items() <= row.items()
    assert (row["from_ts"], row["to_ts"], row["confidence"]) == (at(5), at(100.5), 0.95)
    queue = {"broker_name": "b", "queue_id": 0, "consumer_group": "g", "topic": "T"}
    assert row["evidence"] == [evidence_of("silver.offset_change", **queue)]


def test_queues_of_one_group_and_topic_near_in_time_are_one_finding():
    queues = [standstill(0, 100, waiting=1, refused=1), standstill(100, 200, queue_id=1, offset=7, waiting=1)]
    (row,) = found(*queues, standstill(320, 400.499, broker_name="a", waiting=1))
    assert row["summary"] == (
        "Group g stood still on T in a/0, b/0, b/1 for 400 s, with up to 1 message waiting; 1 pull refused meanwhile."
    )
    assert (row["broker_name"], row["queue_id"], len(row["evidence"])) == (None, None, 3)


def test_what_is_further_away_is_another_finding():
    assert len(found(standstill(0, 100), standstill(220.001, 300))) == 2
    assert (
        len(found(standstill(0, 100), standstill(100, 300, topic="U"), standstill(100, 300, consumer_group="h"))) == 3
    )


def test_refused_pulls_are_summed():
    (row,) = found(standstill(0, 100, refused=2), standstill(0, 100, queue_id=1, refused=5))
    assert row["summary"].endswith(" at 30 for 100 s, with up to 110 messages waiting; 7 pulls refused meanwhile.")


def test_the_oldest_of_the_last_consumed_messages_is_named():
    (row,) = found(standstill(0, 100, age_s=90), standstill(0, 100, queue_id=1, age_s=5400))
    assert row["summary"].endswith(" waiting; the last message that it consumed was 5400 s old.")


def test_a_span_of_months():
    (row,) = found(standstill(0, 12_345_678.4))
    assert " for 142 d 21 h, " in row["summary"]


def test_no_rows_give_no_findings():
    assert stuck_findings(pl.DataFrame(schema=STANDSTILL), "c", GAP_S).schema == SCHEMA
