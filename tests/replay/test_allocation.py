"""Rebalances judged: agree, differ, and undetermined where the settings of a strategy are not told."""

from __future__ import annotations

import pytest

from mqreplay.replay.allocation import allocation, widest
from silver_moments import at

REBALANCE = {
    "consumer_group": "g",
    "topic": "T",
    "client_id": "c1",
    "ts": at(1),
    "cid_all": ["c1", "c2"],
    "mq_all": [("b", 0), ("b", 1)],
    "mq_divided": [("b", 0)],
}


@pytest.fixture
def judged(rows):
    def judge(*differs, **told):
        return [
            (row.judgement, row.reason, row.expected)
            for row in allocation(rows("silver.rebalance", REBALANCE, list(differs)), **told).collect()
        ]

    return judge


def test_what_the_strategy_gives_agrees_and_anything_else_differs(judged) -> None:
    agrees, differs = judged({"strategy": "AVG"}, {"strategy": "AVG", "mq_divided": [("b", 1)]})
    assert agrees[0] == "agree"
    assert differs[0] == "differ"
    assert [tuple(q) for q in differs[2]] == [("b", 0)]


def test_config_without_its_list_is_undetermined_and_says_what_is_lacking(judged) -> None:
    ((judgement, reason, expected),) = judged({"strategy": "CONFIG"})
    assert (judgement, expected) == ("undetermined", None)
    assert 'groups."g"] queues says no list of c1' in reason


def test_config_with_its_list_is_judged(judged) -> None:
    told = {"groups": {"g": {"queues": {"c*": ["T/b/0"]}}}}
    agrees, differs = judged({"strategy": "CONFIG"}, {"strategy": "CONFIG", "mq_divided": []}, **told)
    assert agrees[0] == "agree"
    assert differs[0] == "differ"


def test_nearby_is_judged_by_rooms(judged) -> None:
    told = {"groups": {"g": {"client_rooms": {"*": "r"}, "broker_rooms": {"b": "r"}}}}
    ((judgement, _, _),) = judged({"strategy": "MACHINE_ROOM_NEARBY-AVG"}, **told)
    assert judgement == "agree"


def test_consistent_hash_needs_nothing_told(judged) -> None:
    rings = judged(*[{"strategy": "CONSISTENT_HASH", "mq_divided": mqs} for mqs in ([], [("b", 0)], [("b", 1)])])
    both = judged({"strategy": "CONSISTENT_HASH", "mq_divided": [("b", 0), ("b", 1)]})
    assert sorted(judgement for judgement, _, _ in rings + both) == ["agree", "differ", "differ", "differ"]


def test_without_the_lists_or_with_a_strategy_unknown_nothing_is_judged(judged) -> None:
    unseen, own = judged({"strategy": "AVG", "cid_all": None}, {"strategy": "MY_OWN"})
    assert unseen[:2] == ("undetermined", "the recording lacks the lists that the client saw")
    assert own[0] == "undetermined"
    assert "MY_OWN" in own[1]


@pytest.mark.parametrize(
    ("differs", "names"),
    [([{}, {"cid_all": ["c1", "c2", "c3"]}, {"mq_all": None}], 5), ([{"mq_all": None}], None), ([], None)],
    ids=["the widest", "not told", "no rows"],
)
def test_how_wide_a_rebalance_is(rows, differs, names) -> None:
    told = [{"strategy": "AVG"} | each for each in differs]
    (found,) = widest(rows("silver.rebalance", REBALANCE, told)).collect()
    assert found.names == names


def test_what_a_recording_lacks_is_undetermined_and_never_a_difference(judged) -> None:
    given = {"strategy": "AVG"}
    found = judged(
        given | {"mq_divided": None}, {"strategy": None}, given | {"cid_all": None}, given | {"mq_all": None}
    )
    lists = "the recording lacks the lists that the client saw"
    assert sorted(found, key=str) == sorted(
        [
            ("undetermined", "the recording lacks what the client took", None),
            ("undetermined", "the recording lacks the client's strategy", None),
            ("undetermined", lists, None),
            ("undetermined", lists, None),
        ],
        key=str,
    )


def test_a_client_that_failed_where_its_strategy_does_not_differs(judged) -> None:
    ((judgement, reason, _),) = judged({"strategy": "AVG", "mq_divided": None, "error": "no such queue"})
    assert (judgement, reason) == ("differ", "the client failed: no such queue")
