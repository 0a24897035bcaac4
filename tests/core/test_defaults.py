"""Default settings and arguments are those of RocketMQ's classes, each written out again."""

from __future__ import annotations

import pytest

from mqreplay.core import get_message, offset_store, send_retry
from mqreplay.core.allocation import StrategySettings, allocate
from mqreplay.core.allocation_consistent_hash import allocate_consistent_hash
from mqreplay.core.consume_queue import CommitLog, ConsumeQueue, CqUnit, StoreConfig
from mqreplay.core.delay_level import SCHEDULE_TOPIC, parse_delay_level, stored_delay_level
from mqreplay.core.fault_strategy import FaultSettings, default_settings
from mqreplay.core.flush import COMMIT_LOG, COMMIT_TO_FILE_CHANNEL, CONSUME_QUEUE, FlushPolicy
from mqreplay.core.message_queue import MessageQueue
from mqreplay.core.pull_check import SYSTEM_ERROR, GroupConfig, PullBroker, PullRequest, Subscription, TopicReadConfig
from mqreplay.core.rebalance import HeldQueue
from mqreplay.core.send_back import RetryGroup, SendBackRequest
from mqreplay.core.send_back_client import ConsumedMessage, as_normal_message, orderly_retry_message, send_message_back
from mqreplay.core.slave_suggestion import TransferLimits
from mqreplay.core.slave_synchronize import Schedule, schedule
from mqreplay.core.tags_filter import SQL92
from mqreplay.core.topic_route import QueueData
from mqreplay.core.version import BROKER_4, CLIENT_4, version_key
from mqreplay.words.errors import IllegalArgument

QUEUES = [MessageQueue("T", "b", queue_id) for queue_id in range(64)]


def test_how_long_a_slow_broker_is_avoided() -> None:
    assert default_settings("4.9.8") == FaultSettings(
        (50, 100, 550, 1_000, 2_000, 3_000, 15_000), (0, 0, 30_000, 60_000, 120_000, 180_000, 600_000), 30_000
    )
    assert default_settings("5.1.4") == FaultSettings(
        (50, 100, 550, 1_800, 3_000, 5_000, 15_000), (0, 0, 2_000, 5_000, 6_000, 10_000, 30_000), 10_000
    )


def test_the_store() -> None:
    assert CommitLog(0) == (0, 0, 1_073_741_824)
    assert ConsumeQueue(()) == ((), 0, 0, 300_000)
    assert CqUnit(0, 1).tags_code == 0
    assert StoreConfig(1) == (1, 40, TransferLimits(), "ASYNC_MASTER", False)
    assert TransferLimits() == (262_144, 32, 65_536, 8)
    assert get_message.NO_MATCHED_LOGIC_QUEUE == "NO_MATCHED_LOGIC_QUEUE"
    assert get_message.MAX_PULL_MSG_SIZE == 134_217_728


def test_the_services_that_flush() -> None:
    assert FlushPolicy(500, 4, 10_000, 10) == COMMIT_LOG
    assert FlushPolicy(1_000, 2, 60_000, 3) == CONSUME_QUEUE
    assert FlushPolicy(200, 4, 200, 10) == COMMIT_TO_FILE_CHANNEL


def test_a_slaves_schedule() -> None:
    assert schedule("4.9.7") == Schedule(3_000, 10_000, 0)
    assert schedule("5.0.0") == Schedule(10_000, 3_000, 60_000)


def test_delay_levels() -> None:
    seconds = (1, 5, 10, 30)
    minutes = (*range(1, 11), 20, 30, 60, 120)
    table = dict(enumerate([*(1_000 * n for n in seconds), *(60_000 * n for n in minutes)], 1))
    assert parse_delay_level() == (True, table, 18)
    assert SCHEDULE_TOPIC == "SCHEDULE_TOPIC_XXXX"
    assert stored_delay_level(1, 18) == 1


def test_a_pull() -> None:
    assert PullRequest("T", "g", 0, 0) == ("T", "g", 0, 0, 0, 0, None, "TAG", 0, False)
    assert PullBroker("b") == ("b", "ASYNC_MASTER", 6, False, False, False, 0, 0, False, False, True)
    assert GroupConfig() == (True, True, 0, 1, False)
    assert TopicReadConfig() == (6, 16)
    assert Subscription() == ("TAG", 0, None)
    assert QueueData("b", 4, 4, 6).topic_sys_flag == 0
    assert offset_store.MEMORY_FIRST_THEN_STORE == "MEMORY_FIRST_THEN_STORE"
    assert SQL92 == "SQL92"
    assert SYSTEM_ERROR == 1


def test_a_queue_held() -> None:
    assert HeldQueue(7) == (7, 0, False, False)


def test_sending() -> None:
    assert send_retry.CLIENT_ONEWAY_SEMAPHORE_VALUE == send_retry.CLIENT_ASYNC_SEMAPHORE_VALUE == 65_535
    assert send_retry.TryOutcome(send_retry.TryKind.STORED) == (send_retry.TryKind.STORED, "SEND_OK", 0, 0)
    assert [kind.value for kind in send_retry.TryKind] == [
        "SendResult", "RemotingException", "MQClientException", "MQBrokerException", "InterruptedException",
    ]  # fmt: skip


def test_sending_back() -> None:
    assert SendBackRequest("g", 0, 0) == ("g", 0, 0, None, False, 121)
    assert RetryGroup() == (1, 16)
    msg = ConsumedMessage("T", "ID", 0)
    assert msg == ("T", "ID", 0, 0, {}, "")
    # -1: a concurrent consumer tries sixteen times, an orderly one for ever
    asked = send_message_back(msg._replace(store_host="h"), 0, None, None, "g")
    assert (asked.sent_by_producer, asked.sent_back_to_broker) == (None, ("h", None, "g", 0, 16))
    assert as_normal_message(msg, "g").properties["MAX_RECONSUME_TIMES"] == "16"
    assert orderly_retry_message(msg, "g").properties["MAX_RECONSUME_TIMES"] == "2147483647"


def test_places_on_the_ring() -> None:
    two = ["c1", "c2"]
    assert StrategySettings().virtual_node_cnt == 10
    ten = allocate_consistent_hash("c1", QUEUES, two, 10)
    assert allocate_consistent_hash("c1", QUEUES, two) == allocate("CONSISTENT_HASH", "g", "c1", QUEUES, two) == ten
    assert allocate_consistent_hash("c1", QUEUES, two, 11) != ten


def test_versions() -> None:
    assert (CLIENT_4, BROKER_4) == ("4.9.8", "4.9.7")
    with pytest.raises(IllegalArgument) as raised:
        version_key("five")
    assert raised.value.message == "not a RocketMQ version: 'five'; write it like 5.3.3"
