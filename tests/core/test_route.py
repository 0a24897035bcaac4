"""A cluster over time as a name server sees it, and the queues that clients derive from its routes."""

from __future__ import annotations

import pytest

from mqreplay.core.message_queue import MessageQueue
from mqreplay.core.route_info_manager import RegisterBrokerResult, RouteInfoManager, TopicConfigs
from mqreplay.core.topic_route import (
    BrokerData,
    QueueData,
    TopicRouteData,
    topic_publish_info,
    topic_subscribe_info,
    write_queue_nums_by_broker,
)
from mqreplay.words.errors import ArrayIndexOutOfBounds, NumberFormat

TOPICS = TopicConfigs(1, {"T": QueueData("", 4, 4, 6)})
MASTER, SLAVE = "10.0.0.1:10911", "10.0.0.2:10911"


def cluster(now: int = 0) -> RouteInfoManager:
    """One master and one slave, registered at now."""
    names = RouteInfoManager()
    names.register_broker("C", MASTER, "b", 0, "ha", TOPICS, None, now)
    names.register_broker("C", SLAVE, "b", 1, None, TOPICS, ["filter"], now)
    return names


def route_of(names: RouteInfoManager) -> TopicRouteData:
    route = names.pickup_topic_route_data("T")
    assert route is not None
    return route


def test_a_slave_learns_its_master_once_that_is_alive() -> None:
    names = RouteInfoManager()
    assert names.register_broker("C", SLAVE, "b", 1, None, TOPICS, None, 0) == RegisterBrokerResult()
    names.register_broker("C", MASTER, "b", 0, "ha", TOPICS, None, 0)
    found = names.register_broker("C", SLAVE, "b", 1, None, TOPICS, None, 0)
    assert found == RegisterBrokerResult(MASTER, "ha")


def test_without_its_master_a_name_still_gives_a_route_but_nothing_to_send_to() -> None:
    names = cluster()
    names.on_channel_destroy(MASTER)
    route = route_of(names)
    assert route.broker_datas == [BrokerData("C", "b", {1: SLAVE})]
    assert route.filter_server_table == {SLAVE: ["filter"]}
    assert not topic_publish_info("T", route).ok
    assert len(topic_subscribe_info("T", route)) == 4


def test_two_minutes_of_silence_are_not_yet_too_long() -> None:
    names = cluster(now=1_000)
    assert names.scan_not_active_broker(now=121_000) == 0
    assert names.scan_not_active_broker(now=121_001) == 2
    assert names.pickup_topic_route_data("T") is None
    assert names.cluster_addr_table == {}


def test_a_slave_that_becomes_master_is_no_slave_any_more() -> None:
    names = cluster()
    names.on_channel_destroy(MASTER)
    names.register_broker("C", SLAVE, "b", 0, None, TOPICS, None, 0)
    assert route_of(names).broker_datas[0].broker_addrs == {0: SLAVE}


def test_topics_are_taken_only_with_a_new_version() -> None:
    names = cluster()
    fewer = {"T": QueueData("", 2, 2, 6)}
    names.register_broker("C", MASTER, "b", 0, "ha", TopicConfigs(1, fewer), None, 0)
    assert route_of(names).queue_datas[0].read_queue_nums == 4
    names.register_broker("C", MASTER, "b", 0, "ha", TopicConfigs(2, fewer), None, 0)
    assert route_of(names).queue_datas[0].read_queue_nums == 2


def test_a_wiped_permission_comes_back_with_a_new_version_or_by_hand() -> None:
    names = cluster()
    assert names.wipe_write_perm_of_broker("b") == 1
    assert write_queue_nums_by_broker(route_of(names)) == {}
    assert names.add_write_perm_of_broker("b") == 1
    assert write_queue_nums_by_broker(route_of(names)) == {"b": 4}
    assert names.wipe_write_perm_of_broker("c") == 0


