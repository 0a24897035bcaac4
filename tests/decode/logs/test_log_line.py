"""RocketMQ's messages in lines of applications, containers and collectors; and lines that cannot be used."""

from __future__ import annotations

import contextlib
import json

import pytest

from mqreplay.decode.logs import broker_facts, client_facts
from mqreplay.decode.logs.line_time import FIXED_ZONE, LOCAL, STATED
from mqreplay.decode.logs.log_line import UnusableLine, read_log_line
from mqreplay.decode.message_queue import MessageQueue
from mqreplay.words.errors import DecodeError

QUEUE = "MessageQueue [topic=t, brokerName=b, queueId=3]"
COMMIT = f"[persistAll] Group: g ClientId: 10.0.0.7@55 updateConsumeOffsetToBroker {QUEUE} 500"
COMMITTED = client_facts.Committed("10.0.0.7@55", "g", MessageQueue("t", "b", 3), 500, True)
LESS = (
    "[NOTIFYME]update consumer offset less than store. clientHost=10.0.0.3:35702, key=t@g, queueId=2, "
    "requestOffset=5, storeOffset=9"
)
OWN = f"2026-03-09 08:11:00 WARN PullMessageThread_5 - {LESS}"
WALL = 1773043860000  # 2026-03-09 08:11:00 as if in UTC


@pytest.mark.parametrize(
    ("text", "name", "layout", "wall_ms"),
    [
        (OWN, None, FIXED_ZONE, WALL),
        (f"rmqbroker    | {OWN}", "rmqbroker", FIXED_ZONE, WALL),
        (f"\x1b[36mrmqbroker    |\x1b[0m {OWN}", "rmqbroker", FIXED_ZONE, WALL),
        (f"[36mrmqbroker |[0m {OWN}", "rmqbroker", FIXED_ZONE, WALL),
        (f"[pod/broker-0-master-0/broker] {OWN}", "broker-0-master-0/broker", FIXED_ZONE, WALL),
        (f"2026-03-09T00:11:00.123456789Z {OWN}", None, FIXED_ZONE, WALL),
        (f"Mar 09 00:11:00 node1 mqbroker[2211]: {OWN}", "node1 mqbroker", FIXED_ZONE, WALL),
        (f"logs/broker.log:17:{OWN}", "broker.log", FIXED_ZONE, WALL),
        (f"17:{OWN}", None, FIXED_ZONE, WALL),
        (f"> {OWN}", None, FIXED_ZONE, WALL),
        (json.dumps({"log": f"{OWN}\n", "stream": "stdout", "time": "2026-03-09T00:11:00.1Z"}), None, FIXED_ZONE, WALL),
        (json.dumps({"message": OWN, "kubernetes": {"pod_name": "b-0"}}), "b-0", FIXED_ZONE, WALL),
        (json.dumps({"id": 7, "fields": {"message": OWN}}), None, FIXED_ZONE, WALL),
        (json.dumps({"@timestamp": "2026-03-09T08:11:00+08:00", "message": LESS}), None, STATED, WALL - 8 * 3_600_000),
        (json.dumps({"instant": {"epochSecond": 1773015060}, "message": LESS}), None, STATED, 1773015060000),
        (f"broker-0-master-0 broker {OWN}", "broker-0-master-0 broker", FIXED_ZONE, WALL),
        (f'2026-03-09T00:11:00Z {{app="mq", pod="b-0"}} {OWN}', "b-0", FIXED_ZONE, WALL),
        (f"rmq_broker.1.x7@node1    | {OWN}", "rmq_broker.1.x7@node1", FIXED_ZONE, WALL),
        (f"7f3a09bc-11d2-4c1f-9a55-0123456789ab {OWN}", None, FIXED_ZONE, WALL),
        (json.dumps({"time": "2026-03-09 08:11:00.250", "message": LESS}), None, LOCAL, WALL + 250),
        (json.dumps({"ts": 1773015060.25, "msg": LESS}), None, STATED, 1773015060250),
        (f"2026-03-09T00:11:00.1Z broker: {LESS}", None, STATED, WALL - 8 * 3_600_000 + 100),
    ],
)
def test_a_line_of_a_broker_in_any_wrapping(text: str, name: str | None, layout: str, wall_ms: int) -> None:
    line = read_log_line(text)
    assert line is not None
    assert line.fact == broker_facts.CommittedLess("10.0.0.3:35702", "t", "g", 2, 5, 9)
    assert (line.log, line.wrapping.name) == ("broker", name)
    assert (line.clock.layout, line.clock.wall_ms) == (layout, wall_ms)


