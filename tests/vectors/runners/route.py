"""RouteInfoManager over time, and what clients make of a route."""

from __future__ import annotations

from typing import Any

from mqreplay.core.java import utf16_key
from mqreplay.core.route_info_manager import RouteInfoManager, TopicConfigs
from mqreplay.core.topic_route import (
    BrokerData,
    QueueData,
    TopicRouteData,
    topic_publish_info,
    topic_subscribe_info,
)
from mqreplay.words.errors import RocketMQError

NOW = 1_700_000_000_000
TOPICS = ("T1", "T2", "T3")


def register(names: RouteInfoManager, op: dict[str, Any]) -> dict[str, Any]:
    topics = op["topics_read_write_perm"]
    wrapper = None
    if topics is not None:
        table = {topic: QueueData("", *settings) for topic, settings in topics.items()}
        wrapper = TopicConfigs(op["dataVersionCounter"], table)
    result = names.register_broker(
        op["cluster"],
        op["brokerAddr"],
        op["brokerName"],
        op["brokerId"],
        op["haServerAddr"],
        wrapper,
        op["filterServers"],
        NOW,
    )
    return {"masterAddr": result.master_addr, "haServerAddr": result.ha_server_addr}


def age_last_update(names: RouteInfoManager, op: dict[str, Any]) -> None:
    live = names.broker_live_table.get(op["brokerAddr"])
    if live is not None:
        aged = live._replace(last_update_timestamp=NOW - op["ageMs"])
        names.broker_live_table[op["brokerAddr"]] = aged
    if op["thenScan"]:
        names.scan_not_active_broker(NOW)


def apply(names: RouteInfoManager, op: dict[str, Any]) -> Any:
    match op["op"]:
        case "register":
            return register(names, op)
        case "ageLastUpdate":
            return age_last_update(names, op)
        case "unregister":
            return names.unregister_broker(op["cluster"], op["brokerAddr"], op["brokerName"], op["brokerId"])
        case "channelDestroy":
            return names.on_channel_destroy(op["brokerAddr"])
        case "wipeWritePerm":
            return names.wipe_write_perm_of_broker(op["brokerName"])
        case "addWritePerm":
            return names.add_write_perm_of_broker(op["brokerName"])
    raise NotImplementedError(op["op"])


def text_keys(addrs: Any) -> dict[str, str]:
    return {str(broker_id): addr for broker_id, addr in addrs.items()}


def shown(route: TopicRouteData | None) -> dict[str, Any] | None:
    """The vectors give both lists by broker name, not in the order of Java's maps."""
    return route and {
        "queueDatas": [list(queue_data) for queue_data in sorted(route.queue_datas)],
        "brokerDatas": [
            {
                "brokerName": data.broker_name,
                "cluster": data.cluster,
                "brokerAddrs": text_keys(data.broker_addrs),
            }
            for data in sorted(route.broker_datas, key=lambda data: data.broker_name)
        ],
        "filterServerTable": route.filter_server_table,
    }


def state(names: RouteInfoManager) -> dict[str, Any]:
    return {
        "brokerAddrTable": {
            name: {"cluster": data.cluster, "addrs": text_keys(data.broker_addrs)}
            for name, data in names.broker_addr_table.items()
        },
        "clusterAddrTable": {cluster: sorted(found) for cluster, found in names.cluster_addr_table.items()},
        "topicQueueTable": {topic: sorted(found) for topic, found in names.topic_queue_table.items()},
        "live": sorted(names.broker_live_table, key=utf16_key),
    }


def namesrv_route(asked: dict[str, Any]) -> dict[str, Any]:
    if asked["case"] != "sequence":
        raise NotImplementedError(asked["case"])
    names = RouteInfoManager()
    after = []
    for op in asked["ops"]:
        returned = apply(names, op)
        routes = {topic: shown(names.pickup_topic_route_data(topic)) for topic in TOPICS}
        after.append({"return": returned, "routes": routes})
    if after:
        after[-1]["state"] = state(names)
    return {"after": after}


def publish(topic: str, route: TopicRouteData) -> dict[str, Any]:
    try:
        info = topic_publish_info(topic, route)
    except RocketMQError as error:
        return {"error": str(error)}
    queues = [list(mq) for mq in info.message_queue_list]
    return {"orderTopic": info.order_topic, "queues": queues, "ok": info.ok}


def topic_route(asked: dict[str, Any]) -> dict[str, Any]:
    if asked["case"] not in ("route", "route.orderConf"):
        raise NotImplementedError(asked["case"])
    queue_datas = [
        QueueData(qd["brokerName"], qd["readQueueNums"], qd["writeQueueNums"], qd["perm"]) for qd in asked["queueDatas"]
    ]
    broker_datas = [
        BrokerData("", data["brokerName"], {int(key): addr for key, addr in data["brokerAddrs"].items()})
        for data in asked["brokerDatas"]
    ]
    route = TopicRouteData(queue_datas, broker_datas, order_topic_conf=asked["orderTopicConf"])
    return {
        "publish": publish(asked["topic"], route),
        "subscribeSorted": [list(mq) for mq in topic_subscribe_info(asked["topic"], route)],
    }


FILES = {"namesrv_route": namesrv_route, "topic_route": topic_route}
