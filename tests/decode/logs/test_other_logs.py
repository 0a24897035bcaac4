"""Lines of lock.log, stats.log and namesrv.log as facts."""

from __future__ import annotations

import pytest

from decode.logs.log_messages import MQ, QUEUE, read_fact
from mqreplay.decode.logs.broker_facts import LockLine, MinuteCount
from mqreplay.decode.logs.namesrv_log import BrokerSeen, MasterNamed
from mqreplay.words.errors import DecodeError


@pytest.mark.parametrize(
    ("message", "kind", "client_id", "other"),
    [
        (f"tryLockBatch, message queue not locked, I got it. Group: g NewClientId: c {MQ}", "granted", "c", None),
        (
            f"tryLock, message queue lock expired, I got it. Group: g OldClientId: a NewClientId: c {MQ}",
            "granted",
            "c",
            "a",
        ),
        (
            f"tryLockBatch, message queue locked by other client. Group: g OtherClientId: a NewClientId: c {MQ}",
            "refused",
            "c",
            "a",
        ),
        (f"unlockBatch, Group: g {MQ} c", "unlocked", "c", None),
        (
            "RebalanceLockManager#tryLockBatch: lock a message which has not been locked yet, group=g, "
            f"clientId=c, mq={MQ}",
            "granted",
            "c",
            None,
        ),
        (
            f"RebalanceLockManager#tryLock: try to lock a expired message queue, group=g, mq={MQ}, old "
            "client id=a, new client id=c",
            "granted",
            "c",
            "a",
        ),
        (
            f"RebalanceLockManager#tryLockBatch: message queue has been locked by other client, group=g, mq={MQ}, "
            "locked client id=a, current client id=c",
            "refused",
            "c",
            "a",
        ),
        (f"RebalanceLockManager#unlockBatch: unlock mq, group=g, clientId=c, mqs={MQ}", "unlocked", "c", None),
    ],
)
def test_lock_messages_of_either_version(message: str, kind: str, client_id: str, other: str | None) -> None:
    line = read_fact(message)
    assert isinstance(line, LockLine)
    assert (line.kind, line.group, line.client_id, line.queue, line.other) == (kind, "g", client_id, QUEUE, other)


def test_lock_messages_that_say_nothing_or_were_cut() -> None:
    assert read_fact(f"unlockBatch, but mq not locked, Group: g {MQ} c") is None
    with pytest.raises(DecodeError):
        read_fact("tryLockBatch, message queue not locked, I got it. Group: g NewCl")


def test_fall_behind() -> None:
    fall = read_fact("[GROUP_GET_FALL_TIME] [0@a@b] Stats Every 5 Minutes, Value: 12")
    assert fall is not None
    assert fall[:] == ("time", "b", "a", 0, 12)
    with pytest.raises(DecodeError):
        read_fact("[GROUP_GET_FALL_SIZE] [0@a@b] Stats Every 5 Min")


def test_messages_of_a_minute() -> None:
    minute = "Stats In One Minute, SUM: 7 TPS: 0.12 AVGPT: 1.00"
    assert read_fact(f"[TOPIC_PUT_NUMS] [a] {minute}") == MinuteCount("sent", "a", 7)
    assert read_fact(f"[GROUP_GET_NUMS] [a@b] {minute}") == MinuteCount("read", "a", 7, "b")
    assert read_fact(f"[SNDBCK_PUT_NUMS] [a@b] {minute}") == MinuteCount("sent_back", "a", 7, "b")
    assert read_fact(f"[GROUP_GET_SIZE] [a@b] {minute}") is None


@pytest.mark.parametrize(
    ("message", "event"),
    [
        ("new broker registered, 127.0.0.1:10931 HAServer: 127.0.0.1:10932", "registered"),
        (
            "new broker registered, BrokerIdentityInfo [clusterName=c, brokerAddr=127.0.0.1:10931] "
            "HAService: 127.0.0.1:1",
            "registered",
        ),
        ("the broker's channel destroyed, 127.0.0.1:10931, clean it's data structure at once", "destroyed"),
        (
            "the broker's channel destroyed, submit the unregister request at once, broker info: BrokerIdentityInfo "
            "[clusterName=c, brokerAddr=127.0.0.1:10931], submit result: true",
            "destroyed",
        ),
        ("The broker channel expired, 127.0.0.1:10931 120000ms", "expired"),
        ("unregisterBroker, remove from brokerLiveTable OK, 127.0.0.1:10931", "unregistered"),
    ],
)
def test_name_server_messages_of_either_version(message: str, event: str) -> None:
    fact = read_fact(message)
    assert isinstance(fact, BrokerSeen)
    assert fact == (event, "127.0.0.1:10931")


def test_a_master_is_named() -> None:
    message = "cluster [C] brokerName [broker-a] master address change from null to 127.0.0.1:10911"
    assert read_fact(message) == MasterNamed("broker-a", "127.0.0.1:10911")
    assert read_fact("start scanNotActiveBroker") is None