@pytest.mark.parametrize(
    ("head", "layout", "milli"),
    [
        ("2026-03-09 08:11:00,976 INFO RocketmqClient - ", LOCAL, 976),
        ("2026-03-09 08:11:00,976 INFO RocketmqClient(144) - ", LOCAL, 976),
        ("2026-03-09 08:11:00.976 INFO  [46212] [main] [o.a.r.c.c.s.RemoteBrokerOffsetStore#?:?] - ", FIXED_ZONE, 976),
        ("2026-03-09 08:11:00,976 INFO  [exec-2] RocketmqClient(Slf4jLoggerFactory.java:100) - ", LOCAL, 976),
        ("[1031178795459018753] 2026-03-09 08:11:00,976 INFO  [RocketmqClient   ] [Rebalance] - ", LOCAL, 976),
        ("2026-03-09 08:11:00.976  INFO 15752 --- [ScheduledThread] RocketmqClient   : ", LOCAL, 976),
        ("2026-03-09T08:11:00.976  INFO [app,,] 1 --- [thread] c.e.Listener : ", LOCAL, 976),
        ("2026-03-09 08:11:00.976|INFO |traceId=|ScheduledThread|RocketmqClient |", LOCAL, 976),
        ("[2026-03-09 08:11:00.976] [info] [thread@30244] - ", LOCAL, 976),
        ("[2026-03-09 08:11:00:976][main] ", LOCAL, 976),
        ("2026/03/09 08:11:00.9761 [INFO] ", LOCAL, 976),
        ("09-Mar-2026 08:11:00.976 INFO [main] ", LOCAL, 976),
        ("20260309 08:11:00 INFO ", LOCAL, 0),
    ],
)
def test_a_commit_in_the_pattern_of_an_application(head: str, layout: str, milli: int) -> None:
    line = read_log_line(head + COMMIT)
    assert line is not None
    assert (line.log, line.fact) == ("rocketmq_client", COMMITTED)
    assert (line.clock.layout, line.clock.wall_ms) == (layout, WALL + milli)


@pytest.mark.parametrize("behind", [" ", " [traceId=7f]", " {tid=1}", '"', " (Store.java:100)", " \r"])
def test_what_a_pattern_puts_behind_a_message_is_left_out(behind: str) -> None:
    line = read_log_line(f"2026-03-09 08:11:00,976 INFO x - {COMMIT}{behind}")
    assert line is not None
    assert line.fact == COMMITTED


def test_a_commit_of_a_client_of_3() -> None:
    line = read_log_line(f"2026-03-09 08:11:00,976 INFO RocketmqClient(144) - {COMMIT.removeprefix('[persistAll] ')}")
    assert line is not None
    assert line.fact == COMMITTED
    other = read_log_line("2026-03-09 08:11:00,976 INFO Chat - Group: admins ClientId: 7 joined")
    assert other is not None
    assert other.fact is None


def test_blanks_that_a_terminal_put_into_a_message_are_left_out() -> None:
    line = read_log_line(f"2026-03-09 08:11:00 INFO t - register broker[2]to name serve{' ' * 40}r 10.0.0.1:9876 OK")
    assert line is not None
    assert line.fact == broker_facts.Registered(2)


