"""POP of messages: where a group starts, which queue is blocked, what is revived and when."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mqreplay.core.pop_order import check_block, commit_and_next, lock_free_timestamp, next_offset, update
from mqreplay.core.pop_order import update_next_visible_time as change
from mqreplay.core.pop_revive import (
    CheckPoint,
    is_kv_revive_due,
    is_revive_due,
    kv_next_invisible_time,
    re_put_check_point,
    revive_deadline,
    unacknowledged_offsets,
)
from mqreplay.core.pop_start import kv_pop_offset, pop_init_offset, pop_offset

TIMES = st.integers(0, 2_000_000_000_000)
OFFSETS = st.lists(st.integers(0, 1000), min_size=1, max_size=20, unique=True).map(sorted)


@given(st.integers(0, 100), st.integers(0, 100), st.booleans(), st.sampled_from([0, 1]), st.booleans())
def test_a_group_never_starts_outside_its_queue(low: int, size: int, in_memory: bool, mode: int, retry: bool) -> None:
    start = pop_init_offset("%RETRY%g_T" if retry else "T", mode, low, low + size, in_memory)
    assert low <= start <= max(low + size - 1, low) or size == 0


def test_a_reset_is_used_before_anything_else() -> None:
    assert pop_offset(9, 3, 0, 20) == kv_pop_offset(9, 12, 3, 0) == 0


@given(OFFSETS, st.randoms())
def test_acknowledged_in_any_order_a_queue_is_free_and_committed_to_its_end(offsets: list[int], random: object) -> None:
    info = update(None, "a", 1000, 300, offsets, 1000)
    left = list(offsets)
    random.shuffle(left)  # type: ignore[attr-defined]
    while left:
        assert check_block(info, "b", 300, 1299)
        committed, after = commit_and_next(info, left.pop(), 1000)
        assert after is not None
        info = after
        assert committed == min(left, default=offsets[-1] + 1) == next_offset(info)
    assert not check_block(info, "b", 300, 1299)


@given(OFFSETS, TIMES, st.integers(1, 10**9))
def test_a_queue_is_free_from_the_instant_at_which_its_messages_are_visible(
    offsets: list[int], pop_time: int, invisible_time: int
) -> None:
    info = update(None, "a", pop_time, invisible_time, offsets, pop_time)
    free = lock_free_timestamp(info, pop_time)
    assert free == pop_time + invisible_time
    assert check_block(info, "b", invisible_time, free - 1)
    assert not check_block(info, "b", invisible_time, free)


def test_a_longer_invisible_time_of_one_message_blocks_all() -> None:
    info = change(update(None, "a", 1000, 300, [5, 6], 1000), 6, 1000, 9000)
    assert check_block(info, "b", 300, 8999)
    assert not check_block(info, "b", 300, 9000)


def test_a_receipt_of_an_earlier_pop_commits_nothing() -> None:
    info = update(None, "a", 1000, 300, [5, 6], 1000)
    assert commit_and_next(info, 5, 999) == (-2, info)
    assert change(info, 5, 999, 9000) == info


def test_a_message_handed_out_again_is_counted_unless_the_attempt_is_the_same() -> None:
    first = update(None, "a", 1000, 300, [5, 6], 1000)
    again = update(first, "b", 2000, 300, [5, 6], 2000)
    assert again.offset_consumed_count == {5: 1, 6: 1}
    assert update(again, "b", 3000, 300, [5, 6], 3000).offset_consumed_count == {5: 1, 6: 1}
    assert update(again, "c", 3000, 300, [6, 7], 3000).offset_consumed_count == {6: 2}


@given(OFFSETS, st.data())
def test_what_is_not_acknowledged_is_revived_and_nothing_else(offsets: list[int], data: st.DataObject) -> None:
    diffs = tuple(offset - offsets[0] for offset in offsets)
    point = CheckPoint(offsets[0], 1000, 300, len(offsets), diffs)
    acknowledged = data.draw(st.sets(st.sampled_from(offsets)))
    assert unacknowledged_offsets(point, acknowledged) == [each for each in offsets if each not in acknowledged]


@given(TIMES)
def test_a_message_is_never_revived_before_its_time_and_a_healthy_broker_is_not_late(revive_time: int) -> None:
    assert not is_revive_due(revive_time, revive_time + 2000)
    assert is_revive_due(revive_time, revive_deadline(revive_time))
    assert not is_kv_revive_due(revive_time, revive_time)
    assert is_kv_revive_due(revive_time, revive_deadline(revive_time))


def test_a_message_that_cannot_be_revived_waits_longer_each_time() -> None:
    point: CheckPoint | None = CheckPoint(5, 0, 1000, 1, (0,))
    waits = []
    for _ in range(18):
        assert point is not None
        before = point.invisible_time
        point = re_put_check_point(point, 5, point.revive_time)
        assert point is not None
        waits.append((point.invisible_time - before) // 1000)
    assert waits == [10, 20, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1200, 1800, 3600, 7200, 7200]
    assert re_put_check_point(point, 5, point.revive_time, True) is None
    assert kv_next_invisible_time(0, 16) is None


def test_an_acknowledgement_beyond_the_32_bits_of_a_checkpoint_is_lost() -> None:
    assert 45 in unacknowledged_offsets(CheckPoint(5, 1000, 300, 60), [45])
