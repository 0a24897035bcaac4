"""The stored offset that a broker answers to QUERY_CONSUMER_OFFSET: ConsumerManageProcessor#queryConsumerOffset.

A group without a stored offset may be answered 0: then the queue is young, and consumeFromWhere does not count.
"""

from __future__ import annotations

from mqreplay.errors import MQBrokerError, OffsetNotFound

SUCCESS = 0
QUERY_NOT_FOUND = 22


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
