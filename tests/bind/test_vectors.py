"""What RocketMQ's own classes answered, asked of each face: thousands of calls in one DataFrame.

Among the good rows of each are rows that fail, nulls and empty arrays: none of them disturbs another.
"""

from __future__ import annotations

from typing import Any

import pytest

from mqreplay.bind import functions
from mqreplay.core.pull_answer import PULL_OFFSET_MOVED, response_code

ALLOCATIONS = {
    "allocate_averagely": functions.allocate_averagely,
    "allocate_circle": functions.allocate_averagely_by_circle,
}


def queue(mq: list[Any] | tuple[Any, ...]) -> dict[str, Any]:
    return dict(zip(("topic", "broker_name", "queue_id"), mq, strict=True))


def allocations(ask: Any, stem: str) -> list[Any]:
    """(strategy's name, the four arguments, the answer) of each case."""
    return [
        (
            case["strategy"],
            (
                case.get("consumerGroup"),
                case.get("currentCID"),
                None if case.get("mqAll") is None else [queue(mq) for mq in case["mqAll"]],
                case.get("cidAll"),
            ),
            ask.java_error(out["error"]) if "error" in out else ask.value([queue(mq) for mq in out["result"]]),
        )
        for case, out in ask.vectors(stem)
    ]


@pytest.mark.parametrize("stem", ALLOCATIONS)
def test_allocation(ask: Any, face: str, stem: str) -> None:
    cases = [(arguments, answer) for _, arguments, answer in allocations(ask, stem)]
    assert any(answer["error"] for _, answer in cases)
    ask.check(face, ALLOCATIONS[stem], cases)


def test_allocate_by_strategy_name(ask: Any, face: str) -> None:
    cases = [
        ((strategy, *arguments), answer)
        for stem in ALLOCATIONS
        for strategy, arguments, answer in allocations(ask, stem)
    ]
    unknown = "'AVERAGE' is not one of RocketMQ's own allocation strategies"
    cases.append((("AVERAGE", "g", "c", [], []), ask.error("UnknownStrategy", unknown)))
    cases.append(((None, "g", "c", [], []), ask.error("NullArgument", "strategy_name is null")))
    ask.check(face, functions.allocate, cases)


def pulls(ask: Any) -> tuple[list[Any], list[Any]]:
    """Calls of recalculate and of update, with the client's table followed from call to call."""
    recalculated, updated = [], []
    for case, out in ask.vectors("recalc_pull_node"):
        table: dict[tuple[Any, ...], int] = {}
        settings = {"setDefaultBrokerId": 0, "setConnectBrokerByUser": False}
        for op, result in zip(case.get("ops", []), out.get("results", []), strict=True):
            mq = tuple(op.get("mq", ()))
            if op["op"] == "recalculate":
                by_user, default = settings["setConnectBrokerByUser"], settings["setDefaultBrokerId"]
                recalculated.append(((table.get(mq), by_user, default), ask.value(result)))
            elif op["op"] in settings:
                settings[op["op"]] = op["v"]
            else:
                before = [(queue(q), broker_id) for q, broker_id in table.items()]
                table[mq] = op["v"]
                after = [(queue(q), broker_id) for q, broker_id in table.items()]
                updated.append(((before, queue(mq), op["v"]), ask.value(after)))
    return recalculated, updated


def test_recalculate_pull_from_which_node(ask: Any, face: str) -> None:
    cases, _ = pulls(ask)
    cases.append(((1, None, 0), ask.error("NullArgument", "connect_broker_by_user is null")))
    ask.check(face, functions.recalculate_pull_from_which_node, cases)


def test_update_pull_from_which_node(ask: Any, face: str) -> None:
    _, cases = pulls(ask)
    q = queue(("T", "b", 0))
    cases.append(((None, q, 1), ask.value([(q, 1)])))
    cases.append((([], None, 1), ask.error("NullArgument", "mq is null")))
    cases.append((([(q, 7)], q, None), ask.error("NullArgument", "broker_id is null")))
    ask.check(face, functions.update_pull_from_which_node, cases)


def found(ask: Any, case: dict[str, Any], table: dict[str, dict[int, str]], out: dict[str, Any]) -> Any:
    if "error" in out:
        return ask.java_error(out["error"])
    if out["result"] is None:
        return ask.value(None)
    addr = out["result"]["brokerAddr"]
    (broker_id,) = [i for i, each in table[case["brokerName"]].items() if each == addr]
    return ask.value({"broker_addr": addr, "broker_id": broker_id, "slave": out["result"]["slave"]})


def test_find_broker_address_in_subscribe(ask: Any, face: str) -> None:
    cases = []
    for case, out in ask.vectors("recalc_pull_node"):
        if case["case"].startswith("find."):
            rows = case.get("brokerAddrTable", [])
            table = {row["brokerName"]: dict(row["insertedInOrder"]) for row in rows}
            arguments = (table, case["brokerName"], case["brokerId"], case["onlyThisBroker"], "4.9.8")
            cases.append((arguments, found(ask, case, table, out)))
    assert any(answer["value"] is None for _, answer in cases)
    cases.append(((None, "a", 0, False, "4.9.8"), ask.value(None)))
    cases.append((({"a": None}, "a", 0, False, "4.9.8"), ask.value(None)))
    cases.append((({}, None, 0, False, "5.3.3"), ask.value(None)))
    cases.append((({}, "a", None, False, "4.9.8"), ask.error("NullArgument", "broker_id is null")))
    ask.check(face, functions.find_broker_address_in_subscribe, cases)


def test_check_in_disk_by_commit_offset(ask: Any, face: str) -> None:
    names = ("offsetPy", "maxOffsetPy", "totalPhysicalMemorySize", "accessMessageInMemoryMaxRatio")
    cases = [
        (tuple(case[name] for name in names), ask.value(out["inDisk"]))
        for case, out in ask.vectors("batch_full")
        if case["case"].startswith("checkInDiskByCommitOffset")
    ]
    ask.check(face, functions.check_in_disk_by_commit_offset, cases)
    # The same line, seen from the other end.
    turned = [((end, at, memory, ratio), answer) for (at, end, memory, ratio), answer in cases]
    ask.check(face, functions.slave_suggestion, turned)


def suggestions(ask: Any) -> list[Any]:
    names = ("suggestPullingFromSlave", "slaveReadEnable", "groupBrokerId", "whichBrokerWhenConsumeSlowly")
    cases = []
    for stem, version in (("broker_suggest", "4.9.7"), ("broker_suggest_v533", "5.3.3")):
        for case, out in ask.vectors(stem):
            # Such a slave suggests the group's broker instead: that is core's pull_answer.
            uncorrected = version < "5" and case["brokerRole"] == "SLAVE" and not case["offsetCheckInSlave"]
            moved = response_code(case["status"], case["queueOffset"]) == PULL_OFFSET_MOVED
            if out.get("suggestWhichBrokerId") is None or (uncorrected and moved):
                continue
            of_5 = (
                case.get("brokerId", 0),
                case.get("minBrokerIdInGroup", 0),
                case.get("inBrokerContainer", False),
            )
            arguments = (*(case[name] for name in names), *of_5, version)
            cases.append((arguments, ask.value(out["suggestWhichBrokerId"])))
    return cases


def test_suggest_which_broker_id(ask: Any, face: str) -> None:
    cases = suggestions(ask)
    assert len(cases) > 3000
    message = "not a RocketMQ version: 'new'; write it like 5.3.3"
    cases.append(((True, True, 0, 1, 0, 0, False, "new"), ask.error("java.lang.IllegalArgumentException", message)))
    ask.check(face, functions.suggest_which_broker_id, cases)
