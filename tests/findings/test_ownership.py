"""Findings of queues without one owner: long disputes and idle members, never seconds of disagreement."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from evidence_keys import evidence_of
from mqreplay.findings.ownership import ownership_findings, unheld_findings
from mqreplay.findings.shape import SCHEMA
from silver_moments import at
from silver_rows import rows

DISPUTE_S, GAP_S = 45, 120
IDLE_LIMITS = (40, 2, 20)  # seconds; rebalances; the interval between them in seconds
INSTANT = pl.Datetime("us", "UTC")
DISPUTES = {
    "consumer_group": pl.String,
    "topic": pl.String,
    "broker_name": pl.String,
    "queue_id": pl.Int32,
    "from_ts": INSTANT,
    "to_ts": INSTANT,
    "owners": pl.Int64,
}
IDLE = {
    "consumer_group": pl.String,
    "client_id": pl.String,
    "from_ts": INSTANT,
    "to_ts": INSTANT,
    "rebalances": pl.Int64,
}
Row = dict[str, Any]
SHOWN = pl.DataFrame({"consumer_group": ["g"], "table_name": ["silver.rebalance"]})
QUEUE = {"consumer_group": "g", "topic": "T", "broker_name": "b", "queue_id": 0}


def dispute(owners: int, began: float, ended: float, **differs: object) -> Row:
    return QUEUE | {"owners": owners, "from_ts": at(began), "to_ts": at(ended)} | differs


def idle(began: float, ended: float, client: str = "c1", rebalances: int = 0) -> Row:
    span = {"from_ts": at(began), "to_ts": at(ended), "rebalances": rebalances}
    return {"consumer_group": "g", "client_id": client} | span


def found(disputes: list[Row], members: list[Row]) -> list[Row]:
    frames = pl.DataFrame(disputes, DISPUTES), pl.DataFrame(members, IDLE)
    return (
        ownership_findings(*frames, SHOWN, "c", DISPUTE_S, *IDLE_LIMITS, GAP_S)
        .sort("kind", "from_ts", "client_id")
        .to_dicts()
    )


def test_a_queue_left_to_nobody_and_one_held_twice():
    double, orphan = found([dispute(2, 0, 200), dispute(0, 0, 200, queue_id=1)], [])
    assert double["summary"] == (
        "Group g: 1 queue of T (b/0) was held by up to 2 clients at once, for 200 queue-seconds; messages of it were"
        " consumed more than once."
    )
    assert orphan["summary"] == (
        "Group g left 1 queue of T (b/1) to nobody: 200 queue-seconds in which nobody consumed it."
    )
    kinds = [(row["kind"], row["severity"]) for row in (double, orphan)]
    assert kinds == [("double_owned_queue", "warning"), ("orphan_queue", "warning")]
    assert (double["queue_id"], orphan["queue_id"], orphan["broker_name"]) == (0, 1, "b")
    assert double["evidence"] == [evidence_of("gold.queue_owner", **QUEUE)]
    seen = evidence_of("silver.rebalance", consumer_group="g", topic="T")
    assert orphan["evidence"] == [seen], "no row of queue_owner names nobody"


def test_a_summary_names_queues_in_order_and_counts_the_rest():
    (orphan,) = found([dispute(0, 0, 200, queue_id=queue) for queue in range(19)], [])
    assert "left 19 queues of T (b/0, b/1, b/2, " in orphan["summary"]
    assert "b/15 and 3 more queues) to nobody" in orphan["summary"]


def test_queues_of_one_group_and_topic_near_in_time_are_one_finding():
    disputes = [dispute(2, 0, 100), dispute(4, 0, 100, queue_id=1), dispute(3, 220, 270.5)]
    (double,) = found(disputes, [])
    assert "2 queues of T (b/0, b/1) were held by up to 4 clients at once, for 251 queue-seconds;" in double["summary"]
    assert (double["from_ts"], double["to_ts"], double["queue_id"]) == (at(0), at(270.5), None)
    assert len(double["evidence"]) == 2
    separate = [dispute(2, 0, 100), dispute(2, 220.001, 300), dispute(2, 0, 100, topic="U")]
    assert len(found(separate, [])) == 3


@pytest.mark.parametrize(("seconds", "reported"), [(45, 0), (45.001, 1)])
def test_seconds_of_disagreement_are_normal(seconds, reported):
    assert len(found([dispute(2, 60, 60 + seconds)], [])) == reported
    assert len(found([dispute(0, 60, 60 + seconds)], [])) == reported


def test_a_retry_topic_counts_only_if_messages_were_sent_to_it():
    retry = {"topic": "%RETRY%g"}
    disputes = [dispute(0, 0, 100, **retry), dispute(2, 0, 100, **retry)]
    assert found(disputes, []) == []
    frames = pl.DataFrame(disputes, DISPUTES), pl.DataFrame([], IDLE)
    both = ownership_findings(*frames, SHOWN, "c", DISPUTE_S, *IDLE_LIMITS, GAP_S, {"%RETRY%g", "%RETRY%h"})
    assert both["severity"].to_list() == ["warning"] * 2


@pytest.mark.parametrize(("seconds", "reported"), [(40, 0), (40.001, 1)])
def test_a_member_is_idle_after_two_rebalances(seconds, reported):
    assert len(found([], [idle(10, 10 + seconds)])) == reported


@pytest.mark.parametrize(
    ("seconds", "rebalances", "reported"), [(25, 2, 0), (25.001, 2, 1), (25.001, 1, 0), (39, 1, 0), (38, 3, 1)]
)
def test_a_member_that_got_nothing_in_two_rebalances_is_idle_sooner(seconds, rebalances, reported):
    assert len(found([], [idle(10, 10 + seconds, rebalances=rebalances)])) == reported


def test_an_idle_consumer_is_named():
    first, second = found([], [idle(10, 60.5), idle(10, 60.5), idle(10, 100, "c2", 5)])
    assert second["summary"] == "Consumer c2 of group g held no queue for 90 s, in 5 rebalances."
    assert first["summary"] == "Consumer c1 of group g held no queue for 51 s."
    assert second["client_id"] == "c2"
    assert (first["kind"], first["severity"], first["from_ts"]) == ("idle_consumer", "info", at(10))
    assert first["evidence"] == [evidence_of("silver.rebalance", consumer_group="g", client_id="c1")]


def test_no_rows_give_no_findings():
    frames = pl.DataFrame(schema=DISPUTES), pl.DataFrame(schema=IDLE)
    assert ownership_findings(*frames, SHOWN, "c", DISPUTE_S, *IDLE_LIMITS, GAP_S).schema == SCHEMA


def test_evidence_of_a_polled_group_is_what_its_members_answered_and_what_brokers_listed():
    tables = ["silver.assignment", "silver.consumer_list"]
    polled = pl.DataFrame({"consumer_group": ["g", "g"], "table_name": tables})
    disputes = pl.DataFrame([dispute(0, 0, 200), dispute(2, 0, 200)], DISPUTES)
    frames = disputes, pl.DataFrame([idle(0, 200)], IDLE)
    made = ownership_findings(*frames, polled, "c", DISPUTE_S, *IDLE_LIMITS, GAP_S).sort("kind")
    double, lonely, orphan = made["evidence"].to_list()
    of_group = [evidence_of(table, consumer_group="g") for table in tables]
    assert orphan == of_group
    assert double == [evidence_of("gold.queue_owner", **QUEUE), *of_group]
    assert lonely == [
        evidence_of("silver.assignment", consumer_group="g", client_id="c1"),
        evidence_of("silver.consumer_list", consumer_group="g"),
    ]


def test_queues_for_which_mqadmin_found_no_client() -> None:
    queues = [{"topic": "T", "broker_name": "b", "queue_id": queue_id} for queue_id in range(3)]
    offsets = [
        queue | {"broker_offset": 9, "consumer_offset": offset} for queue, offset in zip(queues, (4, 9, 2), strict=True)
    ]
    stats = {"consumer_group": "g", "broker_name": "b", "broker_id": 0, "offsets": offsets, "unheld": queues[:2]}

    def stated(*outputs: dict[str, Any]) -> list[dict[str, Any]]:
        answers = rows("silver.consume_stats", stats, outputs)
        return unheld_findings(answers, "c", 45).to_dicts()

    (row,) = stated({"ts": at(0)}, {"ts": at(60)})
    assert row["summary"] == (
        "Group g on T: mqadmin found a client for other queues, but none for 1 queue (b/0), in 2 outputs over 60 s;"
        " 5 messages waited there."
    )
    assert (row["severity"], row["confidence"], row["evidence_count"]) == ("warning", 0.7, 2)
    (once,) = stated({"ts": at(0)}, {"ts": at(60), "unheld": []})
    assert once["severity"] == "info"
    assert stated({"ts": at(0), "unheld": None}, {"ts": at(60), "unheld": None}) == []
