"""From the allocation to the held queues, and the first offset of each."""

from __future__ import annotations

import pytest

from mqreplay.core.compute_pull_from import (
    ConsumeFromWhere,
    admin_question,
    compute_pull_from_where,
    compute_pull_from_where_with_exception,
    parse_date,
)
from mqreplay.core.faq_url import attach_default_url, client_exception
from mqreplay.core.message_queue import MessageQueue
from mqreplay.core.rebalance import (
    HeldQueue,
    drop_queues,
    truncate_message_queue_not_my_topic,
    update_process_queue_table_in_rebalance,
)
from mqreplay.words.errors import MQClientError, NullPointer

QUEUES = [MessageQueue("T", "b", queue_id) for queue_id in range(4)]
OTHER = MessageQueue("U", "b", 0)
HELD = {mq: HeldQueue(0) for mq in [*QUEUES[:2], OTHER]}
OFFSETS = dict.fromkeys(QUEUES, 5)


def test_an_unchanged_allocation_changes_nothing() -> None:
    step = update_process_queue_table_in_rebalance("T", HELD, QUEUES[:2], OFFSETS, now=0)
    assert not step.changed
    assert step.process_queue_table == HELD


def test_queues_move_and_other_topics_stay() -> None:
    step = update_process_queue_table_in_rebalance("T", HELD, QUEUES[1:3], OFFSETS, now=9)
    assert step.removed == (QUEUES[0],)
    assert step.added == ((QUEUES[2], 5),)
    assert set(step.process_queue_table) == {QUEUES[1], QUEUES[2], OTHER}
    assert step.process_queue_table[QUEUES[2]] == HeldQueue(9, 9)


@pytest.mark.parametrize("offsets", [{}, {QUEUES[2]: -1}])
def test_without_an_offset_a_queue_is_not_taken(offsets: dict[MessageQueue, int]) -> None:
    step = update_process_queue_table_in_rebalance("T", HELD, QUEUES[:3], offsets, now=0)
    assert step.no_offset == (QUEUES[2],)
    assert not step.changed


@pytest.mark.parametrize(("version", "later"), [("4.9.8", None), ("5.3.3", 500)])
def test_a_queue_that_is_not_locked_is_not_taken(version: str, later: int | None) -> None:
    step = update_process_queue_table_in_rebalance(
        "T", {}, QUEUES[:2], OFFSETS, now=0, locked=[QUEUES[0]], version=version
    )
    assert step.added == ((QUEUES[0], 5),)
    assert step.lock_failed == (QUEUES[1],)
    assert step.rebalance_later == later


def test_a_queue_not_pulled_for_two_minutes_is_dropped_and_taken_anew() -> None:
    step = update_process_queue_table_in_rebalance("T", HELD, QUEUES[:2], OFFSETS, now=120_001)
    assert step.removed == tuple(QUEUES[:2])
    assert [mq for mq, _ in step.added] == QUEUES[:2]


def test_a_busy_orderly_queue_stays_dropped_in_the_table() -> None:
    busy = {QUEUES[0]: HeldQueue(0, last_lock_timestamp=0, consuming=True)}
    for version, now, kept in (("4.9.8", 60_000, 1), ("5.3.3", 20_000, 1), ("5.3.3", 20_001, 0)):
        dropped = drop_queues("T", busy, [], now, orderly=True, version=version)
        assert len(dropped.kept_dropped) == kept
        assert all(held.dropped for held in dropped.process_queue_table.values())


def test_topics_no_longer_subscribed_are_dropped() -> None:
    dropped = truncate_message_queue_not_my_topic(HELD, {"T"})
    assert dropped.removed == (OTHER,)
    assert set(dropped.process_queue_table) == set(QUEUES[:2])


def test_a_stored_offset_is_taken_whatever_the_setting() -> None:
    for where in ConsumeFromWhere:
        assert admin_question(where, 0, "T") is None
        assert compute_pull_from_where(where, 0, "T") == 0


def test_an_unreadable_store_is_no_start_and_in_5_x_an_error() -> None:
    where = ConsumeFromWhere.LAST_OFFSET
    assert compute_pull_from_where_with_exception(where, -2, "T", 5_000) == -1
    with pytest.raises(MQClientError, match="CODE: 22  DESC: Failed to query consume offset") as error:
        compute_pull_from_where_with_exception(where, -2, "T", 5_000, version="5.3.3")
    assert error.value.response_code == 22


def test_a_broker_that_answers_below_zero_is_an_error_in_5_x() -> None:
    where = ConsumeFromWhere.TIMESTAMP
    assert compute_pull_from_where_with_exception(where, -1, "T", -1, "20240102030405") == -1
    with pytest.raises(MQClientError, match="Found unexpected result -1"):
        compute_pull_from_where_with_exception(where, -1, "T", -1, "20240102030405", version="5.3.3")


