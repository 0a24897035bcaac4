"""Clients that do not finish messages, and brokers that do not answer."""

from __future__ import annotations

from typing import Any

import polars as pl

from mqreplay.findings.shape import SCHEMA
from mqreplay.findings.slow_listeners import slow_brokers, slow_listeners, stalls
from silver_moments import at
from silver_rows import rows

SEEN = {"consumer_group": "g", "topic": "t", "broker_name": "b", "queue_id": 0, "client_id": "c1"}
SEEN |= {"stalled_by": "listener", "stalled_since_ts": at(10), "cached_msgs": 5, "head_offset": 30, "waiting": 90}
EMPTY = {"stalled_by": "broker", "cached_msgs": 0, "head_offset": None}
Row = dict[str, Any]


def found(differs: list[Row]) -> pl.DataFrame:
    frames = {"consumer_group": ["g"], "client_id": ["c9"], "frames": [["shop.Listener.call(Listener.java:44)"]]}
    return stalls(rows("gold.flow_control", SEEN, differs), pl.DataFrame(frames))


def listeners(*differs: Row) -> list[Row]:
    return slow_listeners(found([*differs]), "c", 120).rows(named=True)


def brokers(*differs: Row) -> list[Row]:
    return slow_brokers(found([*differs]), "c", 120).rows(named=True)


def test_a_message_that_is_not_finished() -> None:
    (row,) = listeners({"ts": at(10)}, {"ts": at(95), "cached_msgs": 102})
    assert (row["severity"], row["from_ts"], row["to_ts"], row["client_id"]) == ("warning", at(10), at(95), "c1")
    assert row["summary"] == (
        "The listener of group g did not finish the message at offset 30 of t in b/0 for 85 s; the client cached up to"
        " 102 messages."
    )
    assert row["evidence_count"] == 2


def test_one_answer_of_a_client_and_its_threads() -> None:
    since = {"stalled_since_ts": at(10), "last_consume_ts": at(10)}
    (row,) = listeners({"ts": at(95), "client_id": "c9"} | since)
    assert row["summary"] == (
        "The listener of group g did not finish the message at offset 30 of t in b/0 for 85 s; the client cached up to"
        " 5 messages. Its threads are in shop.Listener.call(Listener.java:44)."
    )


def test_queues_of_a_group_and_topic_are_one_finding() -> None:
    places = [{"ts": at(s), "queue_id": q, "client_id": f"c{q}"} for q in (0, 1) for s in (10, 95)]
    (row,) = listeners(*places, {"ts": at(10), "topic": "u", "stalled_by": None})
    assert (row["queue_id"], row["client_id"], row["broker_name"]) == (None, None, "b")
    assert "did not finish the first messages of t in b/0, b/1 for 85 s" in row["summary"]


def test_a_cache_that_stays_full() -> None:
    (row,) = listeners(*({"ts": at(s), "head_offset": s, "flow_control": "count"} for s in (10, 95)))
    assert row["summary"] == (
        "The listener of group g was too slow for t in b/0 for 85 s; the client cached up to 5 messages; flow control"
        " (count) held its pulls back."
    )


def test_pulls_that_get_no_answer() -> None:
    waits = [EMPTY | {"ts": at(s)} for s in (10, 95)]
    (row,) = brokers(*waits)
    assert row["summary"] == (
        "Pulls of group g from t in b/0 got no answer for 85 s, with up to 90 messages waiting and none in the client."
    )
    assert listeners(*waits) == []


def test_never_both_for_a_queue_and_time() -> None:
    waits = [EMPTY | {"ts": at(s), "client_id": "c2"} for s in (10, 95)]
    holds = [{"ts": at(s)} for s in (10, 95)]
    assert brokers(*waits, *holds) == []
    assert len(brokers(*waits, *({**row, "queue_id": 1} for row in holds))) == 1
    later = [{"ts": at(s), "stalled_since_ts": at(300)} for s in (300, 400)]
    assert len(brokers(*waits, *later)) == 1


def test_no_stalls_no_findings() -> None:
    assert dict(slow_listeners(found([]), "c", 120).schema) == SCHEMA
    assert dict(slow_brokers(found([]), "c", 120).schema) == SCHEMA


def test_pulls_alone_show_a_message_that_is_not_finished() -> None:
    pulled = {"ts": at(12), "stalled_since_ts": at(12), "source": "pull", "cached_msgs": None, "next_ts": at(100)}
    (row,) = listeners(pulled | {"last_offset": 44})
    assert row["summary"] == (
        "The listener of group g did not finish the message at offset 30 of t in b/0 for 88 s; the client pulled the"
        " messages up to offset 44 too."
    )
