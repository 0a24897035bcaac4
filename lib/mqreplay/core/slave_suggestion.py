"""When a broker suggests its slave to a consumer: if the consumer reads older data than the broker keeps in memory.

The page cache holds the newest data. A pull that is further back than a share of the machine's memory would read the
disk, so the master suggests the slave. The same limit divides pulls into large batches (memory) and small ones (disk).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from mqreplay.core.java import INT_MAX, double_to_long, to_int, to_long
from mqreplay.core.store_settings import int_setting
from mqreplay.core.version import BROKER_4, at_least

SLAVE = "SLAVE"
MAX_PULL_MSG_SIZE = 128 * 1024 * 1024  # bytes in one answer, 5.x


class TransferLimits(NamedTuple):
    """MessageStoreConfig's limits of one pull, in bytes and in messages, with its defaults."""

    max_transfer_bytes_on_message_in_memory: int = 256 * 1024
    max_transfer_count_on_message_in_memory: int = 32
    max_transfer_bytes_on_message_in_disk: int = 64 * 1024
    max_transfer_count_on_message_in_disk: int = 8


def transfer_limits(properties: Mapping[str, str]) -> TransferLimits:
    """Return the limits of a broker with these settings.

    Follows MixAll#properties2Object, with the defaults of MessageStoreConfig.

    >>> transfer_limits({"maxTransferCountOnMessageInDisk": "32"}).max_transfer_count_on_message_in_disk
    32
    """
    of = TransferLimits()
    return TransferLimits(
        int_setting(properties, "maxTransferBytesOnMessageInMemory", of.max_transfer_bytes_on_message_in_memory),
        int_setting(properties, "maxTransferCountOnMessageInMemory", of.max_transfer_count_on_message_in_memory),
        int_setting(properties, "maxTransferBytesOnMessageInDisk", of.max_transfer_bytes_on_message_in_disk),
        int_setting(properties, "maxTransferCountOnMessageInDisk", of.max_transfer_count_on_message_in_disk),
    )


def memory_threshold(total_physical_memory_size: int, access_message_in_memory_max_ratio: int) -> int:
    """Return the number of bytes before the end of the commit log that count as in memory.

    total_physical_memory_size in bytes (StoreUtil.TOTAL_PHYSICAL_MEMORY_SIZE); the ratio in percent,
    default 40. A negative ratio gives a negative threshold, a double too large the largest long. Follows
    DefaultMessageStore#getMessage: ``(long) (memory * (ratio / 100.0))``.

    >>> memory_threshold(16_000_000_000, 40), memory_threshold(7, 40), memory_threshold(1000, -9)
    (6400000000, 2, -90)
    """
    return double_to_long(total_physical_memory_size * (access_message_in_memory_max_ratio / 100.0))


def effective_ratio(access_message_in_memory_max_ratio: int, broker_role: str, version: str = BROKER_4) -> int:
    """Return a broker's ratio in effect, in percent: since 5.1.0 a slave subtracts 10 from its property.

    broker_role is ASYNC_MASTER, SYNC_MASTER or SLAVE. Before 5.1.0 the same line runs before the properties
    are read, and so never for a slave. Follows BrokerStartup#createBrokerController, since 5.1.0
    #buildBrokerController.

    >>> effective_ratio(40, "SLAVE", "5.3.3"), effective_ratio(1, "SLAVE", "5.3.3")
    (30, -9)
    >>> effective_ratio(40, "SLAVE", "4.9.7"), effective_ratio(40, "ASYNC_MASTER", "5.3.3")
    (40, 40)
    """
    if broker_role == SLAVE and at_least(version, "5.1.0"):
        return to_int(access_message_in_memory_max_ratio - 10)
    return access_message_in_memory_max_ratio


def slave_suggestion(
    max_offset_py: int,
    max_phy_offset_pulling: int,
    total_physical_memory_size: int,
    access_message_in_memory_max_ratio: int,
) -> bool:
    """Return whether the answer to a pull suggests the slave: strictly more bytes behind than the threshold.

    All in bytes but the ratio, in percent (see effective_ratio): max_offset_py is the end of the commit log
    when the pull came, max_phy_offset_pulling where the last message that the pull looked at begins. The
    subtraction wraps. Follows DefaultMessageStore#getMessage, setSuggestPullingFromSlave.

    >>> slave_suggestion(1000, 600, 1000, 40), slave_suggestion(1001, 600, 1000, 40)
    (False, True)
    """
    diff = to_long(max_offset_py - max_phy_offset_pulling)
    return diff > memory_threshold(total_physical_memory_size, access_message_in_memory_max_ratio)


def check_in_disk_by_commit_offset(
    offset_py: int,
    max_offset_py: int,
    total_physical_memory_size: int,
    access_message_in_memory_max_ratio: int,
) -> bool:
    """Return whether the message at offset_py counts as on disk: slave_suggestion's limit for one message.

    All in bytes but the ratio, in percent. Follows DefaultMessageStore#checkInDiskByCommitOffset (4.x); 5.x
    has its negation, #estimateInMemByCommitOffset.

    >>> [check_in_disk_by_commit_offset(offset_py, 1000, 1000, 40) for offset_py in (600, 599)]
    [False, True]
    """
    return slave_suggestion(max_offset_py, offset_py, total_physical_memory_size, access_message_in_memory_max_ratio)


