"""Routes of name servers against what RouteInfoManager has by the brokers' topics and the lists of brokers."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from mqreplay.decisions import listed_route as judged
from mqreplay.decisions.listed_route import listed_route, stored_rows
from mqreplay.evidence.brokers.listed_brokers import listed_brokers
from silver_moments import at
from silver_rows import rows

Row = dict[str, Any]
ONE, TWO = "10.0.0.8:9876", "10.0.0.9:9876"
A, A_SLAVE, B = "10.0.0.1:10911", "10.0.0.1:10921", "10.0.0.2:10911"
BOTH = {"a": {0: A, 1: A_SLAVE}, "b": {0: B}}
FOUR = (4, 4, 6)


def topic(seconds: float, broker: str, queues: tuple[int, int, int] | None = FOUR, **differs: object) -> Row:
    read, write, perm = queues or (None, None, None)
    values = {"read_queue_nums": read, "write_queue_nums": write, "perm": perm}
    place = {"source_name": f"{broker}-0", "broker_name": broker, "broker_id": 0, "topic": "orders"}
    return place | values | {"ts": at(seconds), "change": "first" if queues else "removed"} | differs


def brokers(seconds: float, listed: dict[str, dict[int, str]], server: str = ONE) -> Row:
    datas = [{"broker_name": name, "cluster": "C", "broker_addrs": addrs} for name, addrs in listed.items()]
    return {"ts": at(seconds), "namesrv_addr": server, "brokers": datas, "record_id": f"{server} {seconds}"}


def answer(
    seconds: float,
    queues: dict[str, tuple[int, int, int]] | None,
    listed: dict[str, dict[int, str]] | None = None,
    server: str | None = ONE,
    **differs: object,
) -> Row:
    places = {name: (listed or BOTH)[name] for name in queues or {}}
    names = ("read_queue_nums", "write_queue_nums", "perm")
    found = {
        "queue_datas": [
            {"broker_name": name, **dict(zip(names, of, strict=True)), "topic_sys_flag": 0}
            for name, of in (queues or {}).items()
        ],
        "broker_datas": [{"broker_name": name, "broker_addrs": addrs} for name, addrs in places.items()],
        "response_code": 0,
    }
    if queues is None:
        found = {"response_code": 17}
    row = {"ts": at(seconds), "namesrv_addr": server, "topic": "orders", "record_id": f"r{seconds}"}
    return row | found | differs


def verdicts(
    answers: list[Row],
    topics: list[Row] | None = None,
    lists: list[Row] | None = None,
    version: str | None = "4.9.7",
    **properties: str,
) -> pl.DataFrame:
    described = [
        {"broker_name": name, "broker_id": broker_id, "broker_addr": addr, "ts": at(0), "rocketmq_version": version}
        | {"properties": properties}
        for name, broker_id, addr in (("a", 0, A), ("a", 1, A_SLAVE), ("b", 0, B))
    ]
    listed = rows("silver.cluster_info", {}, [brokers(0, BOTH)] if lists is None else lists)
    return listed_route(
        rows("silver.route", {}, answers),
        rows("silver.topic_config", {}, [topic(0, "a"), topic(0, "b")] if topics is None else topics),
        listed_brokers(listed, at(900)),
        rows("silver.broker", {}, described),
    )


def words(found: pl.DataFrame) -> list[tuple[str, str]]:
    return found.sort("ts").select("judgement", "reason").rows()


def test_a_route_of_what_the_brokers_have_agrees() -> None:
    assert words(verdicts([answer(60, {"a": FOUR, "b": FOUR})])) == [("agree", judged.SAME_LIST)]


def test_a_change_may_be_missing_for_a_registration_and_no_longer() -> None:
    grown = [topic(0, "a"), topic(0, "b"), topic(200, "a", (8, 8, 6), change="changed")]
    old, new = {"a": FOUR, "b": FOUR}, {"a": (8, 8, 6), "b": FOUR}
    # 30 s until the next registration, 6 s for its answer, 5 s of slack.
    found = verdicts([answer(230, new), answer(240, old), answer(242, old), answer(250, new)], grown)
    assert words(found) == [
        ("agree", judged.SAME_LIST),
        ("agree", judged.SAME_LIST),
        ("differ", judged.OTHER_QUEUES),
        ("agree", judged.SAME_LIST),
    ]
    row = found.filter(pl.col("judgement") == "differ").row(0, named=True)
    assert row["broker_name"] == "a"
    assert row["expected"][0] == f"a: 8 read and 8 write queues, perm 6; 0 at {A}, 1 at {A_SLAVE}"


def test_a_new_topic_may_be_listed_before_it_is_copied() -> None:
    made = [topic(0, "a", topic="older"), topic(0, "b", topic="older"), topic(300, "a"), topic(300, "b")]
    found = verdicts([answer(100, None), answer(290, {"a": FOUR}), answer(400, {"a": FOUR})], made)
    assert [row[0] for row in words(found)] == ["agree", "agree", "differ"]
    assert words(found)[-1] == ("differ", judged.LACKS)


def test_a_route_without_the_write_permission_of_the_broker_is_wiped() -> None:
    found = verdicts([answer(60, {"a": (4, 4, 4), "b": FOUR}), answer(61, {"a": FOUR, "b": FOUR})])
    assert words(found) == [("differ", judged.WIPED), ("agree", judged.SAME_LIST)]
    read_only = [topic(0, "a", (4, 4, 4)), topic(0, "b")]
    assert words(verdicts([answer(60, {"a": FOUR, "b": FOUR})], read_only)) == [("differ", judged.ADDED)]


def test_a_route_names_whether_producers_find_a_queue() -> None:
    wiped = {"a": (4, 4, 4), "b": (4, 4, 4)}
    kept = stored_rows(verdicts([answer(60, wiped), answer(61, {"a": (4, 4, 4), "b": FOUR})]))
    assert kept.sort("from_ts").select("writable", "expected_writable").rows() == [(False, True), (True, True)]


def test_a_route_may_name_any_number_of_queues() -> None:
    many = {"a": (2**31 - 1, 2**31 - 1, 6), "b": FOUR}
    (row,) = stored_rows(verdicts([answer(60, many)])).to_dicts()
    assert (row["writable"], row["judgement"]) == (True, "differ")


def test_a_permission_that_the_broker_had_before_is_only_old() -> None:
    changed = [topic(0, "a"), topic(0, "b"), topic(100, "a", (4, 4, 4), change="changed")]
    assert words(verdicts([answer(300, {"a": FOUR, "b": FOUR})], changed)) == [("differ", judged.OTHER_QUEUES)]


def test_a_slave_that_became_the_master_takes_its_place() -> None:
    elected = {"a": {0: A_SLAVE}, "b": {0: B}}
    lists = [brokers(0, BOTH), brokers(200, elected), brokers(210, elected)]
    queues = {"a": FOUR, "b": FOUR}
    found = verdicts([answer(230, queues), answer(300, queues, elected), answer(301, queues)], lists=lists)
    assert [row[0] for row in words(found)] == ["agree", "agree", "differ"]


@pytest.mark.parametrize(("version", "perm"), [("4.9.7", 4), ("5.3.3", 0)])
def test_a_broker_registers_its_own_permission(version: str, perm: int) -> None:
    topics = [topic(0, name, (4, 4, 2)) for name in ("a", "b")]
    listed = {"a": (4, 4, perm), "b": (4, 4, perm)}
    found = verdicts([answer(100, listed)], topics, version=version, brokerPermission="4")
    assert words(found) == [("agree", judged.SAME_LIST)]


def test_a_broker_that_left_the_list_leaves_the_route_with_its_topics() -> None:
    gone = [brokers(0, BOTH), brokers(200, {"b": {0: B}}), brokers(320, {"b": {0: B}}), brokers(400, BOTH)]
    both, only_b = {"a": FOUR, "b": FOUR}, {"b": FOUR}
    found = verdicts([answer(230, both), answer(300, only_b), answer(310, both), answer(500, both)], lists=gone)
    assert [row[0] for row in words(found)] == ["agree", "agree", "undetermined", "agree"]
    assert words(found)[2][1] == judged.TOPIC_MISSING


def test_a_broker_name_without_its_master_keeps_its_topics() -> None:
    no_master = {"a": {1: A_SLAVE}, "b": {0: B}}
    lists = [brokers(0, BOTH), brokers(200, no_master)]
    found = verdicts([answer(300, {"a": FOUR, "b": FOUR}, no_master), answer(301, {"b": FOUR})], lists=lists)
    assert words(found) == [("agree", judged.SAME_LIST), ("differ", judged.LACKS)]


def test_addresses_are_those_of_the_name_servers_own_list() -> None:
    other = {"a": {0: "10.0.0.7:10911", 1: A_SLAVE}, "b": {0: B}}
    acting = {"a": {0: A_SLAVE}, "b": {0: B}}
    queues = {"a": FOUR, "b": FOUR}
    found = verdicts([answer(100, queues, other), answer(101, queues, acting)])
    assert words(found) == [("differ", judged.OTHER_ADDRESSES), ("undetermined", judged.ACTING)]


def test_no_registration_removes_a_topic_but_an_operator_may() -> None:
    removed = [topic(0, "a"), topic(0, "b"), topic(100, "a", None), topic(100, "b", None)]
    found = verdicts([answer(300, {"a": FOUR, "b": FOUR}), answer(301, None), answer(302, {"a": (8, 8, 6)})], removed)
    assert [row[0] for row in words(found)] == ["agree", "agree", "differ"]


def test_what_was_not_recorded_is_not_judged() -> None:
    queues = {"a": FOUR, "b": FOUR}
    (no_copy,) = words(verdicts([answer(100, queues)], [topic(0, "a")]))
    assert no_copy == ("undetermined", judged.NO_COPY)
    found = verdicts(
        [answer(100, queues), answer(101, {"a": FOUR}), answer(102, {"a": (2, 2, 6), "b": FOUR})], lists=[]
    )
    assert words(found) == [
        ("agree", judged.SAME_LIST),
        ("undetermined", judged.NO_LISTS),
        ("differ", judged.OTHER_QUEUES),
    ]
    (early,) = words(verdicts([answer(3, {"a": (2, 2, 6)})]))
    assert early == ("undetermined", judged.NO_COPY)


def test_an_answer_of_an_unknown_name_server_agrees_with_any() -> None:
    lists = [brokers(0, BOTH), brokers(0, {"b": {0: B}}, TWO)]
    (any_server,) = words(verdicts([answer(100, {"b": FOUR}, server=None)], lists=lists))
    assert any_server == ("agree", judged.SAME_LIST)
    assert words(verdicts([answer(100, {"b": FOUR})], lists=lists)) == [("differ", judged.LACKS)]


def test_errors_say_nothing_of_the_route() -> None:
    assert verdicts([answer(100, None, error="timeout", response_code=None)]).is_empty()
    assert verdicts([]).is_empty()


def test_equal_answers_are_one_row_and_confirmed_ones_count() -> None:
    both = {"a": FOUR, "b": FOUR}
    late = answer(300, {"a": FOUR}, previous_ts=at(290))
    kept = stored_rows(verdicts([answer(100, both), answer(130, both), answer(160, both), late]))
    assert kept.select("from_ts", "to_ts", "answers", "judgement").rows() == [
        (at(100), at(290), 4, "agree"),
        (at(300), at(300), 1, "differ"),
    ]
    assert kept["record_id"].to_list() == ["r100", "r300"]


def test_a_route_that_stays_old_while_it_is_only_confirmed_differs_from_then_on() -> None:
    grown = [topic(0, "a"), topic(0, "b"), topic(200, "a", (8, 8, 6), change="changed")]
    old = {"a": FOUR, "b": FOUR}
    answers = [answer(100, old), answer(500, {"a": (8, 8, 6), "b": FOUR}, previous_ts=at(480))]
    kept = stored_rows(verdicts(answers, grown))
    assert kept.select("from_ts", "to_ts", "judgement").rows() == [
        (at(100), at(100), "agree"),
        (at(480), at(480), "differ"),
        (at(500), at(500), "agree"),
    ]
