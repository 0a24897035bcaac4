"""Which answers of name servers changed a client's addresses, and which addresses it had before."""

from __future__ import annotations

import polars as pl

from mqreplay.evidence.brokers.routes import ADDRESSES, ROUTE_SCHEMA, route_changes
from silver_moments import BEGAN, at
from silver_rows import rows

ROUTE = {"client_id": "c1", "topic": "T"}
BOTH, SLAVE_ONLY = {0: "m:1", 1: "s:1"}, {1: "s:1"}
PAIRS = pl.List(pl.Struct({"broker_name": pl.String, "broker_addrs": ADDRESSES}))


def answer(seconds, *brokers, **differs):
    queues = [(name, 1, 1, 6, 0) for name, _ in brokers]
    return {"ts": at(seconds), "response_ts": at(seconds), "queue_datas": queues, "broker_datas": brokers} | differs


def changes(answers):
    frame = rows("silver.route", ROUTE, answers)
    found = route_changes(frame, [BEGAN])
    as_pairs = frame.with_columns(pl.col("broker_datas").cast(PAIRS))
    assert route_changes(as_pairs, [BEGAN]).equals(found)
    return found


def listed(answers):
    def addresses(entries):
        return None if entries is None else {e["key"]: e["value"] for e in entries}

    rows_found = changes(answers).select("client_id", "broker_name", "known_ts", "broker_addrs", "before").rows()
    return [
        (client, name, (ts - BEGAN).total_seconds(), *map(addresses, addrs)) for client, name, ts, *addrs in rows_found
    ]


def test_repeated_answer_is_no_change():
    answers = [answer(1, ("b", BOTH)), answer(2, ("b", BOTH)), answer(3, ("b", SLAVE_ONLY)), answer(4, ("b", BOTH))]
    assert listed(answers) == [
        ("c1", "b", 1, BOTH, None),
        ("c1", "b", 3, SLAVE_ONLY, BOTH),
        ("c1", "b", 4, BOTH, SLAVE_ONLY),
    ]


def test_addresses_before_are_those_of_the_same_name():
    answers = [answer(1, ("a", BOTH), ("b", SLAVE_ONLY)), answer(2, ("a", SLAVE_ONLY), ("b", SLAVE_ONLY))]
    assert listed(answers) == [
        ("c1", "a", 1, BOTH, None),
        ("c1", "a", 2, SLAVE_ONLY, BOTH),
        ("c1", "b", 1, SLAVE_ONLY, None),
        ("c1", "b", 2, SLAVE_ONLY, SLAVE_ONLY),
    ]


def test_of_two_changes_at_one_instant_the_greater_route_id_is_the_last():
    answers = [answer(1, ("b", SLAVE_ONLY), topic="U"), answer(1, ("b", BOTH))]
    expected = [("c1", "b", 1, BOTH, SLAVE_ONLY), ("c1", "b", 1, SLAVE_ONLY, None)]
    assert listed(answers) == expected
    found = changes(answers)["route_id"].to_list()
    assert found == sorted(found)


def test_order_within_an_answer_is_no_change():
    a, b = ("a", BOTH), ("b", BOTH)
    turned = ("b", dict(reversed(BOTH.items())))
    assert len(listed([answer(1, a, b), answer(2, turned, a)])) == 2


def test_change_of_the_queues_alone_is_a_change_of_the_route():
    wider = answer(2, ("b", BOTH), queue_datas=[("b", 2, 2, 6, 0)])
    assert listed([answer(1, ("b", BOTH)), wider]) == [("c1", "b", 1, BOTH, None), ("c1", "b", 2, BOTH, BOTH)]
    without = answer(2, ("b", BOTH), queue_datas=None)
    assert len(listed([answer(1, ("b", BOTH)), without])) == 2


def test_each_client_and_topic_has_its_own_route_but_topics_share_the_addresses():
    answers = [
        answer(1, ("b", BOTH)),
        answer(2, ("b", SLAVE_ONLY), topic="U"),
        answer(3, ("b", BOTH)),
        answer(3, ("b", BOTH), client_id="c2"),
    ]
    assert listed(answers) == [
        ("c1", "b", 1, BOTH, None),
        ("c1", "b", 2, SLAVE_ONLY, BOTH),
        ("c2", "b", 3, BOTH, None),
    ]


def test_answer_counts_from_when_it_came_and_only_with_brokers():
    late = answer(1, ("b", BOTH)) | {"response_ts": at(1.5)}
    unanswered = answer(2, ("b", SLAVE_ONLY)) | {"response_ts": None}
    empty = answer(3) | {"broker_datas": None}
    assert [row[2] for row in listed([late, unanswered, empty])] == [1.5, 2]


def test_route_id_is_that_of_name_addresses_and_addresses_before():
    answers = [
        answer(1, ("a", BOTH), ("b", BOTH)),
        answer(2, ("a", SLAVE_ONLY), ("b", BOTH)),
        answer(3, ("a", BOTH), ("b", BOTH)),
        answer(4, ("a", SLAVE_ONLY), ("b", BOTH)),
        answer(5, ("a", dict(reversed(BOTH.items()))), ("b", BOTH)),
        answer(5, ("a", BOTH), client_id="c2"),
        answer(6, ("a", {0: "m:1", 1: None}), client_id="c2"),
    ]
    found = changes(answers).filter(pl.col("broker_name") == "a").sort("client_id", "known_ts")
    first, to_slave, back, to_slave_again, turned, others, unset = found["route_id"].to_list()
    assert (to_slave, back, first) == (to_slave_again, turned, others)
    assert len({first, to_slave, back, unset}) == 4


def test_empty_route_gives_an_empty_frame():
    found = route_changes(rows("silver.route", ROUTE, []), [])
    assert found.is_empty()
    assert dict(found.schema) == ROUTE_SCHEMA
