from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqreplay.core.consume_queue import CommitLog, ConsumeQueue, CqUnit, StoreConfig
from mqreplay.core.get_message import GetMessageResult, get_message, place_offset
from mqreplay.core.slave_suggestion import (
    TransferLimits,
    check_in_disk_by_commit_offset,
    effective_ratio,
    is_the_batch_full,
    memory_threshold,
    slave_suggestion,
)
from mqreplay.words.errors import IllegalArgument

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


def test_in_5_x_one_answer_ends_at_128_mib() -> None:
    queue, log = queue_of([32 << 20] * 6)
    config = StoreConfig(1 << 40, limits=TransferLimits(max_transfer_bytes_on_message_in_memory=1 << 30))
    assert get_message(queue, 0, 32, log, config, version="5.3.3").message_count == 4
    assert get_message(queue, 0, 32, log, config).message_count == 6


def test_a_gone_consume_queue_file_counts_from_the_start_of_the_log_in_5_x() -> None:
    queue = ConsumeQueue([CqUnit(900, 100)] * 3, first_offset=5)
    # 10 % of 10,000 are 1,000 bytes: from byte 0 just within memory, or just beyond.
    for end, memory, suggested in ((1_000, 10_000, False), (1_001, 10_000, True)):
        for version, expected in (("4.9.7", False), ("5.3.3", suggested)):
            found = get_message(queue, 3, 32, CommitLog(end), StoreConfig(memory, 10), None, version)
            assert (found.status, found.suggest_pulling_from_slave) == ("OFFSET_FOUND_NULL", expected)


def test_a_suggestion_follows_the_last_entry() -> None:
    queue, log = queue_of([1_000] * 5)
    for version in VERSIONS:
        # The last of three begins 3,000 bytes before the end.
        for memory, suggested in ((2_999, True), (3_000, False)):
            found = get_message(queue, 0, 3, log, StoreConfig(memory, 100), None, version)
            # 4.x has looked at the fourth as well.
            assert found.suggest_pulling_from_slave == (suggested if version == "5.3.3" else False)


def test_what_did_not_match_and_what_is_gone() -> None:
    queue = ConsumeQueue([CqUnit(0, 100, 7), CqUnit(100, 100, 8), CqUnit(200, 100, 7)])
    for version in VERSIONS:

        def ask(min_offset: int, tags: set[int], version: str = version) -> GetMessageResult:
            log = CommitLog(300, min_offset, mapped_file_size=100)
            return get_message(queue, 0, 32, log, StoreConfig(1_000), tags.__contains__, version)

        assert ask(0, {8})[:2] == ("FOUND", 3)
        assert ask(0, {8}).offsets_py == (100,)
        assert ask(0, set()).status == "NO_MATCHED_MESSAGE"
        # The first message is gone with its file, and the last that was looked at did not match.
        assert ask(101, {8}).status == "NO_MATCHED_MESSAGE"
        # Offset 0 is read from the first file that is left.
        assert ask(150, {7, 8}).offsets_py == (150, 200)


def test_a_message_at_the_start_of_a_file_is_not_passed_over_with_the_one_before() -> None:
    # A file of the log has 100 bytes; what lies below 200 is deleted.
    queue = ConsumeQueue([CqUnit(100, 50), CqUnit(150, 50), CqUnit(200, 50), CqUnit(150, 20), CqUnit(250, 50)])
    for version in VERSIONS:
        found = get_message(queue, 0, 32, CommitLog(300, 200, 100), StoreConfig(1_000), None, version)
        assert found.offsets_py == (200, 250)


def test_without_a_queue_there_is_no_message() -> None:
    assert get_message(None, 5, 32, CommitLog(0), StoreConfig(1)).status == "NO_MESSAGE_IN_QUEUE"
    assert (place_offset(5, 0, 5), place_offset(6, 0, 5)) == (("OFFSET_OVERFLOW_ONE", 5), ("OFFSET_OVERFLOW_BADLY", 5))


def test_what_of_a_commit_log_can_be_read() -> None:
    log = CommitLog(300, 100)
    assert [log.holds(0, size) for size in (200, 201)] == [True, False]
    assert [log.holds(at, 10) for at in (99, 100, 290, 291)] == [False, True, True, False]


def test_entries_are_read_to_the_end_of_their_file() -> None:
    queue = ConsumeQueue([CqUnit(n, 1) for n in range(7)], first_offset=2, units_in_file=3)
    held = {at: [unit.offset_py + 2 for unit in queue.from_offset(at) or ()] for at in range(1, 9)}
    assert held == {1: [], 2: [2], 3: [3, 4, 5], 4: [4, 5], 5: [5], 6: [6, 7, 8], 7: [7, 8], 8: [8]}


def test_a_message_that_was_found_ends_the_passing_over() -> None:
    # No broker writes backwards; but the rule is getMessage's own: only until the next message that is there.
    queue = ConsumeQueue([CqUnit(100, 10), CqUnit(200, 10), CqUnit(150, 10)])
    for version in VERSIONS:
        found = get_message(queue, 0, 32, CommitLog(300, 120, 100), StoreConfig(1_000), None, version)
        assert found.offsets_py == (200, 150)
