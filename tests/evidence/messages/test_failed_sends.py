"""Sends that failed, from packets, from rocketmq_client.log and from a producer's own log."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from mqreplay.decisions.send_attempt import send_tries
from mqreplay.evidence.brokers.routes import publish_routes
from mqreplay.evidence.messages.failed_sends import LOGGED, NO_ANSWER, NO_ROUTE, SENDS, failed_messages, failed_tries
from silver_moments import at
from silver_rows import rows

Row = dict[str, Any]
SEND = {"topic": "t", "broker_name": "a", "broker_id": 0, "client_id": "c", "mode": "sync", "ts": at(0)}
MESSAGE = {"topic": "t", "ts": at(0)}
FAQ = "\nFor more information, please visit the url, http://rocketmq.apache.org/docs/faq/"
# Errors of the recordings in tests/data.
ILLEGAL = "request queueId[2] is illegal, TopicConfig [topicName=polish, readQueueNums=2, writeQueueNums=2, perm=RW-]"
SLOW = "[TIMEOUT_CLEAN_QUEUE]broker busy, start flow control for a while, period in queue: 410ms, size of queue: 0"
CLIENT = "org.apache.rocketmq.client.exception"
TIMED_OUT = "org.apache.rocketmq.remoting.exception.RemotingTooMuchRequestException: sendDefaultImpl call timeout"
TWICE = f"{CLIENT}.MQClientException: Send [2] times, still failed, cost [4001]ms, Topic: t, BrokersSent: [b, a]"


ROUTE = {"topic": "t", "ts": at(0), "queue_datas": [(name, 1, 1, 6, 0) for name in "ab"]}
ROUTE |= {"broker_datas": [(name, {0: f"{name}:1"}) for name in "ab"]}


def of_tries(*tries: Row) -> list[Row]:
    send = rows("silver.send", SEND | {"queue_id": 0}, tries)
    routes = publish_routes(rows("silver.route", ROUTE, [{}]), send["topic"])
    found = failed_tries(send_tries(send, *routes))
    assert dict(found.schema) == SENDS
    return found.sort("request_ts").rows(named=True)


def of_messages(*messages: Row) -> list[Row]:
    found = failed_messages(rows("silver.produce", MESSAGE, messages))
    assert dict(found.schema) == SENDS
    return found.rows(named=True)


@pytest.mark.parametrize(
    ("code", "remark", "words"),
    [
        (1, ILLEGAL, "the topic has fewer queues (writeQueueNums)"),
        (2, SLOW, "sends waited too long in its queue (waitTimeMillsInSendQueue)"),
        (14, "service not available now. It may be caused by", "its store took no messages"),
        (16, "the broker[10.0.0.1] sending message is forbidden", "the broker may not be written (brokerPermission)"),
        (17, "topic[t] not exist, apply first please!", "the broker lacks the topic"),
        (1, None, "another reason"),
    ],
)
def test_a_refusal_has_the_brokers_reason(code: int, remark: str | None, words: str) -> None:
    (row,) = of_tries({"response_code": code, "remark": remark})
    assert (row["response_code"], row["failure"], row["send_status"]) == (code, words, None)


def test_the_last_try_is_known_if_all_brokers_were_captured_or_the_producer_throws() -> None:
    (row,) = of_tries({"response_code": 14})
    assert row["is_last"] is None, "the retry may have gone to b"
    (row,) = of_tries({"response_code": 14}, {"ts": at(9), "broker_name": "b", "response_code": 0})
    assert row["is_last"] is True
    (row,) = of_tries({"response_code": 13})
    assert row["is_last"] is True


def test_a_try_without_an_answer_failed_if_another_follows() -> None:
    assert of_tries({"response_code": None}) == [], "the capture may lack the answer"
    (row,) = of_tries({"msg_id": "7F"}, {"msg_id": "7F", "ts": at(3), "broker_name": "b", "response_code": 0})
    assert (row["broker_name"], row["failure"], row["is_last"]) == ("a", NO_ANSWER.words, False)
    assert of_tries({"mode": "oneway"}) == []


def test_a_try_in_a_producers_log() -> None:
    logged = {"source": "client_log", "error": "an exception", "client_id": None, "invoke_id": "7", "mode": None}
    waited, late = logged | {"ts": at(4), "cost_ms": 4000}, logged | {"ts": at(4), "cost_ms": 0, "broker_name": "b"}
    (row,) = of_tries(waited, late)
    assert (row["broker_name"], row["failure"]) == ("a", LOGGED.words), "the second one had no time left"
    first, second = of_tries(waited | {"cost_ms": 2}, late | {"ts": at(4.005)})
    assert (first["is_last"], second["is_last"]) == (False, None), "a try that succeeds is not logged"
    assert of_tries(logged | {"error": "InterruptedException"}) == []
    (row,) = of_tries(logged | {"error": "ONSClientException: defaultMQProducer send exception."})
    assert (row["failure"], row["other_remark"]) == (
        "the client of the producer threw an exception",
        "ONSClientException: defaultMQProducer send exception",
    )


def test_a_try_in_a_capture_and_in_a_producers_log_is_one() -> None:
    refused = {"msg_id": "7F", "response_code": 14, "remark": "service not available now", "ts": at(10)}
    logged = {"source": "client_log", "error": "an exception", "client_id": None, "invoke_id": "7", "mode": None}
    (row,) = of_tries(refused, logged | {"ts": at(10.01), "cost_ms": 9})
    assert row["response_code"] == 14
    assert len(of_tries(refused, logged | {"ts": at(30), "cost_ms": 9})) == 2
    assert len(of_tries(refused, logged | {"ts": at(10.01), "cost_ms": 9, "broker_name": "b"})) == 2


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (f"{CLIENT}.MQBrokerException: CODE: 29  DESC: {ILLEGAL} BROKER: 127.0.0.1:33911{FAQ}", 29, "writeQueueNums"),
        (f"{CLIENT}.MQBrokerException: CODE: 2  DESC: {SLOW} BROKER: 127.0.0.1:31911{FAQ}", 2, "waited too long"),
        (f"{CLIENT}.MQClientException: CODE: 13  DESC: the message body size over max value", 13, "too large"),
        (TIMED_OUT, None, NO_ANSWER.words),
        (TWICE, None, NO_ANSWER.words),
        (f"{CLIENT}.MQClientException: No route info of this topic: t", None, NO_ROUTE.words),
    ],
)
def test_a_message_that_a_producer_could_not_send(error: str, code: int | None, words: str) -> None:
    (row,) = of_messages({"error": error})
    assert (row["response_code"], row["broker_name"], row["is_last"]) == (code, None, True)
    assert words in row["failure"]


def test_an_interrupted_thread_is_no_failure() -> None:
    assert of_messages({"error": "java.lang.InterruptedException"}, {"send_status": "SEND_OK"}) == []


def test_a_message_that_is_stored_but_not_safe() -> None:
    (row,) = of_messages({"send_status": "FLUSH_SLAVE_TIMEOUT", "broker_name": "a", "queue_offset": 3})
    assert (row["send_status"], row["broker_name"], row["failure"]) == ("FLUSH_SLAVE_TIMEOUT", "a", None)
    (row,) = of_tries({"response_code": 11})
    assert (row["send_status"], row["failure"]) == ("SLAVE_NOT_AVAILABLE", None)
    assert isinstance(pl.Series([row["request_ts"]]).dtype, pl.Datetime)
