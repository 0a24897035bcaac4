"""ProcessQueue: a sequence of operations, and the whole state after each."""

from __future__ import annotations

from typing import Any

from mqreplay.core.process_queue import ProcessQueue, PulledMessage
from mqreplay.words.errors import RocketMQError

COLUMNS = "return,msgCount,msgSize,queueOffsetMax,maxSpan,msgAccCnt,consuming,hasTempMessage,tree,consumingTree"


def apply(pq: ProcessQueue, op: dict[str, Any]) -> Any:
    msgs = [PulledMessage(*msg) for msg in op.get("msgs", [])]
    match op["op"]:
        case "put":
            return pq.put_message(msgs)
        case "remove":
            return pq.remove_message(msgs)
        case "take":
            return [msg.queue_offset for msg in pq.take_messages(op["n"])]
        case "commit":
            return pq.commit()
        case "rollback":
            return pq.rollback()
        case "again":
            return pq.make_message_to_consume_again(msgs)
        case "clear":
            return pq.clear()
    raise NotImplementedError(op["op"])


def answer(pq: ProcessQueue, op: dict[str, Any]) -> Any:
    try:
        return apply(pq, op)
    except RocketMQError as error:
        return {"error": error.java_class}


def process_queue(asked: dict[str, Any], version: str = "4.9.8") -> dict[str, Any]:
    if asked["case"] not in ("concurrent", "orderly"):
        raise NotImplementedError(asked["case"])
    pq = ProcessQueue(version)
    after = []
    for op in asked["ops"]:
        returned = answer(pq, op)
        counters = [returned, pq.msg_count, pq.msg_size, pq.queue_offset_max, pq.max_span(), pq.msg_acc_cnt]
        trees = [pq.consuming, pq.has_temp_message(), pq.tree(), pq.consuming_tree()]
        after.append(counters + trees)
    return {"columns": COLUMNS, "after": after}


FILES = {"process_queue": process_queue}
