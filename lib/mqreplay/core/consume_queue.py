"""A broker's store as far as a pull sees it: a queue's entries, the commit log's bounds, the settings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from mqreplay.core.slave_suggestion import TransferLimits

CQ_STORE_UNIT_SIZE = 20  # bytes of a consume queue entry


class CqUnit(NamedTuple):
    """A consume queue entry: where the message lies in the commit log, its size in bytes, its tags' hash."""

    offset_py: int
    size_py: int
    tags_code: int = 0


class ConsumeQueue(NamedTuple):
    """A queue: its entries from first_offset on, no gap; below min_offset_in_queue no message is kept."""

    units: Sequence[CqUnit]
    min_offset_in_queue: int = 0
    first_offset: int = 0
    units_in_file: int = 300_000

    @property
    def max_offset_in_queue(self) -> int:
        """The offset the next message will have."""
        return self.first_offset + len(self.units)

    def from_offset(self, offset: int) -> Sequence[CqUnit] | None:
        """The entries from offset to their file's end, None if not held (ConsumeQueue#getIndexBuffer)."""
        if offset < self.first_offset:
            return None
        file_end = offset - offset % self.units_in_file + self.units_in_file
        return self.units[offset - self.first_offset : file_end - self.first_offset]

    def roll_next_file(self, offset: int) -> int:
        """The first offset of the next file (ConsumeQueue#rollNextFile)."""
        return offset + self.units_in_file - offset % self.units_in_file


class CommitLog(NamedTuple):
    """The commit log's bounds in bytes: what is below min_offset has been deleted."""

    max_offset: int
    min_offset: int = 0
    mapped_file_size: int = 1024 * 1024 * 1024

    def holds(self, offset_py: int, size_py: int) -> bool:
        """Whether a message can be read. Offset 0 always can: MappedFileQueue then takes its first file."""
        if offset_py == 0:
            return self.min_offset + size_py <= self.max_offset
        return self.min_offset <= offset_py and offset_py + size_py <= self.max_offset

    def roll_next_file(self, offset_py: int) -> int:
        """Where the next file begins (CommitLog#rollNextFile)."""
        return offset_py + self.mapped_file_size - offset_py % self.mapped_file_size


class StoreConfig(NamedTuple):
    """What getMessage reads of the settings: memory in bytes, ratio (see effective_ratio) in percent."""

    total_physical_memory_size: int
    access_message_in_memory_max_ratio: int = 40
    limits: TransferLimits = TransferLimits()
    broker_role: str = "ASYNC_MASTER"
    offset_check_in_slave: bool = False
