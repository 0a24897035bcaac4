"""ProcessQueue: the messages of a queue in a consumer between pull and commit.

Messages pulled wait in a tree by queue offset. Concurrent consumption removes them in any order, and the
offset to commit is the smallest one still waiting, so one stuck message blocks the whole queue. Orderly
consumption takes them from the front into a second tree, and commits, rolls back or returns what it took.
Follows org.apache.rocketmq.client.impl.consumer.ProcessQueue; every int is a Java long, and wraps like one.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from mqreplay.core.java import to_long
from mqreplay.core.java_numbers import parse_long
from mqreplay.core.version import CLIENT_4, at_least
from mqreplay.words.errors import IllegalArgument, NoSuchElement, NullPointer

REBALANCE_LOCK_MAX_LIVE_TIME = 30_000  # ms
PULL_MAX_IDLE_TIME = 120_000  # ms


class PulledMessage(NamedTuple):
    """The fields of a MessageExt that ProcessQueue uses.

    ``queue_offset`` in messages; ``body_size`` in bytes, None for a message without a body; ``max_offset``
    the property MAX_OFFSET that the pull added (the queue's end, in messages, as text), or None.
    """

    queue_offset: int
    body_size: int | None
    max_offset: str | None = None


class _OffsetTree:
    """A java.util.TreeMap from queue offset to message, as far as ProcessQueue uses it."""

    def __init__(self) -> None:
        """Empty."""
        self.messages: dict[int, PulledMessage] = {}
        self.offsets: list[int] = []

    def put(self, msg: PulledMessage) -> bool:
        """Whether the offset was not there before; the message replaces what was."""
        new = msg.queue_offset not in self.messages
        self.messages[msg.queue_offset] = msg
        if new:
            insort(self.offsets, msg.queue_offset)
        return new

    def remove(self, offset: int) -> PulledMessage | None:
        """The message removed, None where the offset is not there."""
        msg = self.messages.pop(offset, None)
        if msg is not None:
            del self.offsets[bisect_left(self.offsets, offset)]
        return msg

    def values(self) -> list[PulledMessage]:
        """The messages by offset."""
        return [self.messages[offset] for offset in self.offsets]

    def clear(self) -> None:
        """Forget all."""
        self.messages.clear()
        self.offsets.clear()


class ProcessQueue:
    """The state of one queue in one consumer; each method is the method of ProcessQueue.java of that name.

    ``msg_count`` and ``msg_size`` (bytes) are counters of their own, as in Java: they may part from the
    trees, and flow control believes them. ``version`` is the client's; before 5.3.2 a message without a body
    is a NullPointerException.

    >>> pq = ProcessQueue()
    >>> pq.put_message([PulledMessage(7, 10), PulledMessage(8, 10), PulledMessage(9, 10, "12")])
    True
    >>> pq.remove_message([PulledMessage(8, 10)]), pq.remove_message([PulledMessage(7, 10)]), pq.msg_acc_cnt
    (7, 9, 3)
    """

    def __init__(self, version: str = CLIENT_4) -> None:
        """Empty, as a rebalance makes it; version is the client's."""
        self.version = version
        self.msg_count = 0
        self.msg_size = 0
        self.queue_offset_max = 0
        self.msg_acc_cnt = 0
        self.consuming = False
        self._tree = _OffsetTree()
        self._taken = _OffsetTree()

    def put_message(self, msgs: Sequence[PulledMessage]) -> bool:
        """Take in pulled messages; True when the consumer must now be set to work (ProcessQueue#putMessage).

        queue_offset_max becomes the last new offset of the call, not the largest. msg_acc_cnt (messages behind
        the queue's end) is refreshed from the last message alone, and only by a positive number. Raises
        NumberFormat for a max_offset that is no number, and before 5.3.2 NullPointer for a missing body: the
        state then stays as far as it got.

        >>> ProcessQueue().put_message([])
        False
        """
        new = 0
        for msg in msgs:
            if self._tree.put(msg):
                new += 1
                self.queue_offset_max = msg.queue_offset
                self.msg_size = to_long(self.msg_size + self._size(msg))
        self.msg_count += new
        dispatch_to_consume = bool(self._tree.offsets) and not self.consuming
        self.consuming = self.consuming or dispatch_to_consume
        if msgs and msgs[-1].max_offset is not None:
            acc_total = to_long(parse_long(msgs[-1].max_offset) - msgs[-1].queue_offset)
            if acc_total > 0:
                self.msg_acc_cnt = acc_total
        return dispatch_to_consume

    def remove_message(self, msgs: Iterable[PulledMessage]) -> int:
        """Drop consumed messages; the queue offset to commit, or -1 (ProcessQueue#removeMessage).

        -1 if nothing was waiting; else the smallest offset still waiting; with none left, queue_offset_max
        + 1. The size subtracted is that of the argument. Before 5.3.2 a message without a body
        that was waiting ends the call early: it is gone from the tree, is still counted, and the answer is
        queue_offset_max + 1.

        >>> ProcessQueue().remove_message([])
        -1
        """
        if not self._tree.offsets:
            return -1
        removed = 0
        for msg in msgs:
            if self._tree.remove(msg.queue_offset) is not None:
                removed += 1
                try:
                    self.msg_size = to_long(self.msg_size - self._size(msg))
                except NullPointer:  # removeMessage logs any Throwable and returns what it has
                    return to_long(self.queue_offset_max + 1)
        self.msg_count -= removed
        if self.msg_count == 0:
            self.msg_size = 0
        return self._tree.offsets[0] if self._tree.offsets else to_long(self.queue_offset_max + 1)

    def take_messages(self, batch_size: int) -> list[PulledMessage]:
        """The next batch_size messages by offset, for orderly consumption (ProcessQueue#takeMessages).

        They wait in a second tree for commit or rollback. Taking nothing ends the consuming state, so that
        the next put_message asks for work again. Raises IllegalArgument for a negative batch_size.

        >>> pq = ProcessQueue()
        >>> pq.put_message([PulledMessage(2, 1), PulledMessage(1, 1)])
        True
        >>> pq.take_messages(1)
        [PulledMessage(queue_offset=1, body_size=1, max_offset=None)]
        """
        if batch_size < 0:
            raise IllegalArgument(f"Illegal Capacity: {batch_size}")
        messages = self._tree.values()[:batch_size]
        for msg in messages:
            self._tree.remove(msg.queue_offset)
            self._taken.put(msg)
        if not messages:
            self.consuming = False
        return messages

    def commit(self) -> int:
        """The offset after the last message taken; what was taken is done (ProcessQueue#commit).

        Raises NoSuchElement where nothing was taken; before 5.3.2 NullPointer for a taken message without a
        body while others are counted: the count is then already lower, and the messages stay taken.

        >>> pq = ProcessQueue()
        >>> pq.put_message([PulledMessage(5, 1)]) and len(pq.take_messages(1)) and pq.commit()
        6
        """
        if not self._taken.offsets:
            raise NoSuchElement
        offset = self._taken.offsets[-1]
        self.msg_count -= len(self._taken.offsets)
        if self.msg_count == 0:
            self.msg_size = 0
        else:
            for msg in self._taken.values():
                self.msg_size = to_long(self.msg_size - self._size(msg))
        self._taken.clear()
        return to_long(offset + 1)

    def rollback(self) -> None:
        """Put back what was taken, in place of what waits at the same offset (ProcessQueue#rollback).

        >>> pq = ProcessQueue()
        >>> pq.put_message([PulledMessage(5, 1)]) and len(pq.take_messages(1)) and pq.rollback()
        >>> pq.tree()
        [5]
        """
        for msg in self._taken.values():
            self._tree.put(msg)
        self._taken.clear()

    def make_message_to_consume_again(self, msgs: Iterable[PulledMessage]) -> None:
        """Put these messages back, whether taken or not (ProcessQueue#makeMessageToConsumeAgain).

        No counter moves: a message that was never pulled is then consumed without being counted.

        >>> pq = ProcessQueue()
        >>> pq.make_message_to_consume_again([PulledMessage(3, 1)])
        >>> pq.tree(), pq.msg_count
        ([3], 0)
        """
        for msg in msgs:
            self._taken.remove(msg.queue_offset)
            self._tree.put(msg)

    def clear(self) -> None:
        """Forget all messages; consuming and msg_acc_cnt stay (ProcessQueue#clear).

        >>> ProcessQueue().clear()
        """
        self._tree.clear()
        self._taken.clear()
        self.msg_count = self.msg_size = self.queue_offset_max = 0

    def max_span(self) -> int:
        """Largest minus smallest waiting offset, in messages; 0 for none (ProcessQueue#getMaxSpan).

        >>> ProcessQueue().max_span()
        0
        """
        return to_long(self._tree.offsets[-1] - self._tree.offsets[0]) if self._tree.offsets else 0

    def has_temp_message(self) -> bool:
        """Whether messages wait, those taken not counted (ProcessQueue#hasTempMessage).

        >>> ProcessQueue().has_temp_message()
        False
        """
        return bool(self._tree.offsets)

    def tree(self) -> list[int]:
        """Waiting queue offsets, ascending: ProcessQueue#msgTreeMap.

        >>> ProcessQueue().tree()
        []
        """
        return list(self._tree.offsets)

    def consuming_tree(self) -> list[int]:
        """Queue offsets taken and not yet committed, ascending: ProcessQueue#consumingMsgOrderlyTreeMap.

        >>> ProcessQueue().consuming_tree()
        []
        """
        return list(self._taken.offsets)

    def _size(self, msg: PulledMessage) -> int:
        if msg.body_size is None and not at_least(self.version, "5.3.2"):
            raise NullPointer
        return msg.body_size or 0


def is_lock_expired(
    last_lock_timestamp: int, now: int, rebalance_lock_max_live_time: int = REBALANCE_LOCK_MAX_LIVE_TIME
) -> bool:
    """Whether a lock is too old for its client to consume under it; all in ms (ProcessQueue#isLockExpired).

    The client gives a lock 30 s where the broker holds it 60 s, so it stops before another may start.

    >>> is_lock_expired(0, 30_000), is_lock_expired(0, 30_001)
    (False, True)
    """
    return now - last_lock_timestamp > rebalance_lock_max_live_time


def is_pull_expired(last_pull_timestamp: int, now: int, pull_max_idle_time: int = PULL_MAX_IDLE_TIME) -> bool:
    """Whether a rebalance drops a queue for want of pulls; all in ms (ProcessQueue#isPullExpired).

    >>> is_pull_expired(0, 120_000), is_pull_expired(0, 120_001)
    (False, True)
    """
    return now - last_pull_timestamp > pull_max_idle_time
