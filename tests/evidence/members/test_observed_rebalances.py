"""Rebalances from polls: judged while nothing changes, undetermined after a change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl
import pytest

from mqreplay.decisions.allocation import allocation
from mqreplay.decisions.strategies import GroupSettings
from mqreplay.evidence.members import observed_rebalances as module
from mqreplay.evidence.members.agreed_lists import member_lists, queue_lists
from mqreplay.evidence.members.observed_rebalances import observed_rebalances
from mqreplay.words.keys import MEMBER
from silver_moments import at
from silver_rows import rows

Row = dict[str, Any]
INTERVAL_S = 20
TOPIC = [("T", "*", "TAG", 1)]
SETTINGS = {"PROP_CONSUMEORDERLY": "false"}


def answer(client: str, seconds: float, *queues: int, **differs: Any) -> Row:
    held = [("T", "b", q, False, True, *[None] * 6) for q in queues]
    row = {"client_id": client, "consumer_group": "g", "ts": at(seconds), "queues": held, "source": "running_info"}
    row |= {"previous_ts": at(seconds - 20), "strategy": "AVG", "message_model": "CLUSTERING"}
    return row | {"subscriptions": TOPIC, "properties": SETTINGS} | differs


def each_minute(client: str, *queues: int, since: int = 0, **differs: Any) -> list[Row]:
    return [answer(client, s, *queues, **differs) for s in range(since, 301, 60)]


def lists(*changes: tuple[float, tuple[str, ...]], broker: str = "b") -> list[Row]:
    base = {"consumer_group": "g", "broker_name": broker, "broker_id": 0, "response_code": 0}
    found = []
    for i, (seconds, clients) in enumerate(changes):
        until = changes[i + 1][0] if i + 1 < len(changes) else 301
        times = [seconds + 60 * n for n in range(6) if seconds + 60 * n < until]
        found += [base | {"ts": at(s), "previous_ts": at(s - 5), "cid_all": list(clients)} for s in times]
    return found


def routes(queues: int = 4, server: str = "n:1", since: int = 0) -> list[Row]:
    data = {"queue_datas": [("b", queues, queues, 6, 0)], "namesrv_addr": server, "topic": "T"}
    return [data | {"ts": at(s), "previous_ts": at(s - 5)} for s in range(since, 301, 60)]


BOTH = ("c1", "c2")


def judged(
    answers: list[Row],
    of_group: list[Row],
    of_topic: list[Row],
    configs: list[Row] | None = None,
    groups: Mapping[str, GroupSettings] | None = None,
) -> pl.DataFrame:
    assignment = rows("silver.assignment", {}, answers)
    found = observed_rebalances(
        assignment,
        member_lists(rows("silver.consumer_list", {}, of_group)),
        queue_lists(rows("silver.route", {}, of_topic), rows("silver.topic_config", {}, configs or [])),
        assignment.select(MEMBER).unique(),
        INTERVAL_S,
        rows("silver.rebalance", {}, []),
    )
    return allocation(found, groups).sort("client_id", "rebalance_ts")


def verdicts(frame: pl.DataFrame) -> list[tuple[str, str]]:
    return frame.select("client_id", "judgement").rows()


def test_each_client_is_judged_once_in_a_stable_period() -> None:
    found = judged(each_minute("c1", 0, 1) + each_minute("c2", 2, 3), lists((0, BOTH)), routes())
    assert verdicts(found) == [("c1", "agree"), ("c2", "agree")]
    row = found.row(0, named=True)
    assert (row["cid_all"], [q["queue_id"] for q in row["mq_all"]]) == (["c1", "c2"], [0, 1, 2, 3])
    assert [q["queue_id"] for q in row["expected"]] == [0, 1]
    assert found["record_id"].n_unique() == 2


def test_a_client_that_holds_other_queues_differs() -> None:
    found = judged(each_minute("c1", 0, 3) + each_minute("c2", 1, 2), lists((0, BOTH)), routes())
    assert verdicts(found) == [("c1", "differ"), ("c2", "differ")]


@pytest.mark.parametrize(("interval", "judgement"), [("30000", "differ"), ("600000", "undetermined")])
def test_a_client_may_have_the_queues_of_before_for_its_own_interval(interval: str, judgement: str) -> None:
    """ClientConfig#pollNameServerInterval: the topic had 2 queues until 100 s, and the client asks seldom."""
    settings = SETTINGS | {"pollNameServerInterval": interval}
    changed = [each for each in routes(2) if each["ts"] < at(100)] + routes(4, since=100)
    found = judged(each_minute("c1", 0, 1, properties=settings), lists((0, ("c1",))), changed)
    assert verdicts(found)[-1] == ("c1", judgement)


