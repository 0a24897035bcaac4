"""POP: names of retry topics, receipts, headers of answers, assignment and start offset."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mqreplay.core import pop_receipt, pop_start, retry_topic
from mqreplay.core.message_queue import MessageQueue
from mqreplay.core.pop_assignment import RequestMode, allocate_for_pop, message_request_mode, query_assignment
from mqreplay.words.errors import RocketMQError

Asked = dict[str, Any]
Runner = Callable[..., dict[str, Any]]
RECEIPT = pop_receipt.ReceiptHandle(0, 1_700_000_000_000, 60_000, 0, "0", "broker-a", 3, None)
BROKER = "broker-a"


def with_errors(runner: Runner) -> Runner:
    """The answer of runner, or the Java exception that it raises."""

    def run(asked: Asked, version: str) -> dict[str, Any]:
        try:
            return runner(asked, version)
        except RocketMQError as error:
            return {"error": {"class": error.java_class, "message": error.message}}

    return run


def retry_topics(asked: Asked, version: str) -> dict[str, Any]:
    topic = asked["topic"]
    match asked["case"]:
        case "build":
            return {"topic": retry_topic.build_pop_retry_topic(topic, asked["cid"], asked["enableRetryV2"])}
        case "normal_topic":
            return {"topic": retry_topic.parse_normal_topic(topic, asked["cid"])}
        case "parse":
            return {
                "v2": retry_topic.is_pop_retry_topic_v2(topic),
                "topic": retry_topic.parse_normal_topic(topic),
                "group": retry_topic.parse_group(topic),
            }
    raise NotImplementedError(asked["case"])


def receipts(asked: Asked, version: str) -> dict[str, Any]:
    match asked["case"]:
        case "decode":
            handle = pop_receipt.decode_receipt_handle(asked["handle"])
            return {
                "fields": handle,
                "nextVisibleTime": handle.next_visible_time,
                "encoded": pop_receipt.encode_receipt_handle(handle),
                "realTopic": pop_receipt.real_topic(handle.topic_type, "T", "g"),
            }
        case "extra_info":
            handle = pop_receipt.parse_extra_info(asked["extraInfo"])
            return {"fields": handle[:7], "offset": handle.offset, "order": handle.is_order}
        case "build":
            handle = RECEIPT._replace(
                start_offset=asked["ckQueueOffset"],
                revive_queue_id=asked["reviveQid"],
                topic_type=pop_receipt.topic_type(asked["topic"]),
                offset=asked["msgQueueOffset"],
            )
            return {"extraInfo": pop_receipt.build_extra_info(handle)}
        case "real_topic":
            topic = pop_receipt.real_topic(asked["mark"], asked["topic"], asked["cid"])
            return {"topic": topic, "ofHandle": topic}
        case "start_offset_info":
            return {"map": pop_receipt.parse_start_offset_info(asked["info"])}
        case "msg_offset_info":
            return {"map": pop_receipt.parse_msg_offset_info(asked["info"])}
        case "order_count_info":
            return {"map": pop_receipt.parse_order_count_info(asked["info"])}
    raise NotImplementedError(asked["case"])


def queues(listed: list[list[Any]] | None) -> list[MessageQueue] | None:
    return None if listed is None else [MessageQueue(*mq) for mq in listed]


def assignments(asked: Asked, version: str) -> dict[str, Any]:
    if asked["case"] == "allocate":
        mq_all = queues(asked["mqAll"]) or []
        share = asked["popShareQueueNum"]
        return {"queues": allocate_for_pop(asked["strategy"], "g", asked["clientId"], mq_all, asked["cidAll"], share)}
    if asked["case"] != "query":
        raise NotImplementedError(asked["case"])
    stored = RequestMode(*asked["stored"]) if asked["stored"] else None
    mode = message_request_mode(asked["topic"], stored, asked["defaultMode"], asked["defaultShare"])
    found = query_assignment(
        asked["topic"],
        asked["group"],
        asked["clientId"],
        asked["messageModel"],
        asked["strategy"],
        mode,
        queues(asked["mqSet"]),
        asked["cidAll"],
        asked["serverLoadBalancerEnable"],
        BROKER,
    )
    return {"queues": found, "modes": None if found is None else [mode.mode] if found else []}


def starts(asked: Asked, version: str) -> dict[str, Any]:
    start = pop_start.pop_init_offset(
        asked["topic"],
        asked["initMode"],
        asked["min"],
        asked["max"],
        asked["inMemory"],
        asked["checkMsgInMem"],
        version,
    )
    if asked["case"] == "init":
        return {"offset": start}
    committed = -1 if asked["committed"] is None else asked["committed"]
    if asked["case"] == "pop":
        return {"offset": pop_start.pop_offset(committed, start, asked["reset"])}
    if asked["case"] == "kv":
        pulled, reset = asked["pulled"], asked["reset"]
        return {"offset": pop_start.kv_pop_offset(committed, pulled, start, reset, asked["fifo"], version)}
    raise NotImplementedError(asked["case"])


FILES = {
    "pop_retry_topic": with_errors(retry_topics),
    "pop_receipt": with_errors(receipts),
    "pop_assignment": with_errors(assignments),
    "pop_start": with_errors(starts),
}
