"""MQFaultStrategy and TopicPublishInfo#selectOneMessageQueue."""

from __future__ import annotations

from typing import Any

from mqreplay.core.fault_strategy import (
    FaultItem,
    compute_not_available_duration,
    is_available,
    update_fault_item,
)
from mqreplay.core.message_queue import MessageQueue
from mqreplay.core.select_queue import select_one_message_queue, select_with_faults, select_with_filters
from mqreplay.core.version import at_least
from mqreplay.words.errors import RocketMQError

NOW = 1_700_000_000_000


def duration(asked: dict[str, Any]) -> dict[str, Any]:
    latency, thresholds = asked["currentLatency"], asked["latencyMax"]
    return {"duration": compute_not_available_duration(latency, thresholds, asked["notAvailableDuration"])}


def updates(asked: dict[str, Any]) -> dict[str, Any]:
    items: dict[str, FaultItem] = {}
    if asked["sendLatencyFaultEnable"]:
        for broker, latency, isolation in asked["ops_broker_latency_isolation"]:
            items = update_fault_item(items, broker, latency, isolation, NOW)
    return {
        "table_latency_notAvailableForMs": {
            name: [item.current_latency, item.start_timestamp - NOW] for name, item in items.items()
        },
        "available": {name: is_available(items, name, NOW) for name in ("a", "b")},
    }


def round_robin(asked: dict[str, Any]) -> dict[str, Any]:
    queues = [MessageQueue(*mq) for mq in asked["queues"]]
    index, selected = asked["startIndex"], []
    for last_broker_name in asked["lastBrokerNames"]:
        mq, index = select_one_message_queue(queues, index, last_broker_name)
        selected.append([list(mq), index])
    return {"selected_and_indexAfter": selected}


def round_robin_empty(asked: dict[str, Any]) -> dict[str, Any]:
    errors = []
    for last_broker_name in asked["lastBrokerNames"]:
        try:
            select_one_message_queue([], asked["startIndex"], last_broker_name)
        except RocketMQError as error:
            errors.append(str(error))
    return {"errors": errors}


def latency_fault_on(asked: dict[str, Any], version: str | None = None) -> dict[str, Any]:
    """``version`` None: 4.9.8, whose cases also have the queues afterwards."""
    queues = [MessageQueue(*mq) for mq in asked["queues"]]
    nums, release = dict(asked["writeQueueNums"]), version or "4.9.8"
    index, worst, selected = asked["startIndex"], asked["startWorst"], []
    items: Any = {
        item["broker"]: FaultItem(item["latency"], NOW + (-1 if item["availableNow"] else 3_600_000))
        for item in asked["faultItems"]
    }
    for last in asked["lastBrokerNames"]:
        if at_least(release, "5.1.4"):
            mq, index = select_with_filters(queues, index, items, NOW, last)
        else:
            mq, index, worst, items = select_with_faults(queues, nums, index, worst, items, NOW, last, release)
        selected.append([list(mq), index, worst, sorted(items)])
    answer: dict[str, Any] = {"selected_index_worst_itemsLeft": selected}
    return answer if version else answer | {"queuesAfter": [list(mq) for mq in queues]}


CASES = {
    "computeNotAvailableDuration": duration,
    "updateFaultItem": updates,
    "roundRobin": round_robin,
    "roundRobin.empty": round_robin_empty,
}


def fault_strategy(asked: dict[str, Any], version: str | None = None) -> dict[str, Any]:
    if asked["case"] == "latencyFaultOn":
        return latency_fault_on(asked, version)
    if asked["case"] not in CASES:
        raise NotImplementedError(asked["case"])
    return CASES[asked["case"]](asked)


FILES = {"fault_strategy": fault_strategy}
