"""Each try of a send: the queue in turn, retries, and what cannot be known."""

from __future__ import annotations

from collections import Counter
from typing import Any

import polars as pl
import pytest

from mqreplay.core.fault_strategy import update_fault_item
from mqreplay.core.message_queue import MessageQueue
from mqreplay.core.select_queue import select_with_faults
from mqreplay.decisions import send_attempt as decision
from mqreplay.decisions.send_attempt import COLUMNS, send_tries, stored_rows
from mqreplay.evidence.brokers.routes import publish_routes
from silver_moments import at
from silver_rows import rows

Row = dict[str, Any]
# The route of order-topic in the sample: two queues on each of two brokers.
MASTERS = [("broker-a", {0: "h:1"}), ("broker-b", {0: "h:2"})]
BOTH = [("broker-b", 2, 2, 6, 0), ("broker-a", 2, 2, 6, 0)]
ROUTE = {"topic": "order-topic", "queue_datas": BOTH, "broker_datas": MASTERS, "ts": at(0)}
SEND = {"topic": "order-topic", "client_id": "127.0.0.1@7281", "producer_group": "p", "broker_id": 0, "mode": "sync"}
SEND |= {"is_batch": False, "response_code": 0, "reconsume_times": 0}
LOGGED = {"client_id": None, "response_code": None, "source": "client_log", "error": "an exception", "invoke_id": "7"}
TURN = [("broker-a", 0), ("broker-a", 1), ("broker-b", 0), ("broker-b", 1)]


def try_at(seconds: float, queue: tuple[str, int], **more: Any) -> Row:
    row = {"ts": at(seconds), "broker_name": queue[0], "queue_id": queue[1], "answer_queue_id": queue[1]}
    return row | {"msg_id": f"7F{seconds:09.3f}"} | more


def judged(*tries: Row, routes: list[Row] | None = None) -> list[Row]:
    send = rows("silver.send", SEND, tries)
    changes, queues = publish_routes(rows("silver.route", ROUTE, [{}] if routes is None else routes), send["topic"])
    return send_tries(send, changes, queues).sort("request_ts").rows(named=True)


def reasons(found: list[Row]) -> list[tuple[str, str]]:
    return [(row["judgement"], row["reason"]) for row in found]


def test_a_producer_takes_the_queues_in_turn() -> None:
    found = judged(*(try_at(s, TURN[(2 + s) % 4]) for s in range(6)))
    assert reasons(found) == [("undetermined", decision.FIRST_SEND), *[("agree", decision.IN_TURN)] * 5]
    assert [(row["expected_broker_name"], row["expected_queue_id"]) for row in found[1:3]] == [TURN[3], TURN[0]]


def test_threads_take_the_queues_in_turn_each_by_itself() -> None:
    """Of two threads the second begins with the tenth send; then they alternate."""
    turns = [n % 4 for n in range(9)] + [2] + [place for n in range(60) for place in ((9 + n) % 4, (3 + n) % 4)]
    found = judged(*(try_at(s, TURN[place]) for s, place in enumerate(turns)))
    of_reason = Counter(reasons(found))
    assert of_reason["undetermined", decision.FIRST_SEND] == of_reason["undetermined", decision.OTHER_THREAD] == 1
    assert reasons(found)[9] == ("undetermined", decision.OTHER_THREAD)
    assert of_reason["agree", decision.THREAD_IN_TURN] > 60
    assert set(of_reason) == {
        ("undetermined", decision.FIRST_SEND),
        ("undetermined", decision.OTHER_THREAD),
        ("agree", decision.IN_TURN),
        ("agree", decision.THREAD_IN_TURN),
    }


def test_threads_may_have_the_route_before_shortly_after_it_changed() -> None:
    grown = [("broker-b", 2, 2, 6, 0), ("broker-a", 4, 4, 6, 0)]
    routes = [{}, {"queue_datas": grown, "ts": at(100)}]
    alternating = [place for n in range(200) for place in (n % 4, (2 + n) % 4)]
    found = judged(*(try_at(s / 2, TURN[place]) for s, place in enumerate(alternating)), routes=routes)
    late = [row["reason"] for row in found if at(101) < row["request_ts"] < at(159)]
    assert decision.THREAD_IN_TURN in {row["reason"] for row in found}
    assert set(late) <= {decision.IN_TURN, decision.OUT_OF_TURN}


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"broker_name": "broker-a", "queue_id": 0}, decision.OUT_OF_TURN),
        ({"broker_name": "broker-b", "queue_id": 7}, decision.NO_ROUTE),
        ({"queue_id": None}, decision.NO_QUEUE),
        ({"client_id": None}, decision.NO_CLIENT),
        ({"producer_group": "q"}, decision.FIRST_SEND),
        ({"topic": "pay-topic"}, decision.NO_ROUTE),
    ],
)
def test_what_explains_another_queue_is_undetermined(changed: Row, reason: str) -> None:
    found = judged(try_at(0, TURN[0]), try_at(1, TURN[1], **({"answer_queue_id": None} | changed)))
    assert reasons(found)[1] == ("undetermined", reason)


def test_the_answer_must_name_the_queue_of_the_request() -> None:
    (row,) = judged(try_at(0, TURN[0], answer_queue_id=1))
    assert (row["judgement"], row["reason"]) == ("differ", decision.OTHER_QUEUE)
    (row,) = judged(try_at(0, ("__syslo__global__", 0), answer_queue_id=1))
    assert row["judgement"] == "undetermined", "a broker knows the logical queue of a static topic by another id"


