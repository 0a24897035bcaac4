from __future__ import annotations

import pytest

from mqreplay.core.pull_node import (
    FindBrokerResult,
    PullFromWhichNodeTable,
    find_broker_address_in_publish,
    find_broker_address_in_subscribe,
)
from mqreplay.words.errors import NullPointer

MASTER, SLAVE, SECOND = "m:10911", "s:10911", "t:10911"


@pytest.mark.parametrize(
    ("addresses", "broker_id", "only", "expected"),
    [
        ({0: MASTER, 1: SLAVE}, 0, False, FindBrokerResult(MASTER, False)),
        ({0: MASTER, 1: SLAVE}, 1, True, FindBrokerResult(SLAVE, True)),
        ({0: MASTER, 2: SECOND}, 1, True, FindBrokerResult(SECOND, True)),  # id + 1, even if only this one will do
        ({0: MASTER}, 1, False, FindBrokerResult(MASTER, False)),
        ({0: MASTER}, 1, True, None),
        ({2: SECOND, 1: SLAVE}, 0, False, FindBrokerResult(SLAVE, True)),  # the first as the map is walked
        ({1: SLAVE}, 0, True, None),
        ({}, 0, False, None),
    ],
)
def test_find(addresses: dict[int, str], broker_id: int, only: bool, expected: FindBrokerResult | None) -> None:
    assert find_broker_address_in_subscribe({"b": addresses}, "b", broker_id, only) == expected


def test_a_name_that_is_null() -> None:
    with pytest.raises(NullPointer):
        find_broker_address_in_subscribe({}, None, 0, False)
    assert find_broker_address_in_subscribe({}, None, 0, False, version="5.0.0") is None
    assert find_broker_address_in_publish({}, None) is None


def test_version_numbers_come_along() -> None:
    found = find_broker_address_in_subscribe({"b": {0: MASTER}}, "b", 0, False, {"b": {MASTER: 399}})
    assert found == FindBrokerResult(MASTER, False, 399)


def test_each_queue_keeps_its_own_suggestion() -> None:
    table: PullFromWhichNodeTable[str] = PullFromWhichNodeTable()
    table.update_pull_from_which_node("q1", 1)
    assert [table.recalculate_pull_from_which_node(q) for q in ("q1", "q2")] == [1, 0]
    table.connect_broker_by_user = True
    table.default_broker_id = 5
    assert table.recalculate_pull_from_which_node("q1") == 5
