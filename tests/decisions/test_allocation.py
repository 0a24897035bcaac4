"""Rebalances judged: agree, differ, and undetermined where the settings of a strategy are missing."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from mqreplay.decisions import allocation as module
from mqreplay.decisions.allocation import allocation, verdicts
from silver_moments import at
from silver_rows import rows

REBALANCE = {
    "consumer_group": "g",
    "topic": "T",
    "client_id": "c1",
    "ts": at(1),
    "cid_all": ["c1", "c2"],
    "mq_all": [("b", 0), ("b", 1)],
    "mq_divided": [("b", 0)],
}
LISTS = "the recording lacks the lists that the client saw"


def rebalances(*differs: dict[str, Any]) -> pl.DataFrame:
    return rows("silver.rebalance", REBALANCE, list(differs))


def judged(*differs: dict[str, Any], **settings: Any) -> list[tuple[Any, Any, Any]]:
    return list(allocation(rebalances(*differs), **settings).select("judgement", "reason", "expected").iter_rows())


def test_what_the_strategy_gives_agrees_and_anything_else_differs() -> None:
    agrees, differs = judged({"strategy": "AVG"}, {"strategy": "AVG", "mq_divided": [("b", 1)]})
    assert agrees[:2] == ("agree", "the client took what the strategy gives")
    assert differs[:2] == ("differ", "the client took other queues than the strategy gives for the lists it saw")
    assert differs[2] == [{"broker_name": "b", "queue_id": 0}]


def test_the_order_of_queues_does_not_matter_but_their_number_does() -> None:
    alone = {"strategy": "AVG", "cid_all": ["c1"]}
    took = [[("b", 1), ("b", 0)], [("b", 0), ("b", 1), ("b", 1)], [("b", 0)], []]
    assert [row[0] for row in judged(*[alone | {"mq_divided": queues} for queues in took])] == [
        "agree",
        "differ",
        "differ",
        "differ",
    ]


def test_config_without_its_list_is_undetermined_and_names_what_is_missing() -> None:
    ((judgement, reason, expected),) = judged({"strategy": "CONFIG"})
    assert (judgement, expected) == ("undetermined", None)
    assert reason == 'not judged: [strategies.groups."g"] queues has no list for c1'


def test_config_with_its_list_is_judged() -> None:
    groups = {"g": {"queues": {"c*": ["T/b/0"]}}}
    agrees, differs = judged({"strategy": "CONFIG"}, {"strategy": "CONFIG", "mq_divided": []}, groups=groups)
    assert agrees[0] == "agree"
    assert differs[0] == "differ"


def test_nearby_is_judged_by_rooms() -> None:
    groups = {"g": {"client_rooms": {"*": "r"}, "broker_rooms": {"b": "r"}}}
    ((judgement, _, _),) = judged({"strategy": "MACHINE_ROOM_NEARBY-AVG"}, groups=groups)
    assert judgement == "agree"


def test_consistent_hash_needs_no_settings() -> None:
    taken = ([], [("b", 0)], [("b", 1)], [("b", 0), ("b", 1)])
    found = judged(*[{"strategy": "CONSISTENT_HASH", "mq_divided": queues} for queues in taken])
    assert sorted(judgement for judgement, _, _ in found) == ["agree", "differ", "differ", "differ"]


def test_places_on_the_ring_are_a_setting() -> None:
    allocated = {
        places: judged({"strategy": "CONSISTENT_HASH"}, virtual_node_cnt=places)[0][2] for places in (1, 2, 3, 10, 40)
    }
    assert len({str(queues) for queues in allocated.values()}) > 1


def test_without_the_lists_or_with_an_unknown_strategy_nothing_is_judged() -> None:
    unseen, own = judged({"strategy": "AVG", "cid_all": None}, {"strategy": "MY_OWN"})
    assert unseen == ("undetermined", LISTS, None)
    assert own == ("undetermined", "not judged: 'MY_OWN' is not one of RocketMQ's own allocation strategies", None)


def test_what_a_recording_lacks_is_undetermined_and_never_a_difference() -> None:
    complete = {"strategy": "AVG"}
    assert judged(
        complete | {"mq_divided": None}, {"strategy": None}, complete | {"cid_all": None}, complete | {"mq_all": None}
    ) == [
        ("undetermined", "the recording lacks the queues that the client took", None),
        ("undetermined", "the recording lacks the client's strategy", None),
        ("undetermined", LISTS, None),
        ("undetermined", LISTS, None),
    ]


def test_a_client_that_failed_where_its_strategy_does_not_differs() -> None:
    ((judgement, reason, _),) = judged({"strategy": "AVG", "mq_divided": None, "error": "no such queue"})
    assert (judgement, reason) == ("differ", "the client failed: no such queue")


def test_a_client_that_failed_as_its_strategy_does_agrees() -> None:
    empty = {"strategy": "AVG", "cid_all": []}
    refused = "the strategy refuses these lists: cidAll is null or cidAll empty"
    assert judged(empty | {"mq_divided": None, "error": "cidAll empty"}, empty) == [
        ("agree", refused, None),
        ("differ", refused, None),
    ]


def test_an_error_of_java_without_a_message_is_named_by_its_class() -> None:
    # ConsistentHashRouter: a null client id is found on the ring when the next one is added.
    ((judgement, reason, _),) = judged({"strategy": "CONSISTENT_HASH", "cid_all": [None, "c1"]})
    assert (judgement, reason) == ("differ", "the strategy refuses these lists: java.lang.NullPointerException")


def test_columns_are_those_of_the_table_and_rows_keep_their_places() -> None:
    night = rebalances({"strategy": "AVG", "ts": at(9)}, {"strategy": "AVG", "client_id": "c0"})
    found = allocation(night)
    gold = rows("gold.allocation", {}, [])
    assert found.schema == gold.schema
    assert allocation(night.clear()).schema == gold.schema
    assert found["rebalance_ts"].to_list() == night["ts"].to_list()
    assert found["actual"].to_list() == night["mq_divided"].to_list()
    assert found["record_id"].to_list() == night["record_id"].to_list()


NIGHT = [
    {"strategy": strategy, "client_id": client, "ts": at(second), "mq_divided": took, "cid_all": clients}
    for second in range(3)
    for strategy in ("AVG", "AVG_BY_CIRCLE", "MY_OWN", None)
    for client in ("c2", "c1")
    for took in ([("b", 0)], [], None)
    for clients in (["c1", "c2"], ["c1", "c2", "c3"], [], None)
]


@pytest.mark.parametrize("most_items", [1, 7, 100])
def test_slices_of_a_night_are_judged_as_the_whole(most_items: int) -> None:
    night = rebalances(*NIGHT)
    whole = verdicts(night)
    assert set(whole["judgement"]) == {"agree", "differ", "undetermined"}
    assert verdicts(night, most_items=most_items).equals(whole, null_equal=True)


@pytest.mark.parametrize(("most_items", "most_calls"), [(500_000, 2), (100, 5)])
def test_a_strategy_is_asked_once_about_what_repeats(monkeypatch, most_items: int, most_calls: int) -> None:
    calls = []
    allocate_with = module.allocate_with

    def counted(*settings: Any) -> Any:
        law = allocate_with(*settings)
        return lambda *inputs: calls.append(inputs) or law(*inputs)

    monkeypatch.setattr(module, "allocate_with", counted)
    night = [{"strategy": "AVG", "client_id": client, "ts": at(s)} for s in range(20) for client in ("c1", "c2")]
    assert len(verdicts(rebalances(*night), most_items=most_items)) == 40
    assert 2 <= len(calls) <= most_calls