def is_the_batch_full(
    size_py: int,
    max_msg_nums: int,
    buffer_total: int,
    message_total: int,
    is_in_disk: bool,
    limits: TransferLimits = TransferLimits(),  # noqa: B008
    version: str = BROKER_4,
) -> bool:
    """Return whether a pull with message_total messages of buffer_total bytes stops before one of size_py bytes.

    max_msg_nums is what the consumer asked for; is_in_disk chooses between the limits. An empty batch
    always takes one message. Sums are Java ints and wrap. Follows DefaultMessageStore#isTheBatchFull; 5.x
    counts batches, which for single messages is the same, and gives no more than 128 MiB.

    >>> is_the_batch_full(100, 32, 0, 0, True), is_the_batch_full(100, 8, 800, 8, False)
    (False, True)
    >>> is_the_batch_full(100, 32, 65436, 7, True), is_the_batch_full(101, 32, 65436, 7, True)
    (False, True)
    """
    if buffer_total == 0 or message_total == 0:
        return False
    if max_msg_nums <= message_total:
        return True
    if at_least(version, "5.0.0") and to_int(buffer_total + size_py) > MAX_PULL_MSG_SIZE:
        return True
    if is_in_disk:
        most_bytes = limits.max_transfer_bytes_on_message_in_disk
        most_messages = limits.max_transfer_count_on_message_in_disk
    else:
        most_bytes = limits.max_transfer_bytes_on_message_in_memory
        most_messages = limits.max_transfer_count_on_message_in_memory
    return to_int(buffer_total + size_py) > most_bytes or message_total > to_int(most_messages - 1)


def can_be_batch(
    message_total: int,
    buffer_total: int,
    last_size: int,
    is_in_disk: bool,
    limits: TransferLimits = TransferLimits(),  # noqa: B008
    version: str = BROKER_4,
) -> bool:
    """Return whether one pull can give so many messages: the batch was not full before the last one.

    The size that the consumer asked for is not looked at. Follows DefaultMessageStore#isTheBatchFull.

    >>> can_be_batch(8, 800, 100, True), can_be_batch(9, 900, 100, True), can_be_batch(1, 1_000_000, 1_000_000, True)
    (True, False, True)
    """
    before = message_total - 1
    is_full = is_the_batch_full(last_size, INT_MAX, buffer_total - last_size, before, is_in_disk, limits, version)
    return not is_full


def next_offset_correction(old_offset: int, new_offset: int, broker_role: str, offset_check_in_slave: bool) -> int:
    """Return the next offset (messages) for a consumer whose offset is out of range.

    A master returns the corrected offset; a slave returns the consumer's own, because it may be behind its
    master, unless offsetCheckInSlave is set. Follows DefaultMessageStore#nextOffsetCorrection.

    >>> next_offset_correction(9, 5, "ASYNC_MASTER", False), next_offset_correction(9, 5, "SLAVE", False)
    (5, 9)
    """
    return old_offset if broker_role == SLAVE and not offset_check_in_slave else new_offset


class TransferCost(NamedTuple):
    """Bytes that one answer costs.

    ``heap_bytes``: allocated on the Java heap, to be collected later. ``copied_bytes``: copied by the CPU before the
    kernel has them. ``sent_bytes``: on the wire. ``writes``: calls of a channel's write, at least.
    """

    heap_bytes: int
    copied_bytes: int
    sent_bytes: int
    writes: int


def transfer_cost(
    buffer_total_size: int, message_count: int, header_size: int = 0, transfer_msg_by_heap: bool = True
) -> TransferCost:
    """The cost of one answer of FOUND (PullMessageProcessor#readGetMessageResult, ManyMessageTransfer#transferTo).

    ``buffer_total_size``: bytes of its messages; ``header_size``: bytes of the encoded response header, length words
    included; ``message_count``: messages, each a buffer of its own. By heap the body is copied once into the array
    and once from it into the buffer that is written, together with the header. From the page cache only the header is
    on the heap and copied, and each buffer is a write of its own, straight from the mapped file.

    >>> transfer_cost(1_000, 4, 100)
    TransferCost(heap_bytes=1100, copied_bytes=2100, sent_bytes=1100, writes=1)
    >>> transfer_cost(1_000, 4, 100, transfer_msg_by_heap=False)
    TransferCost(heap_bytes=100, copied_bytes=100, sent_bytes=1100, writes=5)
    """
    sent = header_size + buffer_total_size
    if transfer_msg_by_heap:
        return TransferCost(sent, 2 * buffer_total_size + header_size, sent, 1)
    return TransferCost(header_size, header_size, sent, 1 + message_count)
