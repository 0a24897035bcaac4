"""Exceptions of clients: what each text gives, and which lines are none."""

from __future__ import annotations

import pytest

from mqreplay.decode.logs.exceptions import FORMS, Thrown, exception_in, exceptions_in, joined, request_in

CLIENT = "org.apache.rocketmq.client.exception"
REMOTING = "org.apache.rocketmq.remoting.exception"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            f"{CLIENT}.MQBrokerException: CODE: 2  DESC: [OVERLOAD]system busy BROKER: 10.1.0.7:10911",
            {"code": 2, "remark": "[OVERLOAD]system busy", "broker_addr": "10.1.0.7:10911"},
        ),
        # Before 4.9 without the address.
        (f"{CLIENT}.MQBrokerException: CODE: 24  DESC: the consumer's group info not exist", {"code": 24}),
        ("com.alibaba.rocketmq.client.exception.MQBrokerException: CODE: 1  DESC: null", {"code": 1}),
        (
            f"{CLIENT}.MQClientException: Send [3] times, still failed, cost [4]ms, Topic: t, BrokersSent: [a, null]",
            {"topic": "t", "brokers": ("a",), "request": "send"},
        ),
        # The words of an application around the message of the exception.
        (
            "ERROR publish topic:t error:CODE: 14  DESC: service not available now BROKER: 10.1.0.7:10911",
            {"code": 14, "remark": "service not available now", "broker_addr": "10.1.0.7:10911", "request": "send"},
        ),
        (f"{CLIENT}.MQClientException: No route info of this topic: t", {"topic": "t", "request": "send"}),
        (f"{CLIENT}.MQClientException: No route info of this topic, t", {"topic": "t", "request": "send"}),
        (f"{REMOTING}.RemotingTooMuchRequestException: sendDefaultImpl call timeout", {"request": "send"}),
        (f"Caused by: {REMOTING}.RemotingConnectException: connect to [::1]:9 failed", {"broker_addr": "[::1]:9"}),
        (
            f"{REMOTING}.RemotingTimeoutException: wait response on the channel <h:9> timeout, 3(ms)",
            {"broker_addr": "h:9"},
        ),
    ],
)
def test_what_an_exception_says(text: str, expected: dict[str, object]) -> None:
    found = exception_in(text)
    assert found is not None
    assert {name: getattr(found[0], name) for name in expected} == expected
    assert text[found[1] :].startswith((found[0].java_class, "CODE: "))


def test_other_lines_have_none() -> None:
    assert exception_in("java.lang.NullPointerException: null") is None
    assert exception_in("MyMQBrokerException: CODE: 2  DESC: x") is None
    assert request_in("at java.lang.Thread.run(Thread.java:748)") is None


def test_each_form_names_its_class() -> None:
    assert all(form.text.startswith((f"{form.source}: ", "CODE: ")) for form in FORMS)


def test_a_chain_is_what_its_causes_know() -> None:
    sent = Thrown("MQClientException", topic="t", brokers=("a",), request="send")
    assert joined([sent, Thrown("MQBrokerException", code=14)]).topic == "t"
    assert joined([Thrown("MQBrokerException", code=14)], "pull").request == "pull"


@pytest.mark.parametrize(
    ("waited_ms", "shown", "request_"),
    [(209, None, "send"), (2999, None, "send"), (5011, None, None), (209, "pull", "pull"), (31000, None, None)],
)
def test_only_sends_wait_for_less_than_three_seconds(waited_ms: int, shown: str | None, request_: str | None) -> None:
    remark = f"[TIMEOUT_CLEAN_QUEUE]broker busy, start flow control for a while, period in queue: {waited_ms}ms"
    assert joined([Thrown("MQBrokerException", code=2, remark=remark)], shown).request == request_


def test_a_line_of_json_has_the_whole_trace() -> None:
    sent = f"{CLIENT}.MQClientException: Send [3] times, still failed, cost [4]ms, Topic: t, BrokersSent: [a, a, a]"
    refused = f"{CLIENT}.MQBrokerException: CODE: 14  DESC: service not available now."
    text = f'{{"level":"ERROR","stack_trace":"{sent}\\nSee\\n\\tat a.B\\nCaused by: {refused}\\n"}}'
    exceptions = exceptions_in(text)
    assert [thrown.java_class for thrown, _ in exceptions] == ["MQClientException", "MQBrokerException"]
    assert [thrown.request for thrown, _ in exceptions] == ["send", "send"]
    assert all(text[at:].startswith(thrown.java_class) for thrown, at in exceptions)
