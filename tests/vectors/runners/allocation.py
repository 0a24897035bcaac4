"""Allocation strategies and the order of queues and client ids."""

from __future__ import annotations

from typing import Any

from mqreplay.core import allocation
from mqreplay.core.allocation_machine_room import allocate_machine_room_nearby
from mqreplay.core.java import string_hash, utf16_key
from mqreplay.core.message_queue import (
    MessageQueue,
    compare_message_queues,
    message_queue_hash,
    sort_client_ids,
    sort_message_queues,
)
from mqreplay.words.errors import NullPointer, RocketMQError

HASHES = {"md5": None, "length": lambda key: len(utf16_key(key)) // 2, "javaHashCode": string_hash}


class Dash:
    """The resolver of the vectors: text before the first '-', else empty."""

    def broker_deploy_in(self, message_queue: MessageQueue) -> str:
        return self.consumer_deploy_in(message_queue.broker_name)

    def consumer_deploy_in(self, client_id: str | None) -> str:
        if client_id is None:
            raise NullPointer
        return client_id.split("-")[0] if "-" in client_id else ""


def queues(listed: list[list[Any]] | None) -> list[MessageQueue] | None:
    return None if listed is None else [MessageQueue(*mq) for mq in listed]


def allocate(prefix: str) -> Any:
    """A runner for the cases of one strategy, whose kinds begin with prefix."""

    def run(case: dict[str, Any]) -> dict[str, Any]:
        if case["case"].split(".")[0] != prefix:
            raise NotImplementedError(case["case"])
        try:
            return {"result": _answer(case)}
        except RocketMQError as error:
            return {"error": str(error)}

    return run


def _answer(case: dict[str, Any]) -> list[MessageQueue]:
    if case["case"] == "nearby.construct":
        inner = None if case["innerNull"] else lambda cid, mqs, cids: []
        return allocate_machine_room_nearby("c", [], [], inner, None if case["resolverNull"] else Dash())
    return allocation.allocate(
        case["strategy"],
        case.get("consumerGroup"),
        case.get("currentCID"),
        queues(case.get("mqAll")),
        case.get("cidAll"),
        allocation.StrategySettings(
            queues(case.get("config")),
            case.get("consumeridcs"),
            case.get("virtualNodeCnt", 10),
            HASHES[case.get("hash", "md5")],
            Dash() if "resolver" in case else None,
        ),
    )


def sort(case: dict[str, Any]) -> dict[str, Any]:
    kind = case["case"]
    if kind == "messageQueue":
        return {"sorted": sort_message_queues(MessageQueue(*mq) for mq in case["mqs"])}
    if kind == "clientId":
        return {"sorted": sort_client_ids(case["ids"])}
    if kind == "compare":
        a, b = MessageQueue(*case["a"]), MessageQueue(*case["b"])
        return {
            "compareTo": compare_message_queues(a, b),
            "equals": a == b,
            "aHashCode": message_queue_hash(a),
            "aToString": str(a),
        }
    raise NotImplementedError(kind)


FILES = {
    "allocate_averagely": allocate("avg"),
    "allocate_circle": allocate("circle"),
    "allocate_config": allocate("config"),
    "allocate_consistenthash": allocate("hash"),
    "allocate_machineroom": allocate("room"),
    "allocate_nearby": allocate("nearby"),
    "sort": sort,
}