def test_a_client_may_have_the_route_before_for_half_a_minute() -> None:
    grown = [("broker-b", 2, 2, 6, 0), ("broker-a", 4, 4, 6, 0)]
    tries = [try_at(100, TURN[1]), try_at(101, TURN[2])]
    found = judged(*tries, routes=[{}, {"queue_datas": grown, "ts": at(90)}])
    assert reasons(found)[1] == ("agree", decision.IN_TURN)
    late = [row | {"ts": at(200 + n)} for n, row in enumerate(tries)]
    assert reasons(judged(*late, routes=[{}, {"queue_datas": grown, "ts": at(90)}]))[1][1] == decision.OUT_OF_TURN


def retry(first: Row, *later: Row) -> list[Row]:
    tries = [try_at(10 * number, TURN[0], msg_id="7F01", **row) for number, row in enumerate((first, *later))]
    return judged(*tries)


TIMED_OUT, BUSY = {"response_code": None}, {"response_code": 2}
OTHER = {"broker_name": "broker-b", "queue_id": 0}


def test_a_retry_avoids_the_broker_that_failed() -> None:
    first, second = retry(TIMED_OUT, OTHER)
    assert (first["attempt"], first["expected_step"], first["was_retried"]) == (1, "retry", True)
    assert (second["attempt"], second["previous_broker_name"], second["send_status"]) == (2, "broker-a", "SEND_OK")
    assert (second["judgement"], second["reason"]) == ("agree", decision.AVOIDED)
    assert (second["expected_broker_name"], second["expected_queue_id"]) == ("broker-b", 0)


@pytest.mark.parametrize(
    ("first", "step"),
    [
        (BUSY, None),  # since 5.3.0
        ({"response_code": 14}, "retry"),
        ({"response_code": 13}, "throw"),
        ({"response_code": 0}, "return"),
        ({"response_code": 11}, None),  # retryAnotherBrokerWhenNotStoreOK
        ({"response_code": None, "mode": "oneway"}, "return"),
    ],
)
def test_what_follows_by_the_rule(first: Row, step: str | None) -> None:
    (row,) = retry(first)
    assert row["expected_step"] == step


def test_a_message_that_the_application_sends_again_is_no_retry() -> None:
    _, again = retry({"response_code": 13}, OTHER)
    assert (again["judgement"], again["reason"]) == ("undetermined", decision.SENT_AGAIN)
    _, again = retry(TIMED_OUT, {})
    assert (again["judgement"], again["reason"]) == ("undetermined", decision.CHOSEN)
    *_, fourth = retry(TIMED_OUT, OTHER | TIMED_OUT, TIMED_OUT, OTHER)
    assert (fourth["attempt"], fourth["reason"]) == (4, decision.MORE_TRIES)


def test_a_topic_on_one_broker_is_retried_there() -> None:
    tries = [try_at(n, TURN[n], msg_id="7F01", response_code=(None, 0)[n]) for n in (0, 1)]
    found = judged(*tries, routes=[{"queue_datas": BOTH[1:]}])
    assert reasons(found)[1] == ("agree", decision.ONLY_BROKER)


# Tries of the producer's log of the sample, at 02:55:02: both were written when they had failed.
def test_tries_of_a_producers_log() -> None:
    waited = try_at(4, ("broker-b", 0), cost_ms=4000, **LOGGED)
    second = try_at(4, ("broker-a", 0), cost_ms=0, **LOGGED)
    found = judged(second, waited)
    assert sorted(row["attempt"] for row in found) == [1, 2]
    assert {row["attempt"]: row["reason"] for row in found} == {1: decision.ONLY_FAILED, 2: decision.AVOIDED}
    assert [row["expected_step"] for row in found] == [None, None], "the log says resend at once before it throws, too"


@pytest.mark.parametrize("version", ["4.9.8", "5.1.3"])
def test_a_producer_may_return_to_the_broker_that_failed_if_the_others_are_slow(version: str) -> None:
    faults = update_fault_item({}, "broker-a", 550, False, 0, version=version)
    faults = update_fault_item(faults, "broker-b", 3, True, 0, version=version)
    queues = [MessageQueue("order-topic", *place) for place in TURN]
    nums = {"broker-a": 2, "broker-b": 2}
    again = select_with_faults(queues, nums, 0, 0, faults, 1, last_broker_name="broker-b", version=version)
    assert again.mq.broker_name == "broker-b"
    first, second = (try_at(s, ("broker-b", 0), cost_ms=1000, **LOGGED) for s in (1, 2))
    assert reasons(judged(first, second))[1] == ("undetermined", decision.ISOLATED), "a log has no latencies"


def test_plain_tries_are_not_stored() -> None:
    send = [try_at(0, TURN[0]), try_at(1, TURN[1]), try_at(2, TURN[0]), try_at(3, TURN[1], response_code=None)]
    kept = [try_at(4, TURN[2], response_code=10), try_at(5, TURN[3], response_code=16)]
    kept += [try_at(6, TURN[0], response_code=None, msg_id="7F"), try_at(7, TURN[2], msg_id="7F")]
    found = rows("silver.send", SEND, [*send, *kept])
    changes, queues = publish_routes(rows("silver.route", ROUTE, [{}]), found["topic"])
    stored = stored_rows(send_tries(found, changes, queues))
    assert stored.columns == list(COLUMNS)
    assert sorted(stored["request_ts"]) == [at(4), at(5), at(6), at(7)]
    assert stored.filter(pl.col("response_code") == 10)["send_status"].to_list() == ["FLUSH_DISK_TIMEOUT"]


def test_a_night_without_sends() -> None:
    assert judged() == []
