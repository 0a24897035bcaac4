"""Strategies with parameters: set ones are used, missing ones are never guessed."""

from __future__ import annotations

import pytest

from mqreplay.core.message_queue import MessageQueue
from mqreplay.decisions.strategies import allocate_with
from mqreplay.words.errors import SettingsLacking, UnknownStrategy

QUEUES = [MessageQueue("T", broker, i) for broker in ("r1@a", "r2@b") for i in range(3)]
CIDS = ["10.0.1.1@1", "10.0.2.1@2"]
ROOMS = {"client_rooms": {"10.0.1.*": "r1", "10.0.2.*": "r2"}, "broker_rooms": {"*a": "r1", "*b": "r2"}}


def taken(strategy: str, cid: str = CIDS[0], group: dict | None = None, places: int = 10) -> list[str]:
    allocate = allocate_with({"g": group} if group else {}, places)
    return [f"{mq.broker_name}/{mq.queue_id}" for mq in allocate(strategy, "g", cid, QUEUES, CIDS) or []]


def test_config_is_the_list_of_the_first_pattern_that_matches() -> None:
    group = {"queues": {"10.0.1.*": ["T/r1@a/2", "T/r2@b/0"], "*": ["a/b/c/1"]}}
    assert taken("CONFIG", group=group) == ["r1@a/2", "r2@b/0"]
    allocate = allocate_with({"g": group}, 10)
    assert allocate("CONFIG", "g", CIDS[1], QUEUES, CIDS) == [MessageQueue("a/b", "c", 1)]


def test_rooms_of_brokers_and_clients_by_patterns() -> None:
    assert taken("MACHINE_ROOM_NEARBY-AVG", group=ROOMS) == ["r1@a/0", "r1@a/1", "r1@a/2"]
    assert taken("MACHINE_ROOM_NEARBY-AVG_BY_CIRCLE", CIDS[1], ROOMS) == ["r2@b/0", "r2@b/1", "r2@b/2"]


def test_the_strategy_inside_a_room_that_no_poll_shows_is_a_setting() -> None:
    inner = ROOMS | {"nearby_strategy": "AVG"}
    assert taken("MACHINE_ROOM_NEARBY", group=inner) == ["r1@a/0", "r1@a/1", "r1@a/2"]


def test_rooms_served() -> None:
    assert taken("MACHINE_ROOM", group={"machine_rooms": ["r2"]}) == ["r2@b/0", "r2@b/2"]


def test_places_on_the_ring_are_the_groups_own_or_the_common_ones() -> None:
    by_places = {places: taken("CONSISTENT_HASH", places=places) for places in (1, 2, 3, 10, 40)}
    assert taken("CONSISTENT_HASH") == by_places[10]
    other = next(places for places, queues in by_places.items() if queues != by_places[10])
    assert taken("CONSISTENT_HASH", group={"virtual_node_cnt": other}) == by_places[other]


@pytest.mark.parametrize(
    ("strategy", "group", "lacks"),
    [
        ("CONFIG", {}, "queues has no list for 10.0.1.1@1"),
        ("CONFIG", {"queues": {"10.0.9.*": ["T/a/0"]}}, "queues has no list for 10.0.1.1@1"),
        ("MACHINE_ROOM", {}, "machine_rooms is not set"),
        ("MACHINE_ROOM_NEARBY", ROOMS, "nearby_strategy is not set"),
        ("MACHINE_ROOM_NEARBY-AVG", {}, "broker_rooms has no room for r1@a"),
        ("MACHINE_ROOM_NEARBY-AVG", {"broker_rooms": {"*": "r1"}}, "client_rooms has no room for 10.0.1.1@1"),
        ("MACHINE_ROOM_NEARBY-CONFIG", ROOMS, "queues has no list"),
    ],
)
def test_a_setting_that_is_missing_is_named(strategy: str, group: dict, lacks: str) -> None:
    with pytest.raises(SettingsLacking, match=r"strategies\.groups") as error:
        taken(strategy, group=group)
    assert lacks in str(error.value)


def test_a_strategy_of_the_users_own_is_unknown() -> None:
    with pytest.raises(UnknownStrategy):
        taken("MY_OWN")