def test_a_change_of_members_begins_another_period() -> None:
    answers = [
        *each_minute("c1", 0, 1, 2, 3)[:3],
        *each_minute("c1", 0, 1, since=160),
        *each_minute("c2", 2, 3, since=160),
    ]
    found = judged(answers, lists((0, ("c1",)), (140, BOTH)), routes())
    assert verdicts(found) == [("c1", "agree"), ("c1", "agree"), ("c2", "agree")]
    assert [row["cid_all"] for row in found.to_dicts()] == [["c1"], ["c1", "c2"], ["c1", "c2"]]


@pytest.mark.parametrize(
    ("answers", "of_group", "of_topic", "reason"),
    [
        ([answer("c1", 10, 0)], lists((0, BOTH)), routes(), module.YOUNG_STRATEGY),
        ([answer("c1", s, 0) for s in (0, 60)], lists((0, ("c1",)), (50, BOTH)), routes(), module.YOUNG_CLIENTS),
        ([answer("c1", s, 0) for s in (0, 60)], lists((0, BOTH)), routes(since=20), module.YOUNG_QUEUES),
        (each_minute("c1", 0), lists((0, BOTH)) + lists((0, ("c1",)), broker="a"), routes(), module.NO_CLIENTS),
        (each_minute("c1", 0), lists((0, BOTH)), routes() + routes(8, "n:2"), module.NO_QUEUES),
        (each_minute("c1", 0), lists((0, BOTH)), [], module.NO_QUEUES),
        (each_minute("c1", 0), [], routes(), module.NO_CLIENTS),
        (each_minute("c1", 0, strategy=None), lists((0, BOTH)), routes(), module.NO_STRATEGY),
        (each_minute("c1", queues=None), lists((0, BOTH)), routes(), module.NO_QUEUES_HELD),
    ],
)
def test_where_something_was_not_stable_or_not_known_one_row_says_what(
    answers: list[Row], of_group: list[Row], of_topic: list[Row], reason: str
) -> None:
    (row,) = judged(answers, of_group, of_topic).to_dicts()
    assert (row["judgement"], row["reason"]) == ("undetermined", reason)


@pytest.mark.parametrize("strategy", ["CONFIG", "MACHINE_ROOM", "MACHINE_ROOM_NEARBY", "com.acme.AllocateByLoad"])
def test_a_strategy_that_needs_settings_is_not_judged_without_them(strategy: str) -> None:
    (row,) = judged(each_minute("c1", 0, strategy=strategy), lists((0, BOTH)), routes()).to_dicts()
    assert row["judgement"] == "undetermined"
    assert row["reason"].startswith("not judged: ")


@pytest.mark.parametrize(("listed", "judgement"), [(["T/b/0", "other/b/0"], "agree"), (["other/b/0"], "differ")])
def test_config_gives_queues_of_all_topics_and_a_poll_shows_those_of_one(listed: list[str], judgement: str) -> None:
    groups = {"g": {"queues": {"c*": listed}}}
    found = judged(each_minute("c1", 0, strategy="CONFIG"), lists((0, BOTH)), routes(), groups=groups)
    assert verdicts(found) == [("c1", judgement)]
    assert found["expected"].to_list() == [[{"broker_name": "b", "queue_id": 0}] if judgement == "agree" else []]


def test_a_member_of_a_broadcasting_group_takes_all_queues() -> None:
    model = {"message_model": "BROADCASTING", "strategy": "CONSISTENT_HASH"}
    found = judged(each_minute("c1", 0, 1, 2, 3, **model) + each_minute("c2", 0, **model), lists((0, BOTH)), routes())
    assert verdicts(found) == [("c1", "agree"), ("c2", "differ")]


def test_an_orderly_client_waits_for_the_locks_of_the_last_owner() -> None:
    settings = {"PROP_CONSUMEORDERLY": "true"}
    answers = [*each_minute("c1", 0, 1, 2, 3)[:2], answer("c1", 120, 0, 1), answer("c1", 150, 0, 1)]
    orderly = [row | {"properties": settings} for row in answers]
    of_group = lists((0, BOTH), (100, ("c1",)))
    assert "differ" in judged(answers, of_group, routes())["judgement"].to_list()
    assert "differ" not in judged(orderly, of_group, routes())["judgement"].to_list()


