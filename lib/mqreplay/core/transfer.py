"""The transfer of a pull's messages: through the heap, or directly from the page cache.

With transferMsgByHeap (the default) they are copied into one byte array, and from there into the socket. Without, the
mapped files are written to the channel piece by piece (ManyMessageTransfer), which saves the copies, and the array that
must be collected. Follows PullMessageProcessor#readGetMessageResult (5.x: DefaultPullMessageResultHandler) and
org.apache.rocketmq.broker.pagecache.ManyMessageTransfer. This counts bytes; it measures no time.
"""

from __future__ import annotations

from typing import NamedTuple


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


def copied_bytes_saved(buffer_total_size: int) -> int:
    """CPU-copied bytes that transferMsgByHeap=false saves for one answer; ``buffer_total_size`` in bytes.

    No method of RocketMQ: the difference of the two costs above.

    >>> copied_bytes_saved(1_000)
    2000
    """
    by_heap = transfer_cost(buffer_total_size, 0)
    direct = transfer_cost(buffer_total_size, 0, transfer_msg_by_heap=False)
    return by_heap.copied_bytes - direct.copied_bytes
