"""Exceptions below the lines of logs, in the layouts of applications and containers: each line is used or counted."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from each_case import for_each
from mqreplay.decode.logs.client_facts import ClientThrew, ListenerFailed, SendFailed
from mqreplay.decode.logs.log_line import LogLine
from mqreplay.importer.files.sources import Source
from mqreplay.importer.logs.client_history import ClientHistory
from mqreplay.importer.logs.line_count import LineCount
from mqreplay.importer.logs.log_text import log_lines

PACKAGE = "org.apache.rocketmq.client.exception"
REFUSED = f"{PACKAGE}.MQBrokerException: CODE: 14  DESC: service not available now. [CL:  0.92] BROKER: 10.1.0.7:10911"
STACK = "at org.apache.rocketmq.client.impl.MQClientAPIImpl.processSendResponse(MQClientAPIImpl.java:668)"
SENT = f"{PACKAGE}.MQClientException: Send [3] times, still failed, cost [4]ms, Topic: t, BrokersSent: [a, a, a]"
QUEUE = "MessageQueue [topic=t, brokerName=a, queueId=0]"
MESSAGE = "[MessageExt [queueId=0, queueOffset=14, msgId=0A01, commitLogOffset=1, reconsumeTimes=0, toString()=x]]"
LISTENER = f"Group: g Msgs: {MESSAGE} MQ: {QUEUE}"


def read(folder: Path, *lines: str) -> tuple[list[LogLine], LineCount]:
    path = folder / "app.log"
    path.write_text("\n".join(lines) + "\n")
    count = LineCount()
    found = [
        line for line in log_lines(Source("app.log", path.stat().st_size, 0, path), count) if line.fact is not None
    ]
    assert count.read == count.used + sum(count.left_out.values())
    assert all(number >= 0 for number in count.left_out.values())
    return found, count


def test_a_try_has_the_code_below_it(tmp_path: Path) -> None:
    head = f"sendKernelImpl exception, resend at once, InvokeID: 7, RT: 2ms, Broker: {QUEUE}"
    lines = (f"2020-11-02 14:00:01,253 WARN RocketmqClient - {head}", REFUSED, f"\t{STACK}")
    line = read(tmp_path, *lines, f"2020-11-02 14:00:06,253 WARN RocketmqClient - {head}")[0][0]
    assert isinstance(line.fact, SendFailed)
    assert line.fact.thrown is not None
    assert (line.fact.thrown.code, line.fact.thrown.broker_addr) == (14, "10.1.0.7:10911")
    ((_, record), *_) = ClientHistory({}).take(1, line.fact)
    assert (record["response_code"], record["error"]) == (14, None)


@pytest.mark.parametrize(
    "prefixes",
    [
        ("2022-06-07 14:02:11.325 ERROR 1 --- [nio-8080-exec-3] c.x.Producer : send failed", "", "\t"),  # Spring Boot
        ("14:02:11.325 [main] ERROR c.x.Producer 2022-06-07 14:02:11 x", "", "\t"),
        ("[pod/app-1/app] 2022-06-07 14:02:11 ERROR send failed", "[pod/app-1/app] ", "[pod/app-1/app] \t"),
        (
            "2022-06-07T06:02:11.325Z 2022-06-07 14:02:11 ERROR send failed",
            "2022-06-07T06:02:11.326Z ",
            "2022-06-07T06:02:11.326Z \t",
        ),
    ],
)
def test_an_application_that_saw_a_send_fail(tmp_path: Path, prefixes: tuple[str, str, str]) -> None:
    head, before, before_stack = prefixes
    (line,), count = read(tmp_path, head, f"{before}{REFUSED}", f"{before_stack}{STACK}")
    assert isinstance(line.fact, ClientThrew)
    assert (line.log, line.fact.request, line.fact.thrown and line.fact.thrown.code) == ("rocketmq_client", "send", 14)
    assert count.used == 2


def test_the_cause_completes_the_exception_and_names_the_broker_of_others(tmp_path: Path) -> None:
    head = (
        "2022-06-07 14:02:{} ERROR 1 --- [main] o.a.r.spring.core.RocketMQTemplate : syncSend failed. destination:t:tag"
    )
    lines = (f"{head.format(11)}, message:x", REFUSED, f"{head.format(14)}, message:y", SENT, f"Caused by: {REFUSED}")
    found, _ = read(tmp_path, *lines)
    history = ClientHistory({})
    for line in found:
        assert line.fact is not None
        assert list(history.take(line.clock.wall_ms, line.fact)) == []
    records = [record for _, record in history.end()]
    assert [(r["request"], r["topic"], r["broker_name"], r["response_code"]) for r in records] == [
        ("send", "t", "a", 14)
    ] * 2


def test_one_line_of_json_has_the_exception_too(tmp_path: Path) -> None:
    line = f'{{"@timestamp":"2022-06-07T06:02:11Z","level":"ERROR","message":"x","stack_trace":"{SENT}\\nSee"}}'
    (found,), _ = read(tmp_path, line)
    assert isinstance(found.fact, ClientThrew)
    assert (found.fact.topic, found.clock.layout) == ("t", "stated")


def test_exceptions_that_show_no_request_are_counted_by_name(tmp_path: Path) -> None:
    failed = "org.apache.rocketmq.remoting.exception.RemotingConnectException: connect to 10.0.0.1:9876 failed"
    found, count = read(tmp_path, "2022-06-07 14:02:11 ERROR x", failed, "\tat a.B.c(B.java:1)")
    assert found == []
    (form,) = (form for form in count.left_out if "RemotingConnectException" in form)
    assert count.left_out[form] == 1
    assert "connect to 10.0.0.1:9876 failed" in count.examples[form]


def test_a_listener_that_throws_is_one_failure(tmp_path: Path) -> None:
    head = "2016-05-10 20:19:31,318 WARN RocketmqClient - consumeMessage"
    thrown = f"{head} exception: java.lang.NullPointerException, a.B.consumeMessage(B.java:61) {LISTENER}"
    found, _ = read(tmp_path, thrown, f"{head} Orderly return not OK, {LISTENER}", f"{head} return null, {LISTENER}")
    assert [type(line.fact) for line in found] == [ListenerFailed] * 3
    history = ClientHistory({})
    for line in found[:2]:
        assert line.fact is not None
        list(history.take(line.clock.wall_ms, line.fact))
    ((stem, record),) = history.end()
    assert (stem, record["is_orderly"], record["queue_offset"]) == ("client_errors", True, 14)
    assert record["error"] == "java.lang.NullPointerException, a.B.consumeMessage(B.java:61)"


def test_pulls_of_4_and_5(tmp_path: Path) -> None:
    head = "2020-03-19 16:33:02,017 WARN RocketmqClient - "
    refused = f"{PACKAGE}.MQBrokerException: CODE: 24  DESC: the consumer's group info not exist"
    named = f"execute the pull request exception, group=g, messageQueue={QUEUE}"
    late = f"the subscription is not latest, group=g, messageQueue={QUEUE}"
    lines = (f"{head}execute the pull request exception", refused, f"{head}{named}", refused, f"{head}{late}")
    facts = [line.fact for line in read(tmp_path, *lines)[0]]
    assert all(isinstance(fact, ClientThrew) and fact.request == "pull" for fact in facts)
    assert [fact.group for fact in facts if isinstance(fact, ClientThrew)] == [None, "g", "g"]
    assert [fact.thrown and fact.thrown.code for fact in facts if isinstance(fact, ClientThrew)] == [24, 24, 25]


ONS = "com.aliyun.openservices.ons.api.exception.ONSClientException"


@for_each(
    (  # ProducerImpl#checkProducerException of rocketmq-ons
        ("Connect broker failed, Topic=pay, msgId=0A01", "pay"),
        ("Send message to broker timeout, 3000ms, Topic=MQ_INST_1%pay, msgId=0A01", "MQ_INST_1%pay"),
        ("Topic does not exist, Topic=pay, msgId=0A01", "pay"),
        ("defaultMQProducer send exception", None),
    )
)
def test_an_exception_of_ons_without_a_cause(text: str, topic: str | None) -> None:
    with tempfile.TemporaryDirectory() as folder:
        (line,), _ = read(
            Path(folder), "2021-06-01 10:00:00.123 ERROR 1 --- [main] c.x.Orders : failed", f"{ONS}: {text}"
        )
    assert isinstance(line.fact, ClientThrew)
    assert (line.fact.request, line.fact.topic) == ("send", topic)


@for_each(
    (
        (
            "client.exception.MQClientException: The consumer group[g] has been created before, specify",
            "of the same group",
        ),
        (
            "client.exception.MQBrokerException: CODE: 206  DESC: the consumer group[g] not online",
            "no consumer of a group",
        ),
        ("client.exception.MQBrokerException: CODE: 3  DESC: request type 351 not supported", "of a later version"),
        ("remoting.exception.RemotingConnectException: connect to 10.1.0.7:10909 failed", "neither a send nor a pull"),
    )
)
def test_an_exception_of_another_request_is_counted_for_what_it_is(text: str, words: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        found, count = read(Path(folder), "2021-06-01 10:00:00.123 ERROR failed", f"org.apache.rocketmq.{text}")
    assert found == []
    [form] = [form for form in count.examples if count.left_out[form]]
    assert words in form


MESSAGE_EXT = (
    "MessageExt [queueId=0, queueOffset=14, msgId=0A01, reconsumeTimes=3, toString()=Message{topic='pay', flag=0}]"
)
NPE = "java.lang.NullPointerException: null"


@for_each(
    (  # DefaultRocketMQListenerContainer of rocketmq-spring, 2.0 to 2.3: the message, the lines below it, the exception
        (
            "messageId:0A01, topic:pay, reconsumeTimes:3",
            [NPE, "\tat com.x.PayListener.onMessage(PayListener.java:44)"],
            NPE,
        ),
        (f"messageExt:{MESSAGE_EXT}", [NPE], NPE),
        (f"messageExt:{MESSAGE_EXT}, error:{NPE}", [], NPE),
        (f"messageExt:{MESSAGE_EXT}", [], None),
    )
)
def test_a_listener_of_spring_that_throws(text: str, below: list[str], error: str | None) -> None:
    head = "2022-06-07 14:02:11.325  WARN 1 --- [MessageThread_3] a.r.s.s.DefaultRocketMQListenerContainer : "
    with tempfile.TemporaryDirectory() as folder:
        (line,), _ = read(Path(folder), f"{head}consume message failed. {text}", *below)
    history = ClientHistory({})
    assert line.fact is not None
    assert list(history.take(1, line.fact)) == []
    [(stem, record)] = history.end()
    assert (stem, record["request"], record["topic"], record["error"]) == ("client_errors", "listener", "pay", error)
    assert (record["msg_id"], record["reconsume_times"], record["consumer_group"]) == ("0A01", 3, None)