def test_a_client_that_gives_a_queue_up_is_not_judged() -> None:
    held = [("T", "b", q, q == 3, True, *[None] * 6) for q in range(4)]
    (row,) = judged(each_minute("c1", queues=held), lists((0, ("c1",))), routes()).to_dicts()
    assert (row["judgement"], row["reason"]) == ("undetermined", module.UNSETTLED)


def test_without_a_route_the_masters_topics_tell_the_queues() -> None:
    config = {"source_name": "b-0", "broker_name": "b", "broker_id": 0, "topic": "T", "change": "added", "ts": at(0)}
    configs = [config | {"read_queue_nums": 4, "perm": 6}]
    found = judged(each_minute("c1", 0, 1, 2, 3), lists((0, ("c1",))), [], configs)
    assert verdicts(found) == [("c1", "agree")]
    slave = [row | {"broker_id": 1} for row in configs]
    assert verdicts(judged(each_minute("c1", 0, 1, 2, 3), lists((0, ("c1",))), [], slave)) == [("c1", "undetermined")]


def test_without_polls_there_is_nothing_to_judge() -> None:
    assert judged([], [], []).is_empty()


def test_a_view_that_is_not_written_again_counts_no_longer() -> None:
    slave = [row | {"broker_id": 1} for row in lists((0, ("c1",)))[:1]]
    found = member_lists(rows("silver.consumer_list", {}, lists((0, BOTH)) + slave))
    assert found.select("from_ts", "cid_all").rows() == [(at(65), ["c1", "c2"])]


LOGICAL = "__syslo__global__"
STATIC = {"queue_mappings": [("b", "__global__", 4), ("c", "__global__", 4)]}


def logical(client: str, *queues: int) -> list[Row]:
    held = [("T", LOGICAL, q, False, True, *[None] * 6) for q in queues]
    return each_minute(client, queues=held)


def test_clients_consume_the_logical_queues_of_a_static_topic() -> None:
    static = [row | STATIC for row in routes(2)]
    found = judged(logical("c1", 0, 1) + logical("c2", 2, 3), lists((0, BOTH)), static)
    assert verdicts(found) == [("c1", "agree"), ("c2", "agree")]
    assert found["mq_all"][0].to_list() == [{"broker_name": LOGICAL, "queue_id": q} for q in range(4)]
    wrong = judged(logical("c1", 0, 1) + logical("c2", 0, 1), lists((0, BOTH)), static)
    assert verdicts(wrong) == [("c1", "agree"), ("c2", "differ")]


def test_a_static_topic_without_its_logical_queues_is_not_judged() -> None:
    found = judged(logical("c1", 0, 1) + logical("c2", 2, 3), lists((0, BOTH)), routes(2))
    assert verdicts(found) == [("c1", "undetermined"), ("c2", "undetermined")]
    assert set(found["reason"]) == {module.LOGICAL}


def test_queues_that_a_broker_assigns_for_pop_are_not_judged() -> None:
    shared = {"pop_queues": [("T", "b", -1, False, 0, None)], "properties": {"clientRebalance": "false"}}
    retry = [("%RETRY%g", "b", 0, False, True, *[None] * 6)]
    answers = each_minute("c1", queues=None, **shared) + each_minute("c2", queues=retry, **shared)
    found = judged(answers, lists((0, BOTH)), routes())
    assert verdicts(found) == [("c1", "undetermined"), ("c2", "undetermined")]
    assert set(found["reason"]) == {module.BY_POP}


@pytest.mark.parametrize(("later", "until"), [(8, 30), (4, None)])
def test_a_route_that_differs_next_is_known_until_it_was_last_confirmed(later: int, until: int | None) -> None:
    """Routes of retry topics are asked once a minute: clients may have known the later one since the last answer."""
    data = {"namesrv_addr": "n:1", "topic": "T"}
    answers = [(0, None, 4), (120, 30, later)]
    polled = [
        data | {"ts": at(s), "previous_ts": None if before is None else at(before), "queue_datas": [("b", n, n, 6, 0)]}
        for s, before, n in answers
    ]
    found = queue_lists(rows("silver.route", {}, polled), rows("silver.topic_config", {}, []))
    assert found["to_ts"][0] == (at(95) if until is None else at(until))
