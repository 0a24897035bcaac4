"""Offsets in the memory of a clustering consumer, and its queries to the broker.

Only the client has the rule that an offset never decreases, and only if its caller asks for it. The broker stores any
offset.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from mqreplay.core.version import CLIENT_4, at_least
from mqreplay.words.errors import MQBrokerError, OffsetNotFound, RocketMQError

READ_FROM_MEMORY = "READ_FROM_MEMORY"
READ_FROM_STORE = "READ_FROM_STORE"
MEMORY_FIRST_THEN_STORE = "MEMORY_FIRST_THEN_STORE"

NO_OFFSET = -1  # nothing known, or the broker has none
ASK_FAILED = -2  # the broker could not be asked
NO_QUEUE = -3  # 5.x, for a queue that is null

Q = TypeVar("Q", bound=Hashable)


def compare_and_increase_only(target: int, value: int) -> tuple[bool, int]:
    """Return (changed, offset afterwards): value replaces target only if it is strictly greater.

    Both in messages. Follows MixAll#compareAndIncreaseOnly.

    >>> compare_and_increase_only(5, 6), compare_and_increase_only(5, 5), compare_and_increase_only(5, 4)
    ((True, 6), (False, 5), (False, 5))
    """
    return (True, value) if value > target else (False, target)


def update_offset(offset_old: int | None, offset: int, increase_only: bool) -> int:
    """Return the offset of a queue after updateOffset; None before the first one, which is always accepted.

    All in messages. Follows RemoteBrokerOffsetStore#updateOffset.

    >>> update_offset(None, 3, True), update_offset(5, 3, True), update_offset(5, 3, False)
    (3, 5, 3)
    """
    if offset_old is None or not increase_only:
        return offset
    return compare_and_increase_only(offset_old, offset)[1]


class RemoteBrokerOffsetStore(Generic[Q]):
    """org.apache.rocketmq.client.consumer.store.RemoteBrokerOffsetStore, without its timer and its network.

    offset_table is queue to offset, in messages.

    >>> store = RemoteBrokerOffsetStore()
    >>> store.update_offset(("T", "b", 0), 7, True)
    >>> store.update_offset(("T", "b", 0), 5, True)
    >>> store.read_offset(("T", "b", 0), READ_FROM_MEMORY, lambda: 9)
    7
    >>> store.read_offset(("T", "b", 0), READ_FROM_STORE, lambda: 5), store.offset_table
    (5, {('T', 'b', 0): 5})
    """

    def __init__(self, version: str = CLIENT_4) -> None:
        """An empty table; version is the client's."""
        self.offset_table: dict[Q, int] = {}
        self._is_5 = at_least(version, "5.0.0")

    def update_offset(self, mq: Q | None, offset: int, increase_only: bool) -> None:
        """Keep an offset, in messages; see the function of that name. A queue that is None is passed over.

        Follows RemoteBrokerOffsetStore#updateOffset.

        >>> store = RemoteBrokerOffsetStore()
        >>> store.update_offset(None, 7, False), store.update_offset("queue", 7, False), store.offset_table
        (None, None, {'queue': 7})
        """
        if mq is not None:
            self.offset_table[mq] = update_offset(self.offset_table.get(mq), offset, increase_only)

    def read_offset(self, mq: Q | None, read_type: str, fetch_consume_offset: Callable[[], int]) -> int:
        """Return the offset of a queue in messages, or NO_OFFSET, ASK_FAILED, NO_QUEUE.

        read_type is a ReadOffsetType; fetch_consume_offset asks the broker: it gives the offset or raises a
        RocketMQError. The broker's offset replaces the stored one, even if it is lower. That the broker has
        no offset (4.x: that it answers with any error) is NO_OFFSET, every other failure ASK_FAILED.
        Follows RemoteBrokerOffsetStore#readOffset.

        >>> store = RemoteBrokerOffsetStore()
        >>> how = (READ_FROM_MEMORY, READ_FROM_STORE, READ_FROM_MEMORY)
        >>> [store.read_offset("queue", each, lambda: 9) for each in how]
        [-1, 9, 9]
        """
        if mq is None:
            return NO_QUEUE if self._is_5 else NO_OFFSET
        if read_type != READ_FROM_STORE:
            kept = self.offset_table.get(mq)
            if kept is not None:
                return kept
            if read_type == READ_FROM_MEMORY:
                return NO_OFFSET
        try:
            broker_offset = fetch_consume_offset()
        except OffsetNotFound:
            return NO_OFFSET
        except MQBrokerError:
            return ASK_FAILED if self._is_5 else NO_OFFSET
        except RocketMQError:
            return ASK_FAILED
        self.update_offset(mq, broker_offset, False)
        return broker_offset

    def remove_offset(self, mq: Q | None) -> None:
        """Forget a queue; None, or one not kept, is passed over. Follows RemoteBrokerOffsetStore#removeOffset.

        >>> RemoteBrokerOffsetStore().remove_offset("queue")
        """
        if mq is not None:
            self.offset_table.pop(mq, None)
