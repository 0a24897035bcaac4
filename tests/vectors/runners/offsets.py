"""Consumer offsets: at the client, at the broker, and as text."""

from __future__ import annotations

from typing import Any

from mqreplay.core import consumer_offset_manager as manager
from mqreplay.core.consumer_offset_manager import offset_of_answer
from mqreplay.core.message_queue import MessageQueue
from mqreplay.core.offset_store import (
    READ_FROM_STORE,
    RemoteBrokerOffsetStore,
    compare_and_increase_only,
)
from mqreplay.words.errors import MQBrokerError, OffsetNotFound, RocketMQError
from oracles import offset_file
from oracles.fastjson.consumer_offset import decode_consumer_offset

ANSWERED = 7  # the broker's offset in the vectors of offset_query
ERROR_WIDTH = 160  # characters of a message that the vectors keep


class Unreachable(RocketMQError):
    """Any failure that is not an answer of the broker."""


FAILURES = {
    "MQBrokerException": MQBrokerError,
    "OffsetNotFoundException": OffsetNotFound,
    "RemotingTimeoutException": Unreachable,
    "noBrokerAddress": Unreachable,
}


def compare_increase(case: dict[str, Any], version: str = "4.9.8") -> dict[str, Any]:
    kind = case["case"]
    if kind == "compareAndIncreaseOnly":
        return _increase(case)
    if kind == "remoteOffsetStore":
        return _remote(case["ops"], version)
    if kind == "consumerOffsetManager":
        return _manager(case["ops"])
    if kind == "persist":
        return _persist(case)
    if kind == "decode":
        return _decode(case, version)
    if kind == "load":
        loaded = offset_file.load(case["file"], case["bak"], lambda text: _table(text, version))
        return {"load": loaded.ok, "table": loaded.offset_table}
    raise NotImplementedError(kind)


def _increase(case: dict[str, Any]) -> dict[str, Any]:
    target, results = case["start"], []
    for value in case["values"]:
        moved, target = compare_and_increase_only(target, value)
        results.append(moved)
    return {"results": results, "final": target}


def _remote(ops: list[dict[str, Any]], version: str) -> dict[str, Any]:
    store: RemoteBrokerOffsetStore[MessageQueue] = RemoteBrokerOffsetStore(version)
    results: list[int | None] = []
    for op in ops:
        mq = MessageQueue(*op["mq"]) if op.get("mq") else None
        answer = None
        if op["op"] == "updateOffset":
            store.update_offset(mq, op["offset"], op["increaseOnly"])
        elif op["op"] == "removeOffset":
            store.remove_offset(mq)
        elif op["op"] == "readOffset":
            answer = store.read_offset(mq, op["type"], lambda answer=op["brokerAnswers"]: _broker(answer))
        elif op["op"] != "skip":
            raise NotImplementedError(op["op"])
        results.append(answer)
    final = {f"{mq.broker_name}/{mq.queue_id}": offset for mq, offset in store.offset_table.items()}
    return {"results": results, "final": final}


def _broker(answer: int | str) -> int:
    if isinstance(answer, str):
        raise FAILURES[answer]
    return answer


def _manager(ops: list[list[Any]]) -> dict[str, Any]:
    table: manager.OffsetTable = {}
    results: list[int | None] = []
    for op, group, topic, queue_id, *offset in ops:
        if op == "commit":
            manager.commit_offset(table, group, topic, queue_id, offset[0])
            results.append(None)
        elif op == "query":
            results.append(manager.query_offset(table, group, topic, queue_id))
        else:
            raise NotImplementedError(op)
    plain = offset_file.encode(table)
    return {
        "results": results,
        "table": table,
        "encode": plain,
        "encodePretty": offset_file.encode(table, True),
        "encodeNoArgSameAsPlain": plain == offset_file.encode(table, False),
    }


def _persist(case: dict[str, Any]) -> dict[str, Any]:
    table: manager.OffsetTable = {}
    manager.commit_offset(table, *case["commit"])
    file, bak = offset_file.persist(table, case["file"], case["bak"])
    files = {"consumerOffset.json": file, "consumerOffset.json.bak": bak}
    return {"filesAfter": {name: text for name, text in files.items() if text is not None}}


def _table(text: str, version: str) -> manager.OffsetTable | None:
    decoded = decode_consumer_offset(text, version)
    return decoded and decoded.offset_table


def _decode(case: dict[str, Any], version: str) -> dict[str, Any]:
    try:
        decoded = decode_consumer_offset(case["text"], version)
    except RocketMQError as error:
        return {"error": str(error)[:ERROR_WIDTH], "table": "unchanged"}
    return {"table": case["tableBefore"] if decoded is None else decoded.offset_table}


def offset_query(case: dict[str, Any], version: str) -> dict[str, Any]:
    if case["case"] != "readFromStore":
        raise NotImplementedError(case["case"])
    store: RemoteBrokerOffsetStore[str] = RemoteBrokerOffsetStore(version)
    return {"offset": store.read_offset("q", READ_FROM_STORE, lambda: offset_of_answer(case["code"], ANSWERED))}


FILES = {"compare_increase": compare_increase, "offset_query": offset_query}
