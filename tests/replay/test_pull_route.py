"""Where pulls should have gone: from what the client was told, and never from what it was not seen to be told."""

from __future__ import annotations

import pytest

from mqreplay.replay.pull_route import pull_route
from silver_moments import BEGAN, at

PULL = {
    "client_id": "c1",
    "consumer_group": "g",
    "topic": "T",
    "broker_name": "b",
    "queue_id": 0,
    "queue_offset": 0,
    "broker_id": 0,
    "sub_version": int(at(1).timestamp() * 1000),
    "suggest_which_broker_id": 0,
}
ROUTE = {"client_id": "c1", "topic": "T"}
BOTH, SLAVE_ONLY = {0: "m:1", 1: "s:1"}, {1: "s:1"}


def pull(seconds: float, opaque: int, **differs: object) -> dict[str, object]:
    return {"request_ts": at(seconds), "response_ts": at(seconds + 0.1), "opaque": opaque} | differs


def route(seconds: float, addrs: dict[int, str]) -> dict[str, object]:
    return {
        "ts": at(seconds),
        "response_ts": at(seconds),
        "queue_datas": [("b", 1, 1, 6, 0)],
        "broker_datas": [("b", addrs)],
    }


@pytest.fixture
def judged(rows):
    def judge(pulls, routes, slack_ms=1000, sure=BEGAN):
        asked, told = rows("silver.pull", PULL, pulls), rows("silver.route", ROUTE, routes)
        frame = pull_route(asked, told, {BEGAN: sure}, slack_ms)
        return [
            (r.expected_broker_id, r.judgement, r.cause) for r in frame.orderBy("request_ts", "record_id").collect()
        ]

    return judge


def test_the_last_suggestion_is_followed(judged):
    pulls = [pull(2, 1, suggest_which_broker_id=1), pull(3, 2, broker_id=1), pull(4, 3)]
    assert judged(pulls, [route(1, BOTH)]) == [(0, "agree", None), (1, "agree", "suggested"), (0, "agree", None)]


def test_a_suggestion_of_1_leads_to_the_slave_whatever_its_id(judged):
    pulls = [pull(2, 1, suggest_which_broker_id=1), pull(3, 2, broker_id=2, suggest_which_broker_id=1)]
    pulls.append(pull(40, 3, broker_id=2))
    routes = [route(1, {0: "m:1", 2: "s:1"}), route(30, {2: "s:1"})]
    assert judged(pulls, routes) == [(0, "agree", None), (2, "agree", "suggested"), (2, "agree", "master_gone")]


def test_a_pull_against_the_suggestion_differs(judged):
    pulls = [pull(2, 1, suggest_which_broker_id=1), pull(3, 2, broker_id=0)]
    assert judged(pulls, [route(1, BOTH)])[1] == (1, "differ", None)


def test_an_answer_without_a_suggestion_keeps_the_one_before(judged):
    silent = {"suggest_which_broker_id": None, "response_code": 25}
    pulls = [pull(2, 1, suggest_which_broker_id=1), pull(3, 2, broker_id=1, **silent), pull(4, 3, broker_id=1)]
    assert [j for _, j, _ in judged(pulls, [route(1, BOTH)])] == ["agree"] * 3


def test_without_its_master_a_pull_falls_to_the_slave(judged):
    pulls = [pull(2, 1), pull(40, 2, broker_id=1)]
    assert judged(pulls, [route(1, BOTH), route(30, SLAVE_ONLY)])[1] == (1, "agree", "master_gone")


def test_a_route_just_told_may_not_be_in_use_yet(judged):
    pulls = [pull(2, 1), pull(30.5, 2, broker_id=0), pull(32, 3, broker_id=0)]
    found = judged(pulls, [route(1, BOTH), route(30, SLAVE_ONLY)])
    assert [j for _, j, _ in found] == ["agree", "agree", "differ"]


def test_what_an_older_client_was_told_is_not_known(judged):
    older = {"sub_version": int(at(-60).timestamp() * 1000)}
    pulls = [pull(2, 1, **older), pull(3, 2, **older)]
    assert [j for _, j, _ in judged(pulls, [route(1, BOTH)])] == ["undetermined", "agree"]


def test_without_a_route_only_the_straight_way_is_judged(judged):
    pulls = [pull(2, 1, suggest_which_broker_id=1), pull(3, 2, broker_id=1), pull(4, 3, broker_id=2)]
    pulls[1]["suggest_which_broker_id"] = 1
    assert [j for _, j, _ in judged(pulls, [])] == ["agree", "agree", "undetermined"]


def test_an_answer_in_the_same_millisecond_is_not_its_own_cause(judged):
    pulls = [
        pull(2, 1, response_ts=at(2), suggest_which_broker_id=1),
        pull(2, 2, response_ts=at(2), broker_id=1, suggest_which_broker_id=1),
    ]
    assert [j for _, j, _ in judged(pulls, [route(1, BOTH)])] == ["agree", "agree"]


def test_an_answer_that_may_have_come_unseen_leaves_it_open(judged):
    pulls = [pull(2, 1), pull(3, 2, response_ts=None, suggest_which_broker_id=None), pull(20, 3, broker_id=1)]
    assert judged(pulls, [route(1, BOTH)])[2] == (None, "undetermined", None)


def test_who_subscribed_before_the_recording_surely_told_of_all_may_remember_more(judged):
    pulls = [pull(2, 1, broker_id=1), pull(3, 2, suggest_which_broker_id=1), pull(4, 3, broker_id=1)]
    assert [j for _, j, _ in judged(pulls, [route(1, BOTH)])] == ["differ", "agree", "agree"]
    found = judged(pulls, [route(1, BOTH)], sure=at(90))
    assert [j for _, j, _ in found] == ["undetermined", "agree", "agree"]
    assert judged(pulls, [route(1, BOTH)], sure=at(1)) == judged(pulls, [route(1, BOTH)])
