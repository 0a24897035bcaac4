"""ProcessQueue beyond the vectors: its invariants, and the failures that leave it half changed."""

from __future__ import annotations

import pytest

from mqreplay.core.process_queue import ProcessQueue, PulledMessage, is_lock_expired, is_pull_expired
from mqreplay.words.errors import IllegalArgument, NoSuchElement, NullPointer, NumberFormat


def pulled(*offsets: int, size: int = 10) -> list[PulledMessage]:
    return [PulledMessage(offset, size) for offset in offsets]


def test_one_stuck_message_holds_the_offset_back() -> None:
    pq = ProcessQueue()
    pq.put_message(pulled(*range(100)))
    assert {pq.remove_message(pulled(offset)) for offset in range(1, 100)} == {0}
    assert pq.remove_message(pulled(0)) == 100
    assert (pq.msg_count, pq.msg_size) == (0, 0)


def test_the_offset_after_the_last_message_is_that_of_the_last_one_put_not_of_the_largest() -> None:
    pq = ProcessQueue()
    pq.put_message(pulled(9, 3))
    assert pq.remove_message(pulled(9, 3)) == 4


def test_a_message_pulled_twice_counts_once() -> None:
    pq = ProcessQueue()
    pq.put_message(pulled(1, 1, size=5))
    assert (pq.msg_count, pq.msg_size) == (1, 5)


def test_taken_messages_do_not_wait_but_count_until_the_commit() -> None:
    pq = ProcessQueue()
    pq.put_message(pulled(1, 2, 3))
    assert [msg.queue_offset for msg in pq.take_messages(2)] == [1, 2]
    assert (pq.tree(), pq.consuming_tree(), pq.msg_count) == ([3], [1, 2], 3)
    assert pq.commit() == 3
    assert (pq.consuming_tree(), pq.msg_count, pq.msg_size) == ([], 1, 10)


def test_rollback_puts_everything_back() -> None:
    pq = ProcessQueue()
    pq.put_message(pulled(1, 2, 3))
    pq.take_messages(2)
    pq.rollback()
    assert (pq.tree(), pq.consuming_tree()) == ([1, 2, 3], [])


def test_a_failed_put_leaves_the_message_uncounted() -> None:
    pq = ProcessQueue("4.9.8")
    with pytest.raises(NullPointer):
        pq.put_message([PulledMessage(1, None)])
    assert (pq.tree(), pq.msg_count, pq.queue_offset_max, pq.consuming) == ([1], 0, 1, False)


def test_a_message_without_a_body_is_no_trouble_from_5_0_on() -> None:
    pq = ProcessQueue("5.3.3")
    assert pq.put_message([PulledMessage(1, None)])
    assert pq.remove_message([PulledMessage(1, None)]) == 2


def test_a_removal_that_fails_half_way_forgets_to_count() -> None:
    pq = ProcessQueue("4.9.8")
    pq.put_message(pulled(1, 2))
    assert pq.remove_message([PulledMessage(1, None), PulledMessage(2, 10)]) == 3
    assert (pq.tree(), pq.msg_count) == ([2], 2)


def test_what_java_throws() -> None:
    pq = ProcessQueue()
    with pytest.raises(NoSuchElement):
        pq.commit()
    with pytest.raises(IllegalArgument, match="Illegal Capacity: -1"):
        pq.take_messages(-1)
    with pytest.raises(NumberFormat):
        pq.put_message([PulledMessage(1, 1, "many")])
    assert pq.msg_count == 1


def test_ages_are_counted_from_the_last_time() -> None:
    assert [is_lock_expired(100_000, now) for now in (130_000, 130_001)] == [False, True]
    assert [is_pull_expired(100_000, now) for now in (220_000, 220_001)] == [False, True]
