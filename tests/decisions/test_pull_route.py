"""Routes of pulls: judged only by recorded answers."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqreplay.core.pull_node import PullFromWhichNodeTable
from mqreplay.decisions.pull_route import COLUMNS, Route, found_broker_id, judge, pull_route
from mqreplay.evidence.brokers.routes import route_changes
from mqreplay.evidence.members.client_memory import first_subscriptions_of_shard, new_clients
from mqreplay.lake.contract import arrow_schema, load_contracts
from silver_moments import BEGAN, at
from silver_rows import rows

Row = Mapping[str, object]
SUBSCRIBED = int(at(1).timestamp() * 1000)
PULL = {
    "client_id": "c1",
    "consumer_group": "g",
    "topic": "T",
    "broker_name": "b",
    "queue_id": 0,
    "queue_offset": 0,
    "broker_id": 0,
    "sub_version": SUBSCRIBED,
    "suggest_which_broker_id": 0,
}
ROUTE = {"client_id": "c1", "topic": "T"}
BOTH, SLAVE_ONLY = {0: "m:1", 1: "s:1"}, {1: "s:1"}
OLDER = {"sub_version": int(at(-60).timestamp() * 1000)}


def pull(seconds: float, opaque: int, **differs: object) -> dict[str, object]:
    return {"request_ts": at(seconds), "response_ts": at(seconds + 0.1), "opaque": opaque} | differs


def route(seconds: float, addrs: Mapping[int, str] | None, **differs: object) -> dict[str, object]:
    return {
        "ts": at(seconds),
        "response_ts": at(seconds),
        "queue_datas": [("b", 1, 1, 6, 0)],
        "broker_datas": [("b", addrs)],
    } | differs


def replayed(
    pulls: pl.DataFrame, routes: pl.DataFrame, starts: Mapping[dt.datetime, dt.datetime], slack_ms: int = 1000
) -> pl.DataFrame:
    new = new_clients([first_subscriptions_of_shard(pulls, starts)], starts)
    return pull_route(pulls, route_changes(routes, starts), new, starts, slack_ms)


def rows_of(pulls: Sequence[Row], routes: Sequence[Row], sure: dt.datetime = BEGAN) -> list[dict[str, object]]:
    frame = replayed(rows("silver.pull", PULL, pulls), rows("silver.route", ROUTE, routes), {BEGAN: sure})
    return frame.sort("request_ts", "record_id").rows(named=True)


def judged(pulls: Sequence[Row], routes: Sequence[Row], sure: dt.datetime = BEGAN) -> list[tuple[object, ...]]:
    return [(r["expected_broker_id"], r["judgement"], r["cause"]) for r in rows_of(pulls, routes, sure)]


def judgements(pulls: Sequence[Row], routes: Sequence[Row], sure: dt.datetime = BEGAN) -> list[object]:
    return [judgement for _, judgement, _ in judged(pulls, routes, sure)]


def test_the_last_suggestion_is_followed() -> None:
    pulls = [pull(2, 1, suggest_which_broker_id=1), pull(3, 2, broker_id=1), pull(4, 3)]
    assert judged(pulls, [route(1, BOTH)]) == [(0, "agree", None), (1, "agree", "suggested"), (0, "agree", None)]
    assert [r["reason"] for r in rows_of(pulls, [route(1, BOTH)])] == [
        "the master, by default or as last suggested",
        "the broker id last suggested, 1",
        "the master, by default or as last suggested",
    ]


def test_suggestion_of_1_leads_to_the_slave_whatever_its_id() -> None:
    pulls = [pull(2, 1, suggest_which_broker_id=1), pull(3, 2, broker_id=2, suggest_which_broker_id=1)]
    pulls.append(pull(40, 3, broker_id=2))
    routes = [route(1, {0: "m:1", 2: "s:1"}), route(30, {2: "s:1"})]
    assert judged(pulls, routes) == [(0, "agree", None), (2, "agree", "suggested"), (2, "agree", "master_gone")]
    assert rows_of(pulls, routes)[1]["reason"] == (
        "broker id 1 was not in the client's route (ids 0, 2): fell back to broker id 2"
    )


@given(st.lists(st.tuples(st.integers(0, 2), st.none() | st.integers(0, 1)), min_size=1, max_size=12))
def test_the_arrays_remember_what_a_clients_table_does(asked: list[tuple[int, int | None]]) -> None:
    table: PullFromWhichNodeTable[int] = PullFromWhichNodeTable()
    pulls, nodes = [], []
    for number, (queue_id, suggested) in enumerate(asked):
        nodes.append(node := table.recalculate_pull_from_which_node(queue_id))
        pulls.append(pull(number + 2, number, queue_id=queue_id, broker_id=node, suggest_which_broker_id=suggested))
        if suggested is not None:
            table.update_pull_from_which_node(queue_id, suggested)
    found = rows_of(pulls, [route(1, BOTH)])
    assert [row["expected_broker_id"] for row in found] == nodes
    assert {row["judgement"] for row in found} == {"agree"}


def test_pull_against_the_suggestion_differs() -> None:
    pulls = [pull(2, 1, suggest_which_broker_id=1), pull(3, 2, broker_id=0)]
    assert judged(pulls, [route(1, BOTH)])[1] == (1, "differ", None)
    assert rows_of(pulls, [route(1, BOTH)])[1]["reason"] == "RocketMQ's rule says broker id 1, the client asked 0"


def test_answer_without_a_suggestion_keeps_the_one_before() -> None:
    silent = {"suggest_which_broker_id": None, "response_code": 25}
    pulls = [pull(2, 1, suggest_which_broker_id=1), pull(3, 2, broker_id=1, **silent), pull(4, 3, broker_id=1)]
    assert judgements(pulls, [route(1, BOTH)]) == ["agree"] * 3


def test_without_its_master_a_pull_falls_back_to_the_slave() -> None:
    pulls = [pull(2, 1), pull(40, 2, broker_id=1)]
    assert judged(pulls, [route(1, BOTH), route(30, SLAVE_ONLY)])[1] == (1, "agree", "master_gone")


def test_route_just_received_may_not_be_in_use_yet() -> None:
    pulls = [pull(2, 1), pull(30.5, 2, broker_id=0), pull(32, 3, broker_id=0)]
    routes = [route(1, BOTH), route(30, SLAVE_ONLY)]
    assert judgements(pulls, routes) == ["agree", "agree", "differ"]
    assert rows_of(pulls, routes)[1]["expected_broker_id"] == 0


def test_suggestion_to_an_older_client_is_not_known() -> None:
    pulls = [pull(2, 1, **OLDER), pull(3, 2, **OLDER)]
    assert judgements(pulls, [route(1, BOTH)]) == ["undetermined", "agree"]


def test_without_a_route_only_a_pull_as_suggested_is_judged() -> None:
    pulls = [pull(2, 1, suggest_which_broker_id=1), pull(3, 2, broker_id=1), pull(4, 3, broker_id=2)]
    pulls[1]["suggest_which_broker_id"] = 1
    assert judgements(pulls, []) == ["agree", "agree", "undetermined"]
    assert [r["route_broker_ids"] for r in rows_of(pulls, [])] == [None] * 3
    assert rows_of(pulls, [])[1]["reason"] == "the broker id last suggested, 1; the client's route was not recorded"


def test_answer_in_the_same_millisecond_is_not_its_own_cause() -> None:
    pulls = [
        pull(2, 1, response_ts=at(2), suggest_which_broker_id=1),
        pull(2, 2, response_ts=at(2), broker_id=1, suggest_which_broker_id=1),
    ]
    assert judgements(pulls, [route(1, BOTH)]) == ["agree", "agree"]


def test_answer_that_may_have_come_unrecorded_leaves_the_next_pull_undetermined() -> None:
    pulls = [pull(2, 1), pull(3, 2, response_ts=None, suggest_which_broker_id=None), pull(20, 3, broker_id=1)]
    assert judged(pulls, [route(1, BOTH)])[2] == (None, "undetermined", None)
    pulls[1]["error"] = "RemotingTimeoutException"  # no answer came, so the suggestion before is kept
    assert judged(pulls, [route(1, BOTH)])[2] == (0, "differ", None)


def test_client_older_than_the_sure_start_may_remember_more() -> None:
    pulls = [pull(2, 1, broker_id=1), pull(3, 2, suggest_which_broker_id=1), pull(4, 3, broker_id=1)]
    assert judgements(pulls, [route(1, BOTH)]) == ["differ", "agree", "agree"]
    assert judgements(pulls, [route(1, BOTH)], sure=at(90)) == ["undetermined", "agree", "agree"]
    assert judged(pulls, [route(1, BOTH)], sure=at(1)) == judged(pulls, [route(1, BOTH)])


def test_without_the_broker_asked_nothing_is_judged() -> None:
    (row,) = rows_of([pull(2, 1, broker_id=None)], [route(1, BOTH)])
    assert (row["judgement"], row["from_slave"], row["cause"]) == ("undetermined", None, None)
    assert row["reason"] == "the recording does not say which broker was asked"


def test_route_without_addresses_leaves_a_pull_undetermined() -> None:
    (row,) = rows_of([pull(2, 1)], [route(1, {})])
    assert (row["judgement"], row["route_broker_ids"]) == ("undetermined", [])
    assert row["reason"] == "the route that the client had names no address"


def test_another_clients_route_and_suggestion_do_not_count() -> None:
    pulls = [pull(2, 1, client_id="c2", suggest_which_broker_id=1), pull(3, 2)]
    assert judged(pulls, [route(1, SLAVE_ONLY, client_id="c2"), route(1, BOTH)])[1] == (0, "agree", None)


def test_suggestion_before_a_gap_says_nothing_after_it() -> None:
    starts = {BEGAN: BEGAN, at(100): at(100)}
    pulls = [pull(2, 1, suggest_which_broker_id=1), pull(101, 2, broker_id=1)]
    frame = replayed(rows("silver.pull", PULL, pulls), rows("silver.route", ROUTE, [route(1, BOTH)]), starts)
    assert frame["judgement"].to_list() == ["agree", "undetermined"]
    assert frame["route_broker_ids"].to_list() == [[0, 1], None]


@pytest.mark.parametrize(
    ("addresses", "node", "found"),
    [
        (BOTH, 0, 0),
        (BOTH, 1, 1),
        (BOTH, 7, 0),
        ({0: "m", 2: "s"}, 1, 2),
        (SLAVE_ONLY, 0, 1),
        ({0: "same", 1: "same"}, 1, 1),
        ({0: None, 1: "s"}, 0, None),
        ({}, 0, None),
        (None, 0, None),
        (BOTH, None, None),
    ],
)
def test_found_broker_id(addresses: Mapping[int, str | None] | None, node: int | None, found: int | None) -> None:
    assert found_broker_id(addresses, node) == found


def test_a_slave_is_asked_for_a_reason_even_where_the_pull_is_not_judged() -> None:
    route_ids, gone = Route(BOTH, None), Route(SLAVE_ONLY, BOTH)
    causes = [
        judge(1, None, route_ids, False).cause,
        judge(1, None, gone, False).cause,
        judge(None, 1, route_ids, False).cause,
        judge(None, 0, route_ids, False).cause,
        judge(1, 1, None, False).cause,
        judge(2, 1, None, False).cause,
        judge(1, -5, route_ids, False).cause,
    ]
    assert causes == [None, "master_gone", "suggested", None, "suggested", None, None]


def test_only_a_fresh_route_excuses_the_broker_of_the_route_before() -> None:
    change = Route(SLAVE_ONLY, BOTH)
    assert [judge(0, 0, change, is_fresh).judgement for is_fresh in (True, False)] == ["agree", "differ"]
    assert judge(0, 0, Route({}, BOTH), True).judgement == "agree"
    assert judge(1, 0, change, True).expected_broker_id == 1


def test_columns_and_types_are_the_contracts() -> None:
    columns = [c for c in load_contracts()["gold.pull_route"].columns if c.name != "cluster"]
    schema = pl.DataFrame(pl.from_arrow(arrow_schema((c.name, c.type) for c in columns).empty_table())).schema
    full = replayed(rows("silver.pull", PULL, [pull(2, 1)]), rows("silver.route", ROUTE, [route(1, BOTH)]), {})
    empty = replayed(rows("silver.pull", PULL, []), rows("silver.route", ROUTE, []), {})
    assert full.columns == list(COLUMNS)
    assert full.schema == empty.schema == schema
    assert empty.is_empty()


NODES = st.sampled_from([0, 1, 2])
MOMENTS = st.integers(0, 40).map(lambda tenths: tenths / 10)
PULLS = st.lists(
    st.fixed_dictionaries(
        {
            "client_id": st.sampled_from(["c1", "c2"]),
            "queue_id": st.integers(0, 5),
            "broker_id": st.none() | NODES,
            "suggest_which_broker_id": st.none() | NODES,
            "sub_version": st.sampled_from([None, SUBSCRIBED, 0]),
            "opaque": st.none() | st.integers(0, 3),
            "asked_s": MOMENTS,
            "answered_s": st.none() | MOMENTS,
            "error": st.sampled_from([None, None, "timeout"]),
        }
    ),
    max_size=30,
)
ROUTES = st.lists(
    st.tuples(st.sampled_from(["c1", "c2"]), st.sampled_from(["T", "U"]), MOMENTS, st.sampled_from([BOTH, SLAVE_ONLY])),
    max_size=6,
)


@given(PULLS, ROUTES, st.randoms(use_true_random=False))
def test_result_depends_neither_on_shards_nor_on_the_order_of_rows(pulls, routes, random) -> None:
    asked = [
        p
        | {
            "request_ts": at(p["asked_s"]),
            "response_ts": None if p["answered_s"] is None else at(p["asked_s"] + p["answered_s"]),
            "record_id": f"r{n}",
        }
        for n, p in enumerate(pulls)
    ]
    frame = rows("silver.pull", PULL, asked)
    answers = [route(s, addrs, client_id=client, topic=topic) for client, topic, s, addrs in routes]
    answered = rows("silver.route", ROUTE, answers)
    starts = {BEGAN: BEGAN, at(2): at(3)}
    whole = replayed(frame, answered, starts).sort("record_id")
    random.shuffle(asked)
    shuffled = rows("silver.pull", PULL, asked)
    shards = [shuffled.filter(pl.col("queue_id") % 4 == n) for n in range(4)]
    new = new_clients([first_subscriptions_of_shard(shard, starts) for shard in shards], starts)
    changes = route_changes(answered.sample(fraction=1, shuffle=True, seed=1), starts)
    parts = [pull_route(shard, changes, new, starts, 1000) for shard in shards]
    assert pl.concat(parts).sort("record_id").equals(whole)


ACTING = Route({0: "s:1"}, {0: "m:1", 1: "s:1"})


@pytest.mark.parametrize(
    ("route", "is_fresh", "address", "judgement"),
    [
        (ACTING, False, "s:1", "agree"),  # the master is gone, and the route lists its slave under id 0
        (ACTING, False, "other:1", "differ"),
        (ACTING, False, None, "differ"),
        (Route({0: "new:1"}, {0: "s:1"}), True, "s:1", "agree"),  # by the route that the client had shortly before
        (Route({0: "new:1"}, {0: "s:1"}), False, "s:1", "differ"),
    ],
)
def test_a_broker_may_be_listed_under_another_id_than_its_own(route, is_fresh, address, judgement):
    found = judge(1, 0, route, is_fresh, address)
    assert found.judgement == judgement
    if judgement == "agree":
        assert (found.expected_broker_id, found.reason) == (1, "the route lists s:1, which is broker id 1, under id 0")


@pytest.mark.parametrize(
    ("asked", "judgements"),
    [
        ([1, 1, 1], ["undetermined"] * 3),  # as with connectBrokerByUser and defaultBrokerId 1
        ([0, 1, 1], ["agree", "differ", "differ"]),  # it asked the suggested one before
        ([0, 0, 1], ["agree", "agree", "differ"]),
    ],
)
def test_a_client_that_asks_one_broker_whatever_is_suggested(asked, judgements):
    pulls = [pull(10 + n, n, broker_id=broker_id) for n, broker_id in enumerate(asked)]
    found = rows_of(pulls, [route(2, BOTH)])
    assert [row["judgement"] for row in found] == judgements
    assert [row["expected_broker_id"] for row in found] == [None if j == "undetermined" else 0 for j in judgements]
