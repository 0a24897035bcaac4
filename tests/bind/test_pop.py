"""The laws of POP through each face: what RocketMQ's own classes answered, and nulls."""

from __future__ import annotations

from typing import Any

from mqreplay.bind import functions
from mqreplay.core.pop_receipt import ReceiptHandle

QUEUE = ("topic", "broker_name", "queue_id")


def queues(listed: list[list[Any]]) -> list[dict[str, Any]]:
    return [dict(zip(QUEUE, mq, strict=True)) for mq in listed]


def java_error(ask: Any, error: dict[str, Any]) -> Any:
    return ask.java_error(f"{error['class']}: {error['message']}")


def test_receipts(ask: Any, face: str) -> None:
    cases = []
    for asked, out in ask.vectors("pop_receipt_v550"):
        if asked["case"] == "extra_info":
            if "error" in out:
                answer = java_error(ask, out["error"])
            else:
                answer = ask.value(ReceiptHandle(*out["fields"], offset=out["offset"])._asdict())
            cases.append(((asked["extraInfo"],), answer))
    assert any(answer["error"] for _, answer in cases)
    ask.check(face, functions.parse_extra_info, cases)


def test_assignments(ask: Any, face: str) -> None:
    cases = []
    for asked, out in ask.vectors("pop_assignment_v550"):
        if asked["case"] == "allocate":
            mq_all, cid_all = queues(asked["mqAll"]), asked["cidAll"]
            arguments = (asked["strategy"], "g", asked["clientId"], mq_all, cid_all, asked["popShareQueueNum"])
            failed = "error" in out
            cases.append((arguments, java_error(ask, out["error"]) if failed else ask.value(queues(out["queues"]))))
    cases.append((("AVG", "g", "c", None, [], 1), ask.error("NullArgument", "mq_all is null")))
    ask.check(face, functions.allocate_for_pop, cases)


def test_retry_topics_that_fit_no_group_or_several_have_no_answer(ask: Any, face: str) -> None:
    owner = {"consumer_group": "a", "topic": "b_c", "version": 1}
    cases = [
        (("%RETRY%a_b_c", ["a", "a_b"], ["b_c"]), ask.value(owner)),
        (("%RETRY%a_b_c", ["a", "a_b"], ["b_c", "c"]), ask.value(None)),
        (("%RETRY%a_b_c", ["x"], []), ask.value(None)),
        (("%RETRY%x", ["x"], []), ask.value({"consumer_group": "x", "topic": None, "version": 0})),
        ((None, ["x"], []), ask.error("NullArgument", "retry_topic is null")),
    ]
    ask.check(face, functions.parse_retry_topic, cases)


def test_a_blocked_queue(ask: Any, face: str) -> None:
    def asked(now: int, next_visible: dict[int, int] | None) -> tuple[Any, ...]:
        return ([5, 1], 1, "a", 1000, 300, next_visible, "b", 300, now)

    cases = [
        (asked(1299, None), ask.value(True)),
        (asked(1300, None), ask.value(False)),
        (asked(1300, {6: 1301}), ask.value(True)),
        (asked(1299, {6: 1100}), ask.value(False)),
    ]
    ask.check(face, functions.check_block, cases)