def test_a_timestamp_that_is_none_is_a_null_pointer_even_without_the_exception() -> None:
    with pytest.raises(NullPointer):
        compute_pull_from_where(ConsumeFromWhere.TIMESTAMP, -1, "T", 7, "2024-01-02")


def test_the_time_is_the_consumers_own() -> None:
    found = admin_question(ConsumeFromWhere.TIMESTAMP, -1, "T", "19700101080000", utc_offset=8 * 3_600_000)
    assert found == ("searchOffset", 0)


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("20241301000000", "20250101000000"),
        ("20240100000000", "20231231000000"),
        ("20230229000000", "20230301000000"),
        ("20240229000000x", "20240229000000"),
        ("2024 1 2 3 4 5", "20240102030405"),
        ("20240102030405999", "20240102044359"),
        ("2024-1010000000", "20231101000000"),
    ],
)
def test_dates_are_lenient(text: str, same: str) -> None:
    assert parse_date(text) == parse_date(same) is not None


@pytest.mark.parametrize("text", ["", "bad", "2024", "20240102030x05", "2024010203  "])
def test_what_is_no_date(text: str) -> None:
    assert parse_date(text) is None


def test_a_message_with_a_page_of_its_own_gets_no_second() -> None:
    named = "no\nSee http://x for further details."
    assert attach_default_url(named) == named
    assert client_exception(1, "no route", "5.3.3").message == (
        "CODE: 1  DESC: no route\nFor more information, please visit the url, "
        "https://rocketmq.apache.org/docs/bestPractice/06FAQ"
    )


def test_only_queues_added_or_removed_are_a_change() -> None:
    taken = update_process_queue_table_in_rebalance("T", HELD, QUEUES[:3], OFFSETS, now=0)
    assert (taken.added, taken.removed, taken.changed) == (((QUEUES[2], 5),), (), True)
    dropped = update_process_queue_table_in_rebalance("T", HELD, QUEUES[:1], OFFSETS, now=0)
    assert (dropped.added, dropped.removed, dropped.changed) == ((), (QUEUES[1],), True)


def test_an_offset_of_zero_is_one() -> None:
    step = update_process_queue_table_in_rebalance("T", {}, QUEUES[:1], {QUEUES[0]: 0}, now=0)
    assert (step.added, step.no_offset) == (((QUEUES[0], 0),), ())


def test_a_queue_that_is_not_locked_is_not_asked_for_an_offset() -> None:
    step = update_process_queue_table_in_rebalance("T", {}, QUEUES[:2], {}, now=0, locked=[QUEUES[1]])
    assert (step.lock_failed, step.no_offset) == ((QUEUES[0],), (QUEUES[1],))


def test_only_orderly_consumption_keeps_a_busy_queue() -> None:
    table = {QUEUES[0]: HeldQueue(0, consuming=True), QUEUES[1]: HeldQueue(0)}
    orderly = update_process_queue_table_in_rebalance("T", table, [], {}, now=0, locked=[])
    assert (orderly.kept_dropped, orderly.removed) == ((QUEUES[0],), (QUEUES[1],))
    assert orderly.process_queue_table == {QUEUES[0]: HeldQueue(0, consuming=True, dropped=True)}
    concurrent = update_process_queue_table_in_rebalance("T", table, [], {}, now=0)
    assert (concurrent.kept_dropped, concurrent.removed) == ((), (QUEUES[0], QUEUES[1]))
    assert drop_queues("T", table, [], 0).removed == (QUEUES[0], QUEUES[1])


def test_a_5_broker_may_answer_zero_but_must_answer() -> None:
    where = ConsumeFromWhere.LAST_OFFSET
    assert compute_pull_from_where_with_exception(where, -1, "T", 0, version="5.3.3") == 0
    with pytest.raises(MQClientError, match="Found unexpected result -1"):
        compute_pull_from_where_with_exception(where, -1, "T", version="5.3.3")
    assert compute_pull_from_where(where, -1, "T") == -1
    assert admin_question(ConsumeFromWhere.FIRST_OFFSET, -1, "T") is None


def test_a_date_needs_no_more_than_its_digits() -> None:
    assert parse_date("19700101000001") == parse_date("1970 1 1 0 0 1") == 1_000
    assert parse_date("19700101000001~~") == 1_000
    assert parse_date("~9700101000001") is None
    assert parse_date("24000301000000") == 13_574_649_600_000  # 2400 has a 29th of February


def test_with_all_locks_there_is_nothing_to_come_back_for() -> None:
    step = update_process_queue_table_in_rebalance(
        "T", {}, QUEUES[:1], OFFSETS, now=0, locked=QUEUES[:1], version="5.3.3"
    )
    assert (step.added, step.rebalance_later) == (((QUEUES[0], 5),), None)
