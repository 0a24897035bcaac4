"""The target of a message, and of its retries."""

from __future__ import annotations

from collections import Counter

import pytest

from mqreplay.core.fault_strategy import (
    FaultItem,
    FaultSettings,
    compute_not_available_duration,
    default_settings,
    is_available,
    rank_fault_items,
    update_fault_item,
)
from mqreplay.core.message_queue import MessageQueue
from mqreplay.core.select_queue import (
    continues_a_turn,
    select_one_message_queue,
    select_with_faults,
    select_with_filters,
)
from mqreplay.core.send_retry import (
    Step,
    TryKind,
    TryOutcome,
    isolates_broker,
    replay_sync_send,
    retries_async,
    step_after,
)
from mqreplay.words.errors import Arithmetic

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


def test_in_need_a_broker_of_the_better_half_gets_a_queue_id() -> None:
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


def test_5_x_puts_availability_off_from_the_first_millisecond_on() -> None:
    one_ms = FaultSettings((10,), (1,), 30_000)
    known = {"b": FaultItem(5, 7)}
    later = update_fault_item(known, "b", 10, False, now=100, settings=one_ms, version="5.3.3")
    assert later["b"] == FaultItem(10, 101)
    assert update_fault_item(known, "b", 9, False, now=100, settings=one_ms, version="5.3.3")["b"] == FaultItem(9, 7)
    assert update_fault_item({}, "b", 9, False, now=100, settings=one_ms, version="5.3.3")["b"] == FaultItem(9, 0)


def test_thresholds_and_durations_go_in_pairs() -> None:
    with pytest.raises(ValueError, match="zip"):
        compute_not_available_duration(0, (1, 2, 3), (0, 0))


def test_brokers_that_are_equal_but_for_being_reachable_rank_as_they_are_kept() -> None:
    items = {"b": FaultItem(1, 5, True), "a": FaultItem(1, 5, False)}
    assert rank_fault_items(items, now=9) == ["a", "b"]
    items = {"a": FaultItem(1, 5, True), "b": FaultItem(1, 5, False)}
    assert rank_fault_items(items, now=9) == ["a", "b"]


def test_an_unreachable_broker_is_unavailable_in_one_version_alone() -> None:
    items = {"b": FaultItem(1, 5, False)}
    assert [is_available(items, "b", 9, version) for version in ("4.9.7", "5.1.3", "5.1.4", "5.2.0", "5.3.3")] == [
        *(True, True, False, True, True)
    ]
    assert not is_available(items, "b", 4, "5.3.3")


def test_which_tries_isolate_a_broker() -> None:
    isolating = {kind for kind in TryKind if isolates_broker(TryOutcome(kind))}
    assert isolating == {TryKind.REMOTING, TryKind.BROKER, TryKind.CLIENT}
    assert {kind for kind in TryKind if isolates_broker(TryOutcome(kind), "5.3.3")} == isolating - {TryKind.CLIENT}


def test_a_stored_message_is_sent_again_only_if_asked_for_and_not_safe() -> None:
    unsafe = TryOutcome(TryKind.STORED, "FLUSH_DISK_TIMEOUT")
    steps = [step_after(outcome, again) for outcome in (STORED, unsafe) for again in (False, True)]
    assert steps == [Step.RETURN, Step.RETURN, Step.RETURN, Step.RETRY]
    assert step_after(unsafe) is Step.RETURN
    assert Step.RETURN.value == "return"


def test_time_left_matters_to_an_asynchronous_send_of_5_x() -> None:
    assert [retries_async(False, 1, left, version="5.3.3") for left in (1, 0, -1)] == [True, False, False]
    assert retries_async(False, 1, 0)


def test_a_synchronous_send_ends_with_its_tries_or_its_time() -> None:
    four = [refused(1)] * 4
    assert len(replay_sync_send(QUEUES, 0, four).tried) == 3
    assert len(replay_sync_send(QUEUES, 0, four, retry_times_when_send_failed=0).tried) == 1
    # A try may begin with no time left; only once more than all is spent does none.
    exact = replay_sync_send(QUEUES, 0, [TIMED_OUT, STORED], timeout=1_000)
    assert (len(exact.tried), exact.send_status) == (2, "SEND_OK")
    late = replay_sync_send(QUEUES, 0, [TIMED_OUT, STORED, STORED], timeout=999)
    assert (len(late.tried), late.thrown) == (1, "RemotingTooMuchRequestException")
    # The queue of the try that came too late was picked, and counts.
    assert late.send_which_queue == exact.send_which_queue
    at_once = replay_sync_send(QUEUES, 0, [STORED], timeout=0)
    assert at_once.send_status == "SEND_OK"


def test_what_a_send_throws() -> None:
    assert replay_sync_send(QUEUES, 0, []).thrown == "MQClientException"
    gone = TryOutcome(TryKind.REMOTING, response_code=7)
    assert replay_sync_send(QUEUES, 0, [gone])[2:4] == ("MQClientException", 0)
    assert replay_sync_send(QUEUES, 0, [refused(99)])[2:4] == ("MQBrokerException", 99)


def test_with_one_broker_known_the_counter_of_the_worst_stays() -> None:
    items = {"z": FaultItem(1, 99), "a": FaultItem(2, 99), "b": FaultItem(2, 99), "c": FaultItem(3, 99)}
    alone = {"a": FaultItem(1, 99)}
    only_a = [MessageQueue("T", "a", 0)]
    selection = select_with_faults(only_a, {"a": 4}, 0, 5, alone, now=0)
    assert (selection.mq.broker_name, selection.which_item_worst) == ("a", 5)
    # A picked broker without write queues, zero or unknown, is forgotten.
    for nums in ({}, {"z": 0}):
        forgotten = select_with_faults(QUEUES, nums, 0, 1, items, now=0)
        assert set(forgotten.fault_items) == {"a", "b", "c"}


def test_as_few_threads_as_possible_explain_the_queues_of_sends() -> None:
    assert continues_a_turn([], 4) == []
    assert continues_a_turn([0, 0, 0, 0], 1) == [False, True, True, True]
    assert continues_a_turn([3, 0, 1, 2, 3], 4) == [False, True, True, True, True]
    # Two threads, one behind the other: it does not matter which of them takes the next place.
    assert continues_a_turn([0, 1, 0, 1, 2, 2], 4) == [False, True, False, True, True, True]