def test_a_registration_without_topics_leaves_an_address_that_is_not_alive() -> None:
    names = RouteInfoManager()
    names.register_broker("C", MASTER, "b", 0, "ha", None, ["filter"], 0)
    assert names.broker_addr_table["b"].broker_addrs == {0: MASTER}
    assert names.broker_live_table == {}
    assert names.filter_server_table == {}


def test_empty_filter_servers_remove_them_and_none_keeps_them() -> None:
    names = cluster()
    names.register_broker("C", SLAVE, "b", 1, None, TOPICS, None, 0)
    assert names.filter_server_table == {SLAVE: ["filter"]}
    names.register_broker("C", SLAVE, "b", 1, None, TOPICS, [], 0)
    assert names.filter_server_table == {}


def test_a_route_is_a_copy() -> None:
    names = cluster()
    route = route_of(names)
    names.unregister_broker("C", SLAVE, "b", 1)
    assert route.broker_datas[0].broker_addrs == {0: MASTER, 1: SLAVE}
    assert names.cluster_addr_table == {"C": {"b"}}


def test_an_address_under_two_names_is_forgotten_under_one() -> None:
    names = RouteInfoManager()
    for name in ("b-a", "b-b"):
        names.register_broker("C", MASTER, name, 0, None, TOPICS, None, 0)
    names.on_channel_destroy(MASTER)
    assert list(names.broker_addr_table) == ["b-a"]


@pytest.mark.parametrize(
    ("conf", "queues"),
    [("a:2;", [("a", 0), ("a", 1)]), ("a:1:9;b:0;c:-1", [("a", 0)]), (":1", [("", 0)]), (";", [])],
)
def test_an_order_topic_is_taken_as_it_is_written(conf: str, queues: list[tuple[str, int]]) -> None:
    info = topic_publish_info("T", TopicRouteData([], [], order_topic_conf=conf))
    assert info.order_topic
    assert info.message_queue_list == tuple(MessageQueue("T", *queue) for queue in queues)


def test_what_java_throws_for_an_order_topic() -> None:
    for conf, length in (("a", 1), (":", 0), ("a:1;;b:1", 1)):
        with pytest.raises(ArrayIndexOutOfBounds, match=f"Index 1 out of bounds for length {length}"):
            topic_publish_info("T", TopicRouteData([], [], order_topic_conf=conf))
    with pytest.raises(NumberFormat, match='For input string: "x"'):
        topic_publish_info("T", TopicRouteData([], [], order_topic_conf="a:x"))


def test_an_empty_order_topic_conf_is_none() -> None:
    assert topic_publish_info("T", TopicRouteData([], [], order_topic_conf="")) == (False, ())


def test_who_unregisters_takes_its_filter_servers_along() -> None:
    names = cluster()
    names.unregister_broker("C", SLAVE, "b", 1)
    assert names.filter_server_table == {}


def test_a_broker_that_is_new_gives_its_topics_whatever_their_version() -> None:
    # The same address under a second name: alive and of a known version, but the first of its name.
    names = cluster()
    names.register_broker("C", MASTER, "c", 0, "ha", TOPICS, None, 0)
    assert set(names.topic_queue_table["T"]) == {"b", "c"}


def test_topics_of_a_name_that_is_gone_are_passed_over() -> None:
    names = cluster()
    names.topic_queue_table["T"]["gone"] = QueueData("gone", 4, 4, 6)
    route = route_of(names)
    assert [data.broker_name for data in route.broker_datas] == ["b"]
    assert {data.broker_name for data in route.queue_datas} == {"b", "gone"}


def test_a_route_comes_in_the_order_of_javas_map() -> None:
    names = RouteInfoManager()
    for name in "cab":
        names.register_broker("C", f"{name}:1", name, 0, None, TOPICS, None, 0)
    assert [data.broker_name for data in route_of(names).queue_datas] == ["a", "b", "c"]
