"""Where a message is sent, and where it is sent again."""

from __future__ import annotations

from collections import Counter

import pytest

from mqreplay.core.fault_strategy import FaultItem, default_settings, is_available, update_fault_item
from mqreplay.core.message_queue import MessageQueue
from mqreplay.core.select_queue import select_one_message_queue, select_with_faults, select_with_filters
from mqreplay.core.send_retry import TryKind, TryOutcome, replay_sync_send, retries_async
from mqreplay.errors import Arithmetic

QUEUES = [MessageQueue("T", broker, queue_id) for broker in "abc" for queue_id in range(4)]
STORED = TryOutcome(TryKind.STORED)
TIMED_OUT = TryOutcome(TryKind.REMOTING, cost=1_000)


def refused(code: int) -> TryOutcome:
    return TryOutcome(TryKind.BROKER, response_code=code)


def test_the_queues_take_turns() -> None:
    index, seen = 7, Counter[MessageQueue]()
    for _ in range(24):
        mq, index = select_one_message_queue(QUEUES, index)
        seen[mq] += 1
    assert seen == dict.fromkeys(QUEUES, 2)


def test_with_one_broker_a_retry_goes_to_it_again_after_a_full_turn() -> None:
    queues = QUEUES[:4]
    assert select_one_message_queue(queues, 0, "a") == (queues[1], 5)


def test_an_empty_route_is_a_division_by_zero() -> None:
    for version_of_select in (
        lambda: select_one_message_queue([], 0),
        lambda: select_with_faults([], {}, 0, 0, {}, 0),
        lambda: select_with_filters([], 0, {}, 0),
    ):
        with pytest.raises(Arithmetic, match="/ by zero"):
            version_of_select()


def test_a_slow_broker_is_avoided_for_as_long_as_its_latency_says() -> None:
    items = update_fault_item({}, "b", 3_500, False, now=0)
    assert [is_available(items, "b", now) for now in (179_999, 180_000)] == [False, True]
    items = update_fault_item(items, "b", 20, False, now=1_000)
    assert is_available(items, "b", 1_000)


def test_5_x_only_puts_availability_off() -> None:
    items = update_fault_item({}, "b", 20_000, False, now=0, version="5.3.3")
    assert update_fault_item(items, "b", 20, False, now=1, version="5.3.3")["b"] == FaultItem(20, 30_000)
    assert update_fault_item(items, "b", 3_000, False, now=1, version="5.3.3")["b"] == FaultItem(3_000, 30_000)


def test_a_failed_send_counts_as_thirty_seconds_in_4_9_and_ten_in_5_x() -> None:
    assert update_fault_item({}, "b", 5, True, now=0)["b"] == FaultItem(5, 600_000)
    assert update_fault_item({}, "b", 5, True, now=0, version="5.3.3")["b"] == FaultItem(5, 10_000)
    assert default_settings("4.9.8").isolation_latency == 30_000


def test_in_need_a_broker_of_the_better_half_is_given_a_queue_id() -> None:
    items = {name: FaultItem(latency, 99) for name, latency in (("a", 3), ("b", 1), ("c", 2))}
    selection = select_with_faults(QUEUES, {"b": 4}, 0, 0, items, now=0)
    assert selection.mq == MessageQueue("T", "b", 3)
    assert (selection.send_which_queue, selection.which_item_worst) == (3, 1)


def test_in_need_a_broker_without_write_queues_is_forgotten() -> None:
    items = {name: FaultItem(1, 99) for name in "abc"} | {"gone": FaultItem(0, 0)}
    selection = select_with_faults(QUEUES, dict.fromkeys("abc", 4), 0, 1, items, now=0)
    assert selection.mq == QUEUES[2]
    assert sorted(selection.fault_items) == ["a", "b", "c"]


def test_5_x_falls_back_from_available_to_reachable_to_any() -> None:
    slow, gone = FaultItem(900, 99), FaultItem(900, 99, reachable=False)
    assert select_with_filters(QUEUES, 11, {"a": slow}, now=0).mq.broker_name == "b"
    everywhere = {"a": gone, "b": slow, "c": gone}
    assert select_with_filters(QUEUES, 11, everywhere, now=0).mq.broker_name == "b"
    assert select_with_filters(QUEUES, 11, everywhere, now=0, last_broker_name="b").mq.broker_name == "a"


@pytest.mark.parametrize(
    ("outcomes", "brokers", "send_status", "thrown", "response_code"),
    [
        ([STORED], "a", "SEND_OK", None, 0),
        ([TIMED_OUT, STORED], "ab", "SEND_OK", None, 0),
        ([TIMED_OUT] * 3, "abc", None, "MQClientException", 0),
        ([refused(17)] * 3, "abc", None, "MQClientException", 17),
        ([refused(2), STORED], "a", None, "MQBrokerException", 2),
        ([TryOutcome(TryKind.INTERRUPTED), STORED], "a", None, "InterruptedException", 0),
        ([TryOutcome(TryKind.REMOTING, cost=3_001), STORED], "a", None, "RemotingTooMuchRequestException", 0),
        ([TryOutcome(TryKind.STORED, "FLUSH_DISK_TIMEOUT"), STORED], "a", "FLUSH_DISK_TIMEOUT", None, 0),
    ],
)
def test_a_synchronous_send(
    outcomes: list[TryOutcome], brokers: str, send_status: str | None, thrown: str | None, response_code: int
) -> None:
    sent = replay_sync_send(QUEUES, 11, outcomes)
    assert "".join(mq.broker_name for mq in sent.tried) == brokers
    assert (sent.send_status, sent.thrown, sent.response_code) == (send_status, thrown, response_code)


def test_a_busy_broker_is_left_for_another_in_5_x() -> None:
    sent = replay_sync_send(QUEUES, 11, [refused(2), STORED], version="5.3.3")
    assert [mq.broker_name for mq in sent.tried] == ["a", "b"]


def test_a_result_that_is_not_safe_is_better_than_the_exception_after_it() -> None:
    unsafe = TryOutcome(TryKind.STORED, "SLAVE_NOT_AVAILABLE")
    sent = replay_sync_send(QUEUES, 11, [unsafe, refused(2)], retry_another_broker_when_not_store_ok=True)
    assert (len(sent.tried), sent.send_status, sent.thrown) == (2, "SLAVE_NOT_AVAILABLE", None)


def test_asynchronous_sends_repeat_only_what_got_no_answer() -> None:
    assert not retries_async(answered=True, current_times=1, timeout_left=1_000)
    assert retries_async(answered=False, current_times=2, timeout_left=0)
    assert not retries_async(answered=False, current_times=2, timeout_left=0, version="5.3.3")
