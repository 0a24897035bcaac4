"""The broker's table of consumer offsets, and its answer to QUERY_CONSUMER_OFFSET.

It stores any offset, higher or lower. A group without a stored offset may be answered 0: then the queue is young, and
consumeFromWhere does not count (ConsumerManageProcessor#queryConsumerOffset).
"""

from __future__ import annotations

from collections.abc import Mapping

from mqreplay.words.errors import MQBrokerError, OffsetNotFound

TOPIC_GROUP_SEPARATOR = "@"

OffsetTable = dict[str, dict[int, int]]
SUCCESS = 0
QUERY_NOT_FOUND = 22


def topic_at_group(topic: str, group: str) -> str:
    """Return the table's key for a topic and a group; neither is checked. Follows ConsumerOffsetManager#commitOffset.

    >>> topic_at_group("%RETRY%g", "g")
    '%RETRY%g@g'
    """
    return f"{topic}{TOPIC_GROUP_SEPARATOR}{group}"


def commit_offset(offset_table: OffsetTable, group: str, topic: str, queue_id: int, offset: int) -> int | None:
    """Store an offset (messages), higher or lower. Return the replaced offset, None if there was none.

    RocketMQ warns of a lower one ("[NOTIFYME]update consumer offset less than store"), and stores it.
    Follows ConsumerOffsetManager#commitOffset.

    >>> table: OffsetTable = {}
    >>> commit_offset(table, "g", "T", 0, 7), commit_offset(table, "g", "T", 0, 5), table
    (None, 7, {'T@g': {0: 5}})
    """
    queues = offset_table.setdefault(topic_at_group(topic, group), {})
    before = queues.get(queue_id)
    queues[queue_id] = offset
    return before


def query_offset(offset_table: Mapping[str, Mapping[int, int]], group: str, topic: str, queue_id: int) -> int:
    """Return the stored offset in messages; -1 if there is none. Follows ConsumerOffsetManager#queryOffset.

    >>> query_offset({"T@g": {0: 5}}, "g", "T", 0), query_offset({"T@g": {0: 5}}, "g", "T", 1)
    (5, -1)
    """
    return offset_table.get(topic_at_group(topic, group), {}).get(queue_id, -1)


def query_consumer_offset(
    offset: int, min_offset: int, first_is_in_memory: bool, set_zero_if_not_found: bool | None = None
) -> int | None:
    """Return the offset of the answer (messages), None for QUERY_NOT_FOUND.

    Follows ConsumerManageProcessor#queryConsumerOffset.

    ``offset`` is the entry of ConsumerOffsetManager (below 0: none), ``min_offset`` the queue's first offset.
    ``first_is_in_memory``: what the store says of the message at offset 0. 4.x asks checkInDiskByConsumeOffset, which
    takes an empty queue for one in memory; 5.x asks checkInMemByConsumeOffset, which does not.
    ``set_zero_if_not_found`` is the header's field, which only 5.x has; None: not set.

    >>> query_consumer_offset(7, 0, False), query_consumer_offset(-1, 0, True), query_consumer_offset(-1, 5, True)
    (7, 0, None)
    """
    if offset >= 0:
        return offset
    if set_zero_if_not_found is False:
        return None
    return 0 if min_offset <= 0 and first_is_in_memory else None


def offset_of_answer(code: int, offset: int | None) -> int:
    """Return the stored offset (messages) that a client reads in the answer to its QUERY_CONSUMER_OFFSET.

    Raises OffsetNotFound for QUERY_NOT_FOUND, and MQBrokerError for every other code. 4.x knows only the second; its
    offset store treats both alike. Follows MQClientAPIImpl#queryConsumerOffset.

    >>> offset_of_answer(0, 7)
    7
    """
    if code == SUCCESS and offset is not None:
        return offset
    raise (OffsetNotFound if code == QUERY_NOT_FOUND else MQBrokerError)
