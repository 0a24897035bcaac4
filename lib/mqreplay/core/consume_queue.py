"""The part of a broker's store that a pull uses: a queue's entries, the commit log's bounds, the settings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from mqreplay.core.slave_suggestion import TransferLimits

CQ_STORE_UNIT_SIZE = 20  # bytes of a consume queue entry


class CqUnit(NamedTuple):
    """A consume queue entry: physical offset of the message in the commit log, its size in bytes, its tags' hash."""

    offset_py: int
    size_py: int
    tags_code: int = 0


class ConsumeQueue(NamedTuple):
    """A queue: its entries from first_offset without gaps; messages below min_offset_in_queue are deleted."""

    units: Sequence[CqUnit]
    min_offset_in_queue: int = 0
    first_offset: int = 0
    units_in_file: int = 300_000

    @property
    def max_offset_in_queue(self) -> int:
        """Return the offset of the next message, in messages. Follows ConsumeQueue#getMaxOffsetInQueue.

        >>> ConsumeQueue([CqUnit(0, 100)], first_offset=5).max_offset_in_queue
        6
        """
        return self.first_offset + len(self.units)

    def from_offset(self, offset: int) -> Sequence[CqUnit] | None:
        """Return the entries from offset (messages) to their file's end, else None (ConsumeQueue#getIndexBuffer).

        >>> queue = ConsumeQueue([CqUnit(i * 100, 100) for i in range(4)], first_offset=2, units_in_file=3)
        >>> [unit.offset_py for unit in queue.from_offset(4)], queue.from_offset(1)
        ([200, 300], None)
        """
        if offset < self.first_offset:
            return None
        file_end = offset - offset % self.units_in_file + self.units_in_file
        return self.units[offset - self.first_offset : file_end - self.first_offset]

    def roll_next_file(self, offset: int) -> int:
        """Return the first offset, in messages, of the next file (ConsumeQueue#rollNextFile).

        >>> [ConsumeQueue([], units_in_file=3).roll_next_file(offset) for offset in (2, 3)]
        [3, 6]
        """
        return offset + self.units_in_file - offset % self.units_in_file


class CommitLog(NamedTuple):
    """The commit log's bounds in bytes; messages below min_offset are deleted."""

    max_offset: int
    min_offset: int = 0
    mapped_file_size: int = 1024 * 1024 * 1024

    def holds(self, offset_py: int, size_py: int) -> bool:
        """Return whether a message can be read; at offset 0 always, from MappedFileQueue's first file (`start_of`).

        Both in bytes. Follows CommitLog#getMessage and MappedFileQueue#findMappedFileByOffset.

        >>> log = CommitLog(max_offset=300, min_offset=100)
        >>> log.holds(200, 100), log.holds(201, 100), log.holds(99, 1), log.holds(0, 100)
        (True, False, False, True)
        """
        if offset_py == 0:
            return self.min_offset + size_py <= self.max_offset
        return self.min_offset <= offset_py and offset_py + size_py <= self.max_offset

    def start_of(self, offset_py: int) -> int:
        """Return the byte at which the read for an offset starts: for 0, that of the first existing file.

        Follows MappedFileQueue#findMappedFileByOffset, whose caller reads from the start of the file it gets.

        >>> log = CommitLog(max_offset=300, min_offset=100)
        >>> log.start_of(0), log.start_of(200)
        (100, 200)
        """
        return offset_py or self.min_offset

    def roll_next_file(self, offset_py: int) -> int:
        """Return the first byte of the next file (CommitLog#rollNextFile).

        >>> [CommitLog(300, mapped_file_size=100).roll_next_file(offset_py) for offset_py in (99, 100)]
        [100, 200]
        """
        return offset_py + self.mapped_file_size - offset_py % self.mapped_file_size


class StoreConfig(NamedTuple):
    """The settings that getMessage reads: memory in bytes, ratio (see effective_ratio) in percent."""

    total_physical_memory_size: int
    access_message_in_memory_max_ratio: int = 40
    limits: TransferLimits = TransferLimits()
    broker_role: str = "ASYNC_MASTER"
    offset_check_in_slave: bool = False
