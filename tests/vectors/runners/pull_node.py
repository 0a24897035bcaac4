"""Where a pull goes."""

from __future__ import annotations

from typing import Any

from mqreplay.core.message_queue import MessageQueue
from mqreplay.core.pull_node import (
    PullFromWhichNodeTable,
    broker_ids_in_order,
    find_broker_address_in_publish,
    find_broker_address_in_subscribe,
)
from mqreplay.words.errors import RocketMQError

FIND_KINDS = {"exact", "idPlusOne", "other", "unknownName", "emptyTable", "nullName"}


def recalc_pull_node(case: dict[str, Any], version: str = "4.9.8") -> dict[str, Any]:
    kind = case["case"]
    if kind == "recalculate":
        return {"results": _recalculate(case["ops"])}
    words = kind.split(".")
    if words[0] == "find" and words[1] in FIND_KINDS:
        try:
            return _find(case, version)
        except RocketMQError as error:
            return {"error": str(error)}
    raise NotImplementedError(kind)


def _recalculate(ops: list[dict[str, Any]]) -> list[int | None]:
    table: PullFromWhichNodeTable[MessageQueue] = PullFromWhichNodeTable()
    results: list[int | None] = []
    for op in ops:
        answer = None
        if op["op"] == "recalculate":
            answer = table.recalculate_pull_from_which_node(MessageQueue(*op["mq"]))
        elif op["op"] == "updatePullFromWhichNode":
            table.update_pull_from_which_node(MessageQueue(*op["mq"]), op["v"])
        elif op["op"] == "setDefaultBrokerId":
            table.default_broker_id = op["v"]
        elif op["op"] == "setConnectBrokerByUser":
            table.connect_broker_by_user = op["v"]
        else:
            raise NotImplementedError(op["op"])
        results.append(answer)
    return results


def _find(case: dict[str, Any], version: str) -> dict[str, Any]:
    name = case["brokerName"]
    table = {row["brokerName"]: dict(row["insertedInOrder"]) for row in case.get("brokerAddrTable", [])}
    versions = {row["brokerName"]: row["versions"] for row in case.get("brokerVersionTable", [])}
    found = find_broker_address_in_subscribe(table, name, case["brokerId"], case["onlyThisBroker"], versions, version)
    result = found and {
        "brokerAddr": found.broker_addr,
        "slave": found.slave,
        "brokerVersion": found.broker_version,
    }
    return {
        "result": result,
        "iterationOrder": broker_ids_in_order(table[name]) if name in table else None,
        "findBrokerAddressInPublish": find_broker_address_in_publish(table, name),
    }


FILES = {"recalc_pull_node": recalc_pull_node}
