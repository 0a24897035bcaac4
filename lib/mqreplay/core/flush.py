"""When a broker flushes data from memory to the disk.

With asynchronous flush a message is acknowledged before it is on disk: what is dirty when the machine (not just the
process) dies is lost. The commit log is flushed when enough pages are dirty or enough time has passed, the consume
queues likewise, more slowly. Follows org.apache.rocketmq.store.CommitLog.FlushRealTimeService and GroupCommitService,
DefaultMessageStore.FlushConsumeQueueService and MappedFile. Positions are bytes within one mapped file, times ms.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from mqreplay.core.store_settings import int_setting

OS_PAGE_SIZE = 4_096  # bytes
# ms; RocketMQ logs a flush that takes longer (FlushRealTimeService#run).
LONG_FLUSH = 500
# One that is going on, a whole one, and one more if the log enters a new file: MappedFileQueue#flush writes one file.
TURNS = 3


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

# flushDiskType=SYNC_FLUSH: GroupCommitService waits 10 ms, and then writes whatever is dirty.
SYNC_FLUSH = FlushPolicy(interval=10, least_pages=0, thorough_interval=0, retry_times_over=0)


def commit_log_policy(properties: Mapping[str, str]) -> FlushPolicy:
    """Return when a broker with these settings flushes its commit log.

    Follows CommitLog.FlushRealTimeService#run and CommitLog.GroupCommitService#run.

    >>> commit_log_policy({}) == COMMIT_LOG, commit_log_policy({"flushDiskType": "SYNC_FLUSH"}) == SYNC_FLUSH
    (True, True)
    >>> commit_log_policy({"flushIntervalCommitLog": "100"}).interval
    100
    """
    if properties.get("flushDiskType", "ASYNC_FLUSH") == "SYNC_FLUSH":
        return SYNC_FLUSH
    return COMMIT_LOG._replace(
        interval=int_setting(properties, "flushIntervalCommitLog", COMMIT_LOG.interval),
        least_pages=int_setting(properties, "flushCommitLogLeastPages", COMMIT_LOG.least_pages),
        thorough_interval=int_setting(properties, "flushCommitLogThoroughInterval", COMMIT_LOG.thorough_interval),
    )


def due_after(policy: FlushPolicy = COMMIT_LOG) -> tuple[int, int]:
    """Return after how many ms data is on disk: all but `held_back` bytes, and all of it.

    A turn takes the interval and the time of the disk, for which `LONG_FLUSH` is allowed. No method of RocketMQ: it
    follows from FlushRealTimeService#run.

    >>> due_after(), due_after(SYNC_FLUSH)
    ((3000, 13000), (1530, 1530))
    """
    turns = TURNS * (policy.interval + LONG_FLUSH)
    return turns, policy.thorough_interval + turns


def held_back(policy: FlushPolicy = COMMIT_LOG) -> int:
    """Return how many bytes a turn leaves dirty at most, since they are too few pages (MappedFile#isAbleToFlush).

    >>> held_back(), held_back(SYNC_FLUSH)
    (16383, 0)
    """
    return max(0, policy.least_pages * OS_PAGE_SIZE - 1)


def flushed_at_least(end_before_turns: int, end_before_thorough: int, policy: FlushPolicy = COMMIT_LOG) -> int:
    """Return how much of the commit log must be on disk, by its ends before both times of `due_after`; bytes.

    No method of RocketMQ: it follows from the policy.

    >>> flushed_at_least(1_000_000, 900_000), flushed_at_least(1_000_000, 999_999)
    (983617, 999999)
    """
    return max(end_before_turns - held_back(policy), end_before_thorough)


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