@pytest.mark.parametrize(
    ("text", "code", "form"),
    [
        (f"15:20:20.578 [x] INFO RocketmqClient - {COMMIT}", "no_date", "without a date"),
        (f"16-09-28 14:02:49 WARN x - {LESS}", "no_date", "without a date"),
        (f"Mar 09 00:11:00 node1 java[1]: {COMMIT}", "no_date", "without a date"),
        (f"2026-03-09 08:11:00,976 INFO x - {COMMIT[:60]}", "bad_message", "another text than import knows"),
        (
            "2026-03-09 08:11:00 WARN x - [NOTIFYME]update consumer offset less than store",
            "bad_message",
            "another text than import knows",
        ),
        (f"2026-03-09 08:11:00,976 INFO x - {COMMIT[:-9]}", "bad_message", "that are cut, of the form"),
        (
            "2026-06-27 00:46:01  the broker's channel destroyed, 10.1.0.10:10911    # early",
            "bad_message",
            "no level and thread",
        ),
        (
            "AVA, version=277, lastUpdateTimestamp=1615521024340]] from ConsumerGroupInfo",
            "bad_message",
            "without their beginning",
        ),
    ],
)
def test_a_message_that_cannot_be_used_names_its_form(text: str, code: str, form: str) -> None:
    with pytest.raises(UnusableLine) as error:
        read_log_line(text)
    assert error.value.code == code
    assert form in error.value.form


@pytest.mark.parametrize(
    "text",
    [
        "",
        "    at java.base/java.lang.Thread.run(Thread.java:840)",
        "notes about doRebalancing",
        "{",
        '{"a": [1, 2',
        "[" * 5000,
        '{"log": ' * 2000,
    ],
)
def test_other_texts_are_no_lines(text: str) -> None:
    assert read_log_line(text) is None


def test_a_message_in_the_middle_of_another_word_is_none() -> None:
    line = read_log_line("2026-03-09 08:11:00 INFO x - autounregister broker[1] from name server")
    assert line is not None
    assert line.fact is None


def test_a_setting_is_a_whole_message() -> None:
    line = read_log_line("rmqbroker | 2026-03-09 08:11:00 INFO main - brokerName=broker-a")
    assert line is not None
    assert line.fact == broker_facts.Setting("brokerName", "broker-a")
    other = read_log_line("2026-03-09 08:11:00 INFO main - update MessageQueue [topic=t, brokerName=b, queueId=1] x")
    assert other is not None
    assert other.fact is None


@pytest.mark.parametrize(
    "text",
    [
        f"2026-03-09 08:11:00 WARN x - {LESS[:60]}{' ' * 500_000}x",
        f"2026-03-09 08:11:00 WARN x - {LESS[:60]}{'(' * 500_000}",
        "level=info msg=" * 30_000,
        '{"a":' * 100_000,
        "{" + '"msg": "a", ' * 60_000,
        "2026-03-09 08:11:00.1" * 20_000,
        "brokerName=" * 50_000,
        "MessageQueue [topic=" * 30_000,
    ],
)
def test_a_hostile_line_is_read_in_one_pass(text: str) -> None:
    """A pattern that tries each place again would not end within hours."""
    with contextlib.suppress(DecodeError):
        assert read_log_line(text) is None or "=" in text


@pytest.mark.parametrize(
    "message",
    [
        f"[BUG]doRebalance, g, try remove unnecessary mq, {QUEUE}, because pull is pause, so try to fixed it",
        f"[BUG]doRebalance, g, try remove unnecessary pop mq, {QUEUE}, because pop is pause, so try to fixed it",
        "broker rebalanced result changed. allocateMessageQueueStrategyName=AVG, group=g, topic=t, clientId=c, "
        "assignmentSet=[]",
        "messageQueueChanged exception",
        "new broker registered, BrokerIdentityInfo{clusterName='c', brokerName='b'}, brokerId:2",
        "new broker registered, brokerIdentityInfo: BrokerIdentityInfo{clusterName='c', brokerName='b'}",
    ],
)
def test_a_whole_line_without_a_fact_is_not_called_damaged(message: str) -> None:
    line = read_log_line(f"2026-03-09 08:11:00 ERROR RebalanceService - {message}")
    assert line is not None
    assert line.fact is None


def test_a_queue_whose_pull_expired_is_released() -> None:
    message = f"[BUG]doRebalance, g, remove unnecessary mq, {QUEUE}, because pull is pause, so try to fixed it"
    line = read_log_line(f"2026-03-09 08:11:00,976 ERROR RocketmqClient - {message}")
    assert line is not None
    assert line.fact == client_facts.QueueRemoved("g", MessageQueue("t", "b", 3), alone=False)
