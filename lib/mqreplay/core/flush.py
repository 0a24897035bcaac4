"""When a broker flushes data from memory to the disk.

With asynchronous flush a message is acknowledged before it is on disk: what is dirty when the machine (not just the
process) dies is lost. The commit log is flushed when enough pages are dirty or enough time has passed, the consume
queues likewise, more slowly. Follows org.apache.rocketmq.store.CommitLog.FlushRealTimeService and GroupCommitService,
DefaultMessageStore.FlushConsumeQueueService and MappedFile. Positions are bytes within one mapped file, times ms.
"""

from __future__ import annotations

from typing import NamedTuple

OS_PAGE_SIZE = 4_096  # bytes


class FlushPolicy(NamedTuple):
    """When one service flushes.

    It checks every ``interval`` ms; ``least_pages`` dirty pages cause a flush; after ``thorough_interval`` ms it
    flushes all dirty pages; at shutdown it tries ``retry_times_over`` times.
    """

    interval: int
    least_pages: int
    thorough_interval: int
    retry_times_over: int


COMMIT_LOG = FlushPolicy(interval=500, least_pages=4, thorough_interval=10_000, retry_times_over=10)
CONSUME_QUEUE = FlushPolicy(interval=1_000, least_pages=2, thorough_interval=60_000, retry_times_over=3)
# From the off-heap buffer to the page cache, only with transientStorePoolEnable.
COMMIT_TO_FILE_CHANNEL = FlushPolicy(interval=200, least_pages=4, thorough_interval=200, retry_times_over=10)


def dirty_pages(write_position: int, flushed_position: int) -> int:
    """Return the pages started since the last flush: the difference of the page numbers, not the bytes in pages.

    MappedFile#isAbleToFlush.

    >>> dirty_pages(16_384, 0), dirty_pages(16_383, 0), dirty_pages(4_096, 4_095)
    (4, 3, 1)
    """
    return write_position // OS_PAGE_SIZE - flushed_position // OS_PAGE_SIZE


def is_able_to_flush(write_position: int, flushed_position: int, flush_least_pages: int, file_size: int) -> bool:
    """Return whether a mapped file is written to disk now (MappedFile#isAbleToFlush).

    A full file always is; with ``flush_least_pages`` 0 any dirty page; else from that number of pages.

    >>> is_able_to_flush(16_384, 0, 4, 1 << 30), is_able_to_flush(1, 0, 4, 1 << 30), is_able_to_flush(1, 0, 0, 1 << 30)
    (True, False, True)
    """
    if write_position == file_size:
        return True
    if flush_least_pages > 0:
        return dirty_pages(write_position, flushed_position) >= flush_least_pages
    return write_position > flushed_position


def is_thorough(now: int, last_flush_timestamp: int, policy: FlushPolicy = COMMIT_LOG) -> bool:
    """Return whether this turn of the service flushes everything and resets the time; times in epoch ms.

    Only a thorough turn resets the time, so a busy log is flushed thoroughly every thorough_interval too.
    FlushRealTimeService#run, FlushConsumeQueueService#doFlush.

    >>> is_thorough(10_000, 0), is_thorough(9_999, 0), is_thorough(59_999, 0, CONSUME_QUEUE)
    (True, False, False)
    """
    return now >= last_flush_timestamp + policy.thorough_interval


def flushes(
    write_position: int,
    flushed_position: int,
    now: int,
    last_flush_timestamp: int,
    file_size: int,
    policy: FlushPolicy = COMMIT_LOG,
) -> bool:
    """Return whether the service's turn at ``now`` writes a file to disk: both rules above.

    Positions and ``file_size`` in bytes, times in epoch ms. FlushRealTimeService#run,
    FlushConsumeQueueService#doFlush.

    >>> flushes(100, 0, now=500, last_flush_timestamp=0, file_size=1 << 30)
    False
    >>> flushes(100, 0, now=10_000, last_flush_timestamp=0, file_size=1 << 30)
    True
    """
    least_pages = 0 if is_thorough(now, last_flush_timestamp, policy) else policy.least_pages
    return is_able_to_flush(write_position, flushed_position, least_pages, file_size)


def is_sync_flush_ok(flushed_where: int, next_offset: int) -> bool:
    """Return whether a synchronous flush wrote the message; else the sender gets FLUSH_DISK_TIMEOUT.

    ``next_offset`` is where the message ends in the commit log, bytes; two flushes are tried, since it may begin the
    next file. GroupCommitService#doCommit.

    >>> is_sync_flush_ok(1_000, 1_000), is_sync_flush_ok(999, 1_000)
    (True, False)
    """
    return flushed_where >= next_offset


def unflushed_bytes_max(bytes_per_second: float, policy: FlushPolicy = COMMIT_LOG) -> float:
    """Return an upper bound of the bytes lost if the machine fails, at a constant write rate.

    Either the pages that do not yet make it flush, or what comes in between two thorough turns, whichever is less;
    plus the bytes written during one interval, before the next check. The time of the disk is not included.
    No method of RocketMQ: it follows from the policy.

    >>> unflushed_bytes_max(1_000_000.0), unflushed_bytes_max(100.0)
    (516384.0, 1050.0)
    """
    held_back = min(policy.least_pages * OS_PAGE_SIZE, bytes_per_second * policy.thorough_interval / 1_000)
    return held_back + bytes_per_second * policy.interval / 1_000
