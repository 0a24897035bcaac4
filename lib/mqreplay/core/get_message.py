"""The answer of a broker's store to a pull: status, next offset, messages, and the suggestion of a slave.

DefaultMessageStore#getMessage over a described store (see consume_queue). The offset asked for is first
placed in the queue's range; inside it, entries are walked one by one until the batch is full. 4.x and 5.x
differ in the entry that decides the suggestion of a slave, and in the answer to a pull whose entries are
deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from mqreplay.core.consume_queue import CQ_STORE_UNIT_SIZE, CommitLog, ConsumeQueue, CqUnit, StoreConfig
from mqreplay.core.java import LONG_MIN, to_int
from mqreplay.core.slave_suggestion import (
    MAX_PULL_MSG_SIZE,
    check_in_disk_by_commit_offset,
    is_the_batch_full,
    next_offset_correction,
    slave_suggestion,
)
from mqreplay.core.version import BROKER_4, at_least
from mqreplay.words.errors import IllegalArgument

FOUND = "FOUND"
NO_MATCHED_MESSAGE = "NO_MATCHED_MESSAGE"
MESSAGE_WAS_REMOVING = "MESSAGE_WAS_REMOVING"
OFFSET_FOUND_NULL = "OFFSET_FOUND_NULL"
OFFSET_OVERFLOW_BADLY = "OFFSET_OVERFLOW_BADLY"
OFFSET_OVERFLOW_ONE = "OFFSET_OVERFLOW_ONE"
OFFSET_TOO_SMALL = "OFFSET_TOO_SMALL"
NO_MATCHED_LOGIC_QUEUE = "NO_MATCHED_LOGIC_QUEUE"
NO_MESSAGE_IN_QUEUE = "NO_MESSAGE_IN_QUEUE"

MAX_FILTER_BYTES = 16000  # of the consume queue, read by one pull
MAX_FILTER_ENTRIES = MAX_FILTER_BYTES // CQ_STORE_UNIT_SIZE

MessageFilter = Callable[[int], bool]


class GetMessageResult(NamedTuple):
    """GetMessageResult: the answer; offsets_py are the commit log positions of its messages."""

    status: str
    next_begin_offset: int
    min_offset: int
    max_offset: int
    offsets_py: tuple[int, ...] = ()
    buffer_total_size: int = 0
    suggest_pulling_from_slave: bool = False

    @property
    def message_count(self) -> int:
        """Return the number of messages. Follows GetMessageResult#getMessageCount.

        >>> GetMessageResult("FOUND", 2, 0, 2, offsets_py=(0, 100)).message_count
        2
        """
        return len(self.offsets_py)


def place_offset(offset: int, min_offset: int, max_offset: int) -> tuple[str, int] | None:
    """Return (status, corrected offset) if the offset is outside of a queue's range, None if it is inside.

    All in messages; max_offset is the offset of the next message. An offset beyond the end is set to the end.
    next_offset_correction decides finally. Follows DefaultMessageStore#getMessage.

    >>> place_offset(9, 0, 5), place_offset(1, 3, 5), place_offset(4, 0, 5)
    (('OFFSET_OVERFLOW_BADLY', 5), ('OFFSET_TOO_SMALL', 3), None)
    """
    if max_offset == 0:
        return NO_MESSAGE_IN_QUEUE, 0
    if offset < min_offset:
        return OFFSET_TOO_SMALL, min_offset
    if offset == max_offset:
        return OFFSET_OVERFLOW_ONE, offset
    if offset > max_offset:
        return OFFSET_OVERFLOW_BADLY, max_offset
    return None


def can_continue_at(
    status: str, offset: int, next_offset: int, max_offset: int, max_msg_nums: int, version: str = BROKER_4
) -> bool:
    """Return whether a pull from inside of a queue can end at next_offset; all in messages.

    4.x reads the entries that the consume queue has by then: messages may have arrived since it read max_offset. 5.0
    stops at max_offset. Follows DefaultMessageStore#getMessage.

    >>> [can_continue_at(FOUND, 5, 9, 8, 32, version) for version in ("4.9.8", "5.0.0")]
    [True, False]
    >>> can_continue_at(FOUND, 5, 5, 8, 32)
    False
    """
    if not offset + (status == FOUND) <= next_offset:
        return False
    if status == OFFSET_FOUND_NULL:  # the begin of the next file
        return True
    if at_least(version, "5.0.0"):
        return next_offset <= max_offset
    return next_offset - offset <= max(MAX_FILTER_ENTRIES, max_msg_nums)


def get_message(
    consume_queue: ConsumeQueue | None,
    offset: int,
    max_msg_nums: int,
    commit_log: CommitLog,
    config: StoreConfig,
    message_filter: MessageFilter | None = None,
    version: str = BROKER_4,
) -> GetMessageResult:
    """Return the store's answer to a pull of at most max_msg_nums messages from offset (messages).

    consume_queue is None if the broker has no such queue. message_filter returns for an entry's tags code
    whether its message matches. Raises IllegalArgument for a negative max_msg_nums where 4.x would size its
    list by it. Follows DefaultMessageStore#getMessage.

    >>> queue = ConsumeQueue([CqUnit(0, 100), CqUnit(100, 100), CqUnit(200, 100)])
    >>> found = get_message(queue, 1, 32, CommitLog(300), StoreConfig(1000, 10))
    >>> found.status, found.next_begin_offset, found.offsets_py
    ('FOUND', 3, (100, 200))
    """
    if consume_queue is None:
        # DefaultMessageStore#findConsumeQueue makes a missing queue: an empty one.
        consume_queue = ConsumeQueue(())
    min_offset, max_offset = consume_queue.min_offset_in_queue, consume_queue.max_offset_in_queue
    if (placed := place_offset(offset, min_offset, max_offset)) is not None:
        return GetMessageResult(placed[0], _correct(offset, placed[1], config), min_offset, max_offset)
    units = consume_queue.from_offset(offset)
    if units is None:
        return _found_null(consume_queue, offset, commit_log, config, version)
    walk = _Walk(commit_log, config, message_filter, max_msg_nums)
    next_offset = offset + (walk.visit_5(units, version) if at_least(version, "5.0.0") else walk.visit_4(units))
    return GetMessageResult(
        walk.status,
        next_offset,
        min_offset,
        max_offset,
        tuple(walk.offsets_py),
        walk.buffer_total_size,
        _suggest(commit_log, walk.max_phy_offset_pulling, config),
    )


def _found_null(
    consume_queue: ConsumeQueue, offset: int, commit_log: CommitLog, config: StoreConfig, version: str
) -> GetMessageResult:
    """The offset is in range, but its consume queue file is deleted: continue at the next file."""
    return GetMessageResult(
        OFFSET_FOUND_NULL,
        _correct(offset, consume_queue.roll_next_file(offset), config),
        consume_queue.min_offset_in_queue,
        consume_queue.max_offset_in_queue,
        # 5.x has then read no entry, and compares with byte 0 of the commit log; 4.x does not compare.
        suggest_pulling_from_slave=at_least(version, "5.0.0") and _suggest(commit_log, 0, config),
    )


def _correct(old_offset: int, new_offset: int, config: StoreConfig) -> int:
    return next_offset_correction(old_offset, new_offset, config.broker_role, config.offset_check_in_slave)


def _suggest(commit_log: CommitLog, max_phy_offset_pulling: int, config: StoreConfig) -> bool:
    return slave_suggestion(
        commit_log.max_offset,
        max_phy_offset_pulling,
        config.total_physical_memory_size,
        config.access_message_in_memory_max_ratio,
    )


class _Walk:
    """The loop of getMessage over consume queue entries, and what it has gathered."""

    def __init__(
        self,
        commit_log: CommitLog,
        config: StoreConfig,
        message_filter: MessageFilter | None,
        max_msg_nums: int,
    ) -> None:
        self.commit_log = commit_log
        self.config = config
        self.message_filter = message_filter
        self.max_msg_nums = max_msg_nums
        self.max_filter_bytes = max(MAX_FILTER_BYTES, to_int(max_msg_nums * CQ_STORE_UNIT_SIZE))
        self.status = NO_MATCHED_MESSAGE
        self.offsets_py: list[int] = []
        self.buffer_total_size = 0
        self.max_phy_offset_pulling = 0
        self.next_phy_file_start_offset = LONG_MIN

    def visit_4(self, units: Sequence[CqUnit]) -> int:
        """Walk as 4.x does: every entry read affects the suggestion, also the one that did not fit."""
        if self.max_msg_nums < 0:
            raise IllegalArgument(f"Illegal Capacity: {self.max_msg_nums}")
        for i, unit in enumerate(units):
            if i * CQ_STORE_UNIT_SIZE >= self.max_filter_bytes:
                return i
            self.max_phy_offset_pulling = unit.offset_py
            if unit.offset_py < self.next_phy_file_start_offset:
                continue
            if self._is_full(unit, BROKER_4):
                return i
            self._take(unit)
        return len(units)

    def visit_5(self, units: Sequence[CqUnit], version: str) -> int:
        """Walk as 5.x does: only entries that fit into the batch affect the suggestion."""
        for i, unit in enumerate(units):
            if self._has_read_enough_5(i, version):
                return i
            if self._is_full(unit, version) or self.buffer_total_size >= MAX_PULL_MSG_SIZE:
                return i
            self.max_phy_offset_pulling = unit.offset_py
            if unit.offset_py >= self.next_phy_file_start_offset:
                self._take(unit)
        return len(units)

    def _has_read_enough_5(self, entries: int, version: str) -> bool:
        """5.0 takes the limit in bytes for a count of entries; until 5.3.2 one entry more is read."""
        read = entries * CQ_STORE_UNIT_SIZE if at_least(version, "5.1.0") else entries
        return read >= self.max_filter_bytes if at_least(version, "5.3.3") else read > self.max_filter_bytes

    def _is_full(self, unit: CqUnit, version: str) -> bool:
        is_in_disk = check_in_disk_by_commit_offset(
            unit.offset_py,
            self.commit_log.max_offset,
            self.config.total_physical_memory_size,
            self.config.access_message_in_memory_max_ratio,
        )
        return is_the_batch_full(
            unit.size_py,
            self.max_msg_nums,
            self.buffer_total_size,
            len(self.offsets_py),
            is_in_disk,
            self.config.limits,
            version,
        )

    def _take(self, unit: CqUnit) -> None:
        """Add the entry's message if it matches and still exists; else set the status to the reason."""
        if self.message_filter is not None and not self.message_filter(unit.tags_code):
            self._miss(NO_MATCHED_MESSAGE)
        elif not self.commit_log.holds(unit.offset_py, unit.size_py):
            self._miss(MESSAGE_WAS_REMOVING)
            # The rest of a deleted file is passed over.
            self.next_phy_file_start_offset = self.commit_log.roll_next_file(unit.offset_py)
        else:
            self.offsets_py.append(self.commit_log.start_of(unit.offset_py))
            self.buffer_total_size = to_int(self.buffer_total_size + unit.size_py)
            self.status = FOUND
            self.next_phy_file_start_offset = LONG_MIN

    def _miss(self, status: str) -> None:
        if self.buffer_total_size == 0:
            self.status = status
