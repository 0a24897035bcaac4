"""The queues of a topic in the order of turns, and which queue follows."""

from __future__ import annotations

from typing import Any

import polars as pl

from mqreplay.evidence.brokers.routes import ROUTE_CHANGES, ROUTE_QUEUES, publish_routes
from silver_moments import at
from silver_rows import rows

MASTERS = [("a", {0: "h:1", 1: "h:2"}), ("b", {0: "h:3"})]
DATA = [("b", 1, 1, 6, 0), ("a", 2, 2, 6, 0)]
ROUTE = {"topic": "t", "queue_datas": DATA, "broker_datas": MASTERS, "ts": at(0)}


def routes(*differs: dict[str, Any]) -> tuple[pl.DataFrame, pl.DataFrame]:
    found = publish_routes(rows("silver.route", ROUTE, differs), pl.Series(["t"]))
    assert [dict(frame.schema) for frame in found] == [ROUTE_CHANGES, ROUTE_QUEUES]
    return found


def test_queues_take_turns_by_broker_name_and_a_retry_leaves_the_broker() -> None:
    _, queues = routes({})
    shown = queues.select("position", "broker_name", "queue_id", "next_broker_name", "next_queue_id").rows()
    assert shown == [(0, "a", 0, "a", 1), (1, "a", 1, "b", 0), (2, "b", 0, "a", 0)]
    assert queues.select("retry_broker_name", "retry_queue_id").rows() == [("b", 0), ("b", 0), ("a", 0)]
    assert queues.select("queues", "brokers").unique().rows() == [(3, 2)]


def test_a_broker_without_a_master_or_permission_has_no_turn() -> None:
    _, queues = routes({"broker_datas": [("a", {1: "h:2"}), ("b", {0: "h:3"})]})
    assert queues["broker_name"].to_list() == ["b"]
    assert queues["retry_broker_name"].to_list() == ["b"], "the only broker"
    _, queues = routes({"queue_datas": [("b", 1, 1, 4, 0), ("a", 2, 2, 6, 0)]})
    assert queues["broker_name"].to_list() == ["a", "a"]


def test_only_changes_of_a_topic_with_sends_count() -> None:
    less = {"queue_datas": DATA[:1]}
    changes, _ = routes({}, {"ts": at(1)}, {"ts": at(2), "topic": "u"}, {"ts": at(3)} | less, {"ts": at(5)})
    assert changes["known_ts"].to_list() == [at(0), at(3), at(5)]
    assert changes["route_id"][0] == changes["route_id"][2]


def test_an_error_and_a_static_topic_give_no_route() -> None:
    mappings = [("a", "__global__", 4)]
    changes, queues = routes({"queue_datas": None, "broker_datas": None}, {"queue_mappings": mappings})
    assert (len(changes), len(queues)) == (0, 0)
