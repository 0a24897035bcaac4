from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqreplay.core.consume_queue import CommitLog, ConsumeQueue, CqUnit, StoreConfig
from mqreplay.core.get_message import get_message
from mqreplay.core.slave_suggestion import (
    TransferLimits,
    check_in_disk_by_commit_offset,
    effective_ratio,
    is_the_batch_full,
    memory_threshold,
    slave_suggestion,
)
from mqreplay.errors import IllegalArgument

VERSIONS = ["4.9.7", "5.3.3"]
SIZES = st.lists(st.integers(1, 5000), max_size=60)


def queue_of(sizes: list[int]) -> tuple[ConsumeQueue, CommitLog]:
    units, end = [], 0
    for size in sizes:
        units.append(CqUnit(end, size))
        end += size
    return ConsumeQueue(units), CommitLog(end)


@pytest.mark.parametrize("version", VERSIONS)
@given(sizes=SIZES, max_msg_nums=st.integers(1, 50), memory=st.integers(0, 200_000))
def test_pulling_again_and_again_reads_all_once(version: str, sizes: list[int], max_msg_nums: int, memory: int) -> None:
    queue, log = queue_of(sizes)
    offset, read = 0, []
    while (found := get_message(queue, offset, max_msg_nums, log, StoreConfig(memory), None, version)).message_count:
        assert found.message_count <= max_msg_nums
        read += found.offsets_py
        offset = found.next_begin_offset
    assert read == [unit.offset_py for unit in queue.units]
    assert found.status == ("OFFSET_OVERFLOW_ONE" if sizes else "NO_MESSAGE_IN_QUEUE")


@given(st.integers(0, 10**13), st.integers(0, 10**13), st.integers(0, 10**12), st.integers(-100, 200))
def test_memory_and_disk_are_divided_by_one_line(end: int, at: int, memory: int, ratio: int) -> None:
    suggested = slave_suggestion(end, at, memory, ratio)
    assert suggested == (end - at > memory_threshold(memory, ratio))
    assert suggested == check_in_disk_by_commit_offset(at, end, memory, ratio)


def test_the_threshold_itself_is_still_memory() -> None:
    assert not slave_suggestion(400, 0, 1000, 40)
    assert slave_suggestion(401, 0, 1000, 40)


def test_a_small_ratio_turns_negative_on_a_5_slave() -> None:
    assert memory_threshold(1000, effective_ratio(1, "SLAVE", "5.3.3")) == -90
    assert slave_suggestion(0, 0, 1000, -9)


def test_the_entry_that_did_not_fit_counts_in_4_only() -> None:
    # From 0 the second message is out of reach: one message a pull. It lies within the memory, the first does
    # not.
    queue, log = queue_of([100, 100])
    config = StoreConfig(150, 100, TransferLimits(50, 32, 50, 8))
    suggested = [get_message(queue, 0, 32, log, config, None, v).suggest_pulling_from_slave for v in VERSIONS]
    assert suggested == [False, True]


def test_a_consume_queue_file_that_is_gone() -> None:
    queue = ConsumeQueue([CqUnit(900, 100)], 5, 20, units_in_file=10)
    found = [get_message(queue, 12, 32, CommitLog(1000), StoreConfig(100), None, v) for v in VERSIONS]
    assert [result.status for result in found] == ["OFFSET_FOUND_NULL"] * 2
    assert [result.next_begin_offset for result in found] == [20, 20]
    assert [result.suggest_pulling_from_slave for result in found] == [False, True]


def test_a_pull_stops_at_the_end_of_the_consume_queue_file() -> None:
    queue = ConsumeQueue([CqUnit(i, 1) for i in range(20)], units_in_file=10)
    assert get_message(queue, 7, 32, CommitLog(20), StoreConfig(100)).next_begin_offset == 10


def test_deleted_commit_log_files_are_passed_over() -> None:
    units = [CqUnit(100, 10), CqUnit(300, 10), CqUnit(1100, 10)]
    log = CommitLog(2000, min_offset=1024, mapped_file_size=1024)
    found = get_message(ConsumeQueue(units), 0, 32, log, StoreConfig(10**9))
    assert (found.status, found.offsets_py, found.next_begin_offset) == ("FOUND", (1100,), 3)
    found = get_message(ConsumeQueue(units[:2]), 0, 32, log, StoreConfig(10**9))
    assert (found.status, found.next_begin_offset) == ("MESSAGE_WAS_REMOVING", 2)


def test_a_negative_number_of_messages() -> None:
    queue, log = queue_of([1])
    with pytest.raises(IllegalArgument, match="Illegal Capacity: -1"):
        get_message(queue, 0, -1, log, StoreConfig(1))
    assert get_message(queue, 0, -1, log, StoreConfig(1), None, "5.3.3").message_count == 1


def test_sums_wrap_as_ints() -> None:
    limits = TransferLimits(2**31 - 1, 100, 2**31 - 1, -(2**31))
    assert not is_the_batch_full(1, 100, 2**31 - 1, 1, False, limits)
    assert not is_the_batch_full(1, 100, 5, 1, True, limits)  # -2**31 - 1 is 2**31 - 1


@pytest.mark.parametrize("version", VERSIONS)
def test_a_pull_reads_only_so_much_of_the_consume_queue(version: str) -> None:
    queue = ConsumeQueue([CqUnit(i, 1, 7) for i in range(2000)])
    log, config = CommitLog(2000), StoreConfig(10**9)
    found = get_message(queue, 0, 32, log, config, lambda tags_code: False, version)
    assert (found.status, found.next_begin_offset) == ("NO_MATCHED_MESSAGE", 800)  # 16,000 bytes
    assert get_message(queue, 0, 1000, log, config, lambda tags_code: False, version).next_begin_offset == 1000
