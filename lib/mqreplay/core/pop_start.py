"""The offset from which a broker hands out the messages of a queue to a POP group.

A stored offset is used; a group without one starts at pop_init_offset. A reset that waits for the group comes before
both.
"""

from __future__ import annotations

from mqreplay.core.java import to_long
from mqreplay.core.retry_topic import is_retry_topic
from mqreplay.core.version import at_least

NO_OFFSET = -1
INIT_MODE_MIN = 0  # ConsumeInitMode.MIN; 1 is MAX


def pop_init_offset(
    topic: str,
    init_mode: int,
    min_offset_in_queue: int,
    max_offset_in_queue: int,
    first_message_in_memory: bool,
    init_pop_offset_by_check_msg_in_mem: bool = True,
    version: str = "5.3.3",
) -> int:
    """Return where a group without an offset starts, in messages. The broker commits it.

    Follows PopMessageProcessor#getInitOffset.
    ``init_mode``: 0 the first message, else the last one, which is handed out too. A queue that lost nothing yet and
    whose first message (offset 0) is still in memory starts at 0 in both modes, if the broker's setting allows it.
    Before 5.3.1 a retry topic is no exception to the mode, before 5.1.4 memory does not matter.

    >>> pop_init_offset("T", 0, 5, 90, False), pop_init_offset("T", 1, 5, 90, False)
    (5, 89)
    >>> pop_init_offset("T", 1, 0, 90, True)
    0
    >>> pop_init_offset("%RETRY%g_T", 1, 5, 90, False), pop_init_offset("%RETRY%g_T", 1, 5, 90, False, version="5.3.0")
    (5, 89)
    """
    if init_mode == INIT_MODE_MIN or (is_retry_topic(topic) and at_least(version, "5.3.1")):
        return min_offset_in_queue
    by_memory = init_pop_offset_by_check_msg_in_mem and at_least(version, "5.1.4")
    if by_memory and min_offset_in_queue <= 0 and first_message_in_memory:
        return 0
    return max(to_long(max_offset_in_queue - 1), 0)


def pop_offset(
    committed_offset: int,
    init_offset: int,
    reset_offset: int | None = None,
    buffer_offset: int = NO_OFFSET,
) -> int:
    """Return the offset at which a broker with revive topics begins to read, in messages.

    Follows PopMessageProcessor#getPopOffset.
    ``committed_offset``: below 0 for none; ``reset_offset``: a reset that waits, None for none; ``buffer_offset``: the
    offset after the last checkpoint in the buffer, below 0 for none. With enablePopBufferMerge the buffer can be ahead
    of the committed offset.

    >>> pop_offset(7, 0), pop_offset(-1, 3), pop_offset(7, 0, buffer_offset=9), pop_offset(7, 0, 2, 9)
    (7, 3, 9, 2)
    """
    if reset_offset is not None:
        return reset_offset
    offset = committed_offset if committed_offset >= 0 else init_offset
    return max(buffer_offset, offset) if buffer_offset >= 0 else offset


def kv_pop_offset(
    committed_offset: int,
    pull_offset: int | None,
    init_offset: int,
    reset_offset: int | None = None,
    fifo: bool = False,
    version: str = "5.3.3",
) -> int:
    """Return the same for a broker with popConsumerKVServiceEnable, in messages (PopConsumerService#getPopOffset).

    ``pull_offset``: the offset handed out, None for none; the committed one takes its place. An ordered group
    (``fifo``) always starts at its committed offset since 5.3.4.

    >>> kv_pop_offset(7, 9, 0), kv_pop_offset(7, None, 0), kv_pop_offset(-1, None, 3), kv_pop_offset(7, 9, 0, 2)
    (9, 7, 3, 2)
    >>> kv_pop_offset(7, 9, 0, fifo=True), kv_pop_offset(7, 9, 0, fifo=True, version="5.5.0")
    (9, 7)
    """
    if reset_offset is not None:
        return reset_offset
    by_commit = pull_offset is None or (fifo and at_least(version, "5.3.4"))
    offset = committed_offset if by_commit or pull_offset is None else pull_offset
    return offset if offset >= 0 else init_offset
