"""Ordered POP: a queue is blocked while earlier messages are neither acknowledged nor visible again.

Follows ConsumerOrderInfoManager (5.3.3) and QueueLevelConsumerManager (5.5.0), which decide alike. The broker keeps one
record a queue, topic and group, in consumerOrderInfo.json. Times in epoch ms, offsets in messages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from mqreplay.core.java import to_int, to_long

NO_COMMIT = -2
ILLEGAL = -1
_BITS = 64  # of commitOffsetBit; Java shifts by the index modulo 64


class OrderInfo(NamedTuple):
    """What a broker knows of the messages that a group last got from a queue (ConsumerOrderInfoManager.OrderInfo).

    ``offset_list`` is as stored (`o`): the first offset, then the distance of each further one from it.
    ``invisible_time`` (`i`) in ms. ``offset_next_visible_time`` (`ot`): epoch ms by offset, where a client changed it.
    ``offset_consumed_count`` (`oc`): earlier deliveries by offset, None for the first batch. Bit i of
    ``commit_offset_bit`` (`cm`): message i is acknowledged.
    """

    attempt_id: str | None
    pop_time: int
    invisible_time: int | None
    offset_list: tuple[int, ...] | None
    offset_next_visible_time: Mapping[int, int] | None = None
    offset_consumed_count: Mapping[int, int] | None = None
    last_consume_timestamp: int = 0
    commit_offset_bit: int = 0

    def queue_offset(self, offset_index: int) -> int:
        """Return the offset of message ``offset_index`` in the queue, in messages (OrderInfo#getQueueOffset).

        >>> OrderInfo(None, 0, 1, (5, 1, 4)).queue_offset(2)
        9
        """
        offsets = self.offset_list or ()
        return offsets[0] if offset_index == 0 else to_long(offsets[0] + offsets[offset_index])

    def is_not_ack(self, offset_index: int) -> bool:
        """Return whether message ``offset_index`` is not acknowledged yet (OrderInfo#isNotAck).

        >>> OrderInfo(None, 0, 1, (5, 1), commit_offset_bit=1).is_not_ack(0)
        False
        """
        return not self.commit_offset_bit >> offset_index % _BITS & 1


class OrderCommit(NamedTuple):
    """The answer of commit_and_next, and the record after it, None if there is none."""

    next_offset: int
    order_info: OrderInfo | None


def update(
    previous: OrderInfo | None,
    attempt_id: str | None,
    pop_time: int,
    invisible_time: int,
    queue_offsets: Sequence[int],
    now: int,
) -> OrderInfo:
    """Return the record after messages at ``queue_offsets`` were handed out; times epoch ms, invisible time in ms.

    A message that was in the record before counts one delivery more, unless the attempt is the same one repeated.
    Follows ConsumerOrderInfoManager#update.

    >>> first = update(None, "a", 1000, 300, [5, 6], 1000)
    >>> first.offset_list, update(first, "b", 2000, 300, [5, 6, 8], 2000).offset_consumed_count
    ((5, 1), {5: 1, 6: 1})
    """
    first = queue_offsets[0]
    offset_list = (first, *(to_long(offset - first) for offset in queue_offsets[1:]))
    info = OrderInfo(attempt_id, pop_time, invisible_time, offset_list, last_consume_timestamp=now)
    if previous is None:
        return info
    counts = previous.offset_consumed_count or {}
    if previous.attempt_id is None or previous.attempt_id != attempt_id:
        before = {previous.queue_offset(index) for index in range(len(previous.offset_list or ()))}
        offsets = [info.queue_offset(index) for index in range(len(offset_list))]
        counts = {offset: to_int(counts.get(offset, 0) + 1) for offset in offsets if offset in before}
    return info._replace(offset_consumed_count=dict(counts))


def check_block(order_info: OrderInfo | None, attempt_id: str | None, invisible_time: int, now: int) -> bool:
    """Return whether a POP gets nothing from the queue at ``now`` (epoch ms), as earlier messages are still invisible.

    ``attempt_id`` and ``invisible_time`` (ms) are those of the request; a repeated attempt is not blocked.
    Follows ConsumerOrderInfoManager#checkBlock, OrderInfo#needBlock.

    >>> info = update(None, "a", 1000, 300, [5, 6], 1000)
    >>> check_block(info, "b", 300, 1299), check_block(info, "a", 300, 1299), check_block(info, "b", 300, 1300)
    (True, False, False)
    """
    if order_info is None or not order_info.offset_list or _is_repeated(order_info, attempt_id):
        return False
    info = after_check(order_info, attempt_id, invisible_time) or order_info
    return any(now < _next_visible_time(info, index) for index in _not_acknowledged(info))


def after_check(order_info: OrderInfo | None, attempt_id: str | None, invisible_time: int) -> OrderInfo | None:
    """Return the record after check_block: one without an invisible time (ms) takes that of the request.

    Follows OrderInfo#needBlock.

    >>> after_check(OrderInfo("a", 1000, None, (5,)), "b", 300).invisible_time
    300
    """
    if order_info is None or not order_info.offset_list or _is_repeated(order_info, attempt_id):
        return order_info
    stored = order_info.invisible_time
    return order_info._replace(invisible_time=invisible_time) if stored is None or stored <= 0 else order_info


def lock_free_timestamp(order_info: OrderInfo, now: int) -> int | None:
    """Return when the broker wakes the clients that wait for the queue, epoch ms, None if it does not.

    It is the visible time of the first message that blocks, or ``now`` if none does. Messages after it may still block.
    Follows OrderInfo#getLockFreeTimestamp.

    >>> lock_free_timestamp(update(None, "a", 1000, 300, [5, 6], 1000), 1100)
    1300
    """
    if not order_info.offset_list:
        return None
    for index in _not_acknowledged(order_info):
        if order_info.invisible_time is None or order_info.invisible_time <= 0:
            return None
        time = _next_visible_time(order_info, index)
        if now < time:
            return time
    return now


def next_offset(order_info: OrderInfo) -> int:
    """Return the offset to commit: that of the first message not acknowledged, or after the last; -2 for no messages.

    Follows OrderInfo#getNextOffset.

    >>> next_offset(update(None, "a", 1000, 300, [5, 6], 1000))
    5
    """
    if not order_info.offset_list:
        return NO_COMMIT
    for index in _not_acknowledged(order_info):
        return order_info.queue_offset(index)
    return to_long(order_info.queue_offset(len(order_info.offset_list) - 1) + 1)


def commit_and_next(order_info: OrderInfo | None, queue_offset: int, pop_time: int) -> OrderCommit:
    """Return what the broker commits after an acknowledgement of one message; pop_time (epoch ms) is the receipt's.

    -1: the message is not in the record; -2: the receipt is of an earlier POP. Then nothing is committed.
    Follows ConsumerOrderInfoManager#commitAndNext.

    >>> info = update(None, "a", 1000, 300, [5, 6], 1000)
    >>> commit_and_next(info, 6, 1000).next_offset, commit_and_next(info, 6, 999).next_offset
    (5, -2)
    >>> commit_and_next(commit_and_next(info, 6, 1000).order_info, 5, 1000).next_offset
    7
    """
    if order_info is None:
        return OrderCommit(to_long(queue_offset + 1), None)
    if not order_info.offset_list:
        return OrderCommit(ILLEGAL, order_info)
    if pop_time != order_info.pop_time:
        return OrderCommit(NO_COMMIT, order_info)
    for index in range(len(order_info.offset_list)):
        if queue_offset == order_info.queue_offset(index):
            bits = to_long(order_info.commit_offset_bit | 1 << index % _BITS)
            acknowledged = order_info._replace(commit_offset_bit=bits)
            return OrderCommit(next_offset(acknowledged), acknowledged)
    return OrderCommit(ILLEGAL, order_info)


def update_next_visible_time(
    order_info: OrderInfo | None, queue_offset: int, pop_time: int, next_visible_time: int
) -> OrderInfo | None:
    """Return the record after a client changed the invisible time of one message; times epoch ms, offset in messages.

    A receipt of an earlier POP has no effect, a message that is not in the record is stored nevertheless.
    Follows ConsumerOrderInfoManager#updateNextVisibleTime.

    >>> info = update_next_visible_time(update(None, "a", 1000, 300, [5], 1000), 5, 1000, 1100)
    >>> check_block(info, "b", 300, 1099), check_block(info, "b", 300, 1100)
    (True, False)
    """
    if order_info is None or pop_time != order_info.pop_time:
        return order_info
    times = {**(order_info.offset_next_visible_time or {}), queue_offset: next_visible_time}
    return order_info._replace(offset_next_visible_time=times)


def _is_repeated(order_info: OrderInfo, attempt_id: str | None) -> bool:
    return order_info.attempt_id is not None and order_info.attempt_id == attempt_id


def _not_acknowledged(order_info: OrderInfo) -> list[int]:
    return [index for index in range(len(order_info.offset_list or ())) if order_info.is_not_ack(index)]


def _next_visible_time(order_info: OrderInfo, index: int) -> int:
    changed = (order_info.offset_next_visible_time or {}).get(order_info.queue_offset(index))
    return to_long(order_info.pop_time + (order_info.invisible_time or 0)) if changed is None else changed
