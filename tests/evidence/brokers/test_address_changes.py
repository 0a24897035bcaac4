"""When name servers' lists and clients' routes lost an address, and had it again; changes and polls alike."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any

import polars as pl

from mqreplay.evidence.brokers.address_changes import (
    CLIENT_INSTANTS,
    address_changes,
    listed_answers,
    needed_answers,
    routed_answers,
)
from mqreplay.evidence.brokers.listed_brokers import listed_brokers
from silver_moments import at
from silver_rows import rows

Row = dict[str, Any]
A, B = "h:1", "h:2"
STOPPED, UNTIL = at(100), at(900)
BOTH, SLAVE = {0: A, 1: B}, {1: B}


def listed(seconds: float, addrs: Mapping[int, str], before: float | None = None, server: str = "n:1") -> Row:
    brokers = [{"broker_name": "b", "cluster": "c", "broker_addrs": [*addrs.items()]}] if addrs else []
    previous = None if before is None else at(before)
    return {"ts": at(seconds), "namesrv_addr": server, "brokers": brokers, "previous_ts": previous} | {
        "record_id": f"{server} {seconds}"
    }


def routed(seconds: float, addrs: Mapping[int, str] | None, client: str = "c1", topic: str = "t") -> Row:
    brokers = None if addrs is None else [{"broker_name": "b", "broker_addrs": [*addrs.items()]}]
    code = 17 if addrs is None else 0
    answer = {"ts": at(seconds), "response_ts": at(seconds), "client_id": client, "topic": topic, "error": None}
    return answer | {"broker_datas": brokers, "response_code": code, "record_id": f"{client} {seconds} {topic}"}


def lists(*answers: Row, until: dt.datetime = UNTIL) -> list[Row]:
    found = listed_brokers(rows("silver.cluster_info", {}, answers), at(900))
    return address_changes(listed_answers(found), "b", A, STOPPED, until).to_dicts()


def routes(*answers: Row, until: dt.datetime = UNTIL) -> list[Row]:
    frame = routed_answers(rows("silver.route", {}, answers))
    return address_changes(frame, "b", A, STOPPED, until).to_dicts()


def test_polls_that_list_the_broker_no_longer_and_then_again() -> None:
    (found,) = lists(listed(90, BOTH), listed(99, BOTH), listed(101, SLAVE), listed(150, SLAVE), listed(152, BOTH))
    times = ("had_ts", "lost_ts", "lacked_ts", "back_ts", "last_ts")
    assert [found[name] for name in times] == [at(99), at(101), at(150), at(152), at(152)]
    assert [found[name] for name in ("had_id", "lost_id", "back_id")] == ["n:1 99", "n:1 101", "n:1 152"]


def test_a_recording_of_changes_confirms_the_answer_before() -> None:
    (found,) = lists(listed(0, BOTH), listed(230, SLAVE, before=220), listed(400, BOTH, before=390))
    assert (found["had_ts"], found["lost_ts"], found["lacked_ts"]) == (at(220), at(230), at(390))


def test_name_servers_are_separate_and_one_may_keep_it() -> None:
    found = lists(
        *(listed(s, BOTH, server="n:2") for s in (90, 300)), listed(99, BOTH), listed(110, {}), listed(120, SLAVE)
    )
    assert [(row["who"], row["had_ts"], row["lost_ts"]) for row in found] == [
        ("n:1", at(99), at(110)),
        ("n:2", at(300), None),
    ]


def test_another_address_under_the_same_id_is_another_broker() -> None:
    (found,) = lists(listed(99, BOTH), listed(110, {0: B}), listed(200, {0: B, 1: A}))
    assert (found["lost_ts"], found["back_ts"]) == (at(110), at(200))


def test_a_client_loses_the_broker_with_the_first_of_its_topics() -> None:
    (found,) = routes(
        *(routed(s, BOTH, topic=topic) for s in (70, 98) for topic in ("t", "u")),
        routed(128, SLAVE),
        routed(129, SLAVE, topic="u"),
        routed(160, BOTH),
        routed(170, None, topic="TBW102"),
    )
    assert (found["had_ts"], found["lost_ts"], found["lacked_ts"]) == (at(98), at(128), at(129))
    assert (found["back_ts"], found["last_ts"]) == (at(160), at(170))


def test_a_topic_without_any_broker_lost_it() -> None:
    (found,) = routes(routed(98, BOTH), routed(128, None))
    assert found["lost_ts"] == at(128)


def test_clients_that_stopped_before_or_never_had_it_are_left_out() -> None:
    assert routes(routed(60, BOTH)) == []
    assert routes(routed(98, SLAVE), routed(128, SLAVE)) == []
    assert len(routes(routed(71, BOTH))) == 1


def test_answers_after_the_end_do_not_count() -> None:
    (found,) = routes(routed(98, BOTH), routed(128, SLAVE), until=at(120))
    assert (found["lost_ts"], found["had_ts"], found["last_ts"]) == (None, at(98), at(98))


def test_no_answers_are_no_changes() -> None:
    assert routed_answers(pl.DataFrame(rows("silver.route", {}, []))).is_empty()
    assert lists() == routes() == []


def test_answers_like_those_before_and_after_are_not_needed() -> None:
    route = rows("silver.route", {}, [routed(s, BOTH) for s in (0, 30, 60, 75, 90)] + [routed(130, SLAVE)])
    kept = needed_answers(routed_answers(route), pl.DataFrame([("c1", at(70))], CLIENT_INSTANTS, orient="row"))
    assert kept["ts"].to_list() == [at(0), at(60), at(90), at(130)]
    assert needed_answers(routed_answers(route), pl.DataFrame(schema=CLIENT_INSTANTS))["ts"].to_list() == [
        at(0),
        at(90),
        at(130),
    ]


def test_of_two_last_answers_at_one_instant_the_record_id_decides_with_needed_answers_too() -> None:
    confirmed = routed(100, BOTH) | {"previous_ts": at(100)}
    answers = routed_answers(
        rows("silver.route", {}, [routed(90, BOTH), routed(95, BOTH), confirmed, routed(130, SLAVE)])
    )
    kept = needed_answers(answers, pl.DataFrame(schema=CLIENT_INSTANTS))
    whole, short = (address_changes(each, "b", A, STOPPED, UNTIL).to_dicts() for each in (answers, kept))
    assert whole[0]["had_id"] == "c1 95 t"
    assert short == whole
