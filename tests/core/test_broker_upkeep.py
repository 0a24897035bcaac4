"""What a broker does in the background: flushing, following its master, sending what was pulled."""

from __future__ import annotations

import pytest

from mqreplay.core.flush import (
    COMMIT_LOG,
    CONSUME_QUEUE,
    dirty_pages,
    flushes,
    is_able_to_flush,
)
from mqreplay.core.slave_suggestion import transfer_cost
from mqreplay.core.slave_synchronize import (
    is_due,
    schedule,
    staleness_max,
    sync_configs,
    sync_consumer_offset,
    sync_delay_offset,
    synchronized_parts,
)

GIB = 1 << 30


@pytest.mark.parametrize(
    ("write", "flushed", "least_pages", "able"),
    [
        (4 * 4_096, 0, 4, True),
        (4 * 4_096 - 1, 0, 4, False),
        (4 * 4_096, 4_095, 4, True),  # page numbers count, not bytes
        (0, 0, 0, False),
        (1, 0, 0, True),
        (GIB, GIB, 4, True),  # a full file always is
    ],
)
def test_when_a_file_is_flushed(write: int, flushed: int, least_pages: int, able: bool) -> None:
    assert is_able_to_flush(write, flushed, least_pages, GIB) is able


def test_a_slow_log_is_flushed_after_ten_seconds_and_a_slow_consume_queue_after_a_minute() -> None:
    assert not flushes(20, 0, now=9_999, last_flush_timestamp=0, file_size=GIB)
    assert flushes(20, 0, now=10_000, last_flush_timestamp=0, file_size=GIB)
    assert not flushes(20, 0, now=59_999, last_flush_timestamp=0, file_size=GIB, policy=CONSUME_QUEUE)
    assert flushes(20, 0, now=60_000, last_flush_timestamp=0, file_size=GIB, policy=CONSUME_QUEUE)


def test_a_consume_queue_is_flushed_from_two_pages_on() -> None:
    assert flushes(8_192, 0, now=1, last_flush_timestamp=0, file_size=GIB, policy=CONSUME_QUEUE)
    assert not flushes(8_192, 0, now=1, last_flush_timestamp=0, file_size=GIB, policy=COMMIT_LOG)


def replayed_staleness(version: str) -> int:
    """The longest gap between two synchronizations, turn by turn."""
    used, last, gaps = schedule(version), 0, []
    for now in range(used.initial_delay, 1_000_000, used.period):
        if is_due(now, last, version):
            gaps.append(now - last)
            last = now
    return max(gaps)


def test_how_old_a_slaves_offsets_grow() -> None:
    assert replayed_staleness("4.9.7") == staleness_max("4.9.7") == 10_000
    assert 60_000 < replayed_staleness("5.3.3") <= staleness_max("5.3.3") == 63_000


def test_commits_that_a_slave_took_alone_are_lost_when_the_master_is_back() -> None:
    assert sync_consumer_offset({"T@g": {0: 9, 7: 9}}, {"T@g": {0: 5}}) == {"T@g": {0: 5}}
    assert sync_consumer_offset({"gone@g": {0: 9}}, {}) == {"gone@g": {0: 9}}


def test_configs_are_replaced_as_a_whole_when_their_version_differs() -> None:
    assert sync_configs({"T": 1}, {"U": 1}, same_data_version=True) == {"T": 1}
    assert sync_configs({"T": 1}, {"U": 1}, same_data_version=False) == {"U": 1}


def test_what_5_x_adds() -> None:
    assert synchronized_parts("5.3.3")[4:] == ("messageRequestMode", "timerMetrics")
    assert synchronized_parts("5.3.3", timer_wheel_enable=False)[4:] == ("messageRequestMode",)
    assert sync_delay_offset("old", "new", "5.3.3") == ("new", True)


def test_the_page_cache_saves_both_copies_of_the_body() -> None:
    by_heap = transfer_cost(262_144, 32, 120)
    direct = transfer_cost(262_144, 32, 120, transfer_msg_by_heap=False)
    assert by_heap.copied_bytes - direct.copied_bytes == 524_288
    assert by_heap.sent_bytes == direct.sent_bytes == 262_264
    assert (by_heap.writes, direct.writes) == (1, 33)


def test_dirty_pages_are_counted_from_the_last_flush() -> None:
    assert dirty_pages(40_960, 36_864) == 1
    assert is_able_to_flush(8_192, 4_096, 1, GIB)
    assert not is_able_to_flush(4_097, 4_096, 1, GIB)


def test_a_slave_is_due_a_minute_after_the_last_time() -> None:
    assert [is_due(now, 100_000, "5.3.3") for now in (160_000, 160_001)] == [False, True]
    assert [is_due(now, 100_000) for now in (100_000, 99_999)] == [True, True]


def test_what_the_page_cache_saves_does_not_hang_on_the_header() -> None:
    assert transfer_cost(0, 2, transfer_msg_by_heap=False) == (0, 0, 0, 3)
