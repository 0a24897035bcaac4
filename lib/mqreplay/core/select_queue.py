"""The queue to which a producer sends the next message.

Queues are taken in turn by a counter of each thread, skipping the broker that just failed, or, with
sendLatencyFaultEnable, those that count as not available. Follows TopicPublishInfo#selectOneMessageQueue,
MQFaultStrategy#selectOneMessageQueue and ThreadLocalIndex (org.apache.rocketmq.client).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import NamedTuple

from mqreplay.core.fault_strategy import FaultItem, is_available, is_reachable, pick_one_at_least
from mqreplay.core.java import INT_MAX, to_int
from mqreplay.core.message_queue import MessageQueue
from mqreplay.core.version import CLIENT_4, at_least
from mqreplay.words.errors import Arithmetic


class Selection(NamedTuple):
    """The queue chosen, and send_which_queue afterwards."""

    mq: MessageQueue
    send_which_queue: int


class FaultSelection(NamedTuple):
    """The queue chosen, and both counters and the table of faults afterwards.

    ``mq`` may be a queue that the route does not have: a broker picked in need is asked for queue ids below
    its write queues.
    """

    mq: MessageQueue
    send_which_queue: int
    which_item_worst: int
    fault_items: Mapping[str, FaultItem]


def increment_and_get(index: int) -> tuple[int, int]:
    """(the counter afterwards, the number to use): a wrapping int, and the same without its sign.

    A thread's first index is random. ThreadLocalIndex#incrementAndGet.

    >>> increment_and_get(2147483647), increment_and_get(4)
    ((-2147483648, 0), (5, 5))
    """
    after = to_int(index + 1)
    return after, after & INT_MAX


def select_one_message_queue(
    message_queue_list: Sequence[MessageQueue], send_which_queue: int, last_broker_name: str | None = None
) -> Selection:
    """Return the next queue in turn, not on the broker that just failed (TopicPublishInfo#selectOneMessageQueue).

    ``last_broker_name`` None: the first try. Where all queues are on that broker, after a full turn the
    next is taken all the same. Raises Arithmetic for an empty list.

    >>> queues = [MessageQueue("T", "a", 0), MessageQueue("T", "a", 1), MessageQueue("T", "b", 0)]
    >>> select_one_message_queue(queues, 2, "a")
    Selection(mq=MessageQueue(topic='T', broker_name='b', queue_id=0), send_which_queue=5)
    """
    if not message_queue_list:
        raise Arithmetic("/ by zero")
    if last_broker_name is not None:
        others = {mq.broker_name for mq in message_queue_list} - {last_broker_name}
        queue, after = _turn(message_queue_list, send_which_queue, others)
        if queue is not None:
            return Selection(queue, after)
        send_which_queue = after
    after, number = increment_and_get(send_which_queue)
    return Selection(message_queue_list[number % len(message_queue_list)], after)


def continues_a_turn(positions: Sequence[int], queues: int) -> list[bool]:
    """Return whether each send continues the turn of a thread that has sent before, by the least number of threads.

    ``positions`` are the places of the sends' queues in the route's list, in order of time; it has this number
    of ``queues``. Each thread has a counter of its own that begins at random, so after place p it takes p + 1
    (TopicPublishInfo#selectOneMessageQueue, ThreadLocalIndex#incrementAndGet). Threads that wait for the same place are
    alike: a send begins another thread only if none waits for its place.

    >>> continues_a_turn([2, 0, 3, 1, 0], 4), continues_a_turn([0, 0, 0], 4)
    ([False, False, True, True, True], [False, False, False])
    >>> continues_a_turn([0, 1, 1], 4)
    [False, True, False]
    """
    waiting = [0] * queues
    continues = []
    for position in positions:
        continues.append(waiting[position] > 0)
        waiting[position] -= continues[-1]
        waiting[(position + 1) % queues] += 1
    return continues


def select_with_faults(
    message_queue_list: Sequence[MessageQueue],
    write_queue_nums: Mapping[str, int],
    send_which_queue: int,
    which_item_worst: int,
    fault_items: Mapping[str, FaultItem],
    now: int,
    last_broker_name: str | None = None,
    version: str = CLIENT_4,
) -> FaultSelection:
    """Return the next queue with sendLatencyFaultEnable before 5.1.4 (MQFaultStrategy#selectOneMessageQueue).

    The first queue in turn whose broker is available now (epoch ms); since 5.1.1 not the one that just failed. If there
    is none: a broker of the better half, also one that just failed, and a queue id below its write queues in
    ``write_queue_nums`` (by broker, writable ones only); if it has none, it is forgotten and the next queue in turn is
    taken. Raises Arithmetic for an empty list.

    >>> queues = [MessageQueue("T", "a", 0), MessageQueue("T", "b", 0)]
    >>> select_with_faults(queues, {"a": 1, "b": 1}, 1, 0, {"a": FaultItem(900, 99)}, now=5).mq.broker_name
    'b'
    """
    skipped = last_broker_name if at_least(version, "5.1.1") else None
    after, number = increment_and_get(send_which_queue)
    for step in range(len(message_queue_list)):
        index = to_int(number + step)
        if index < 0 and index % len(message_queue_list) and at_least(version, "5.1.0"):
            # Its place is negative, and the client catches the exception.
            return FaultSelection(*select_one_message_queue(message_queue_list, after), which_item_worst, fault_items)
        mq = message_queue_list[_position(index, len(message_queue_list))]
        if mq.broker_name != skipped and is_available(fault_items, mq.broker_name, now):
            return FaultSelection(mq, after, which_item_worst, fault_items)
    worst, turn = increment_and_get(which_item_worst) if len(fault_items) > 1 else (which_item_worst, 0)
    not_best_broker = pick_one_at_least(fault_items, now, turn)
    mq, after = select_one_message_queue(message_queue_list, after)
    if not_best_broker is None:
        return FaultSelection(mq, after, worst, fault_items)
    nums = write_queue_nums.get(not_best_broker, -1)
    if nums > 0:
        after, number = increment_and_get(after)
        return FaultSelection(MessageQueue(mq.topic, not_best_broker, number % nums), after, worst, fault_items)
    left = {name: item for name, item in fault_items.items() if name != not_best_broker}
    return FaultSelection(mq, after, worst, left)


def select_with_filters(
    message_queue_list: Sequence[MessageQueue],
    send_which_queue: int,
    fault_items: Mapping[str, FaultItem],
    now: int,
    last_broker_name: str | None = None,
) -> Selection:
    """Return the next queue with sendLatencyFaultEnable since 5.1.4 (MQFaultStrategy#selectOneMessageQueue).

    In turn, never on the broker that just failed: the first whose broker is available now (epoch ms), else
    the first whose broker is reachable, else the next of all. A retry starts at a random
    ``send_which_queue``. Raises Arithmetic for an empty list.

    >>> queues = [MessageQueue("T", "a", 0), MessageQueue("T", "b", 0)]
    >>> select_with_filters(queues, 1, {"b": FaultItem(900, 99)}, now=5, last_broker_name="a").mq.broker_name
    'b'
    """
    brokers = {mq.broker_name for mq in message_queue_list} - {last_broker_name}
    for accepted in (
        {name for name in brokers if is_available(fault_items, name, now)},
        {name for name in brokers if is_reachable(fault_items, name)},
    ):
        queue, send_which_queue = _turn(message_queue_list, send_which_queue, accepted)
        if queue is not None:
            return Selection(queue, send_which_queue)
    return select_one_message_queue(message_queue_list, send_which_queue)


def _turn(
    message_queue_list: Sequence[MessageQueue], index: int, broker_names: Set[str]
) -> tuple[MessageQueue | None, int]:
    """The first queue on one of the brokers within one full turn, and the counter afterwards."""
    for _ in message_queue_list:
        index, number = increment_and_get(index)
        mq = message_queue_list[number % len(message_queue_list)]
        if mq.broker_name in broker_names:
            return mq, index
    return None, index


def _position(index: int, size: int) -> int:
    """``Math.abs(index) % size``, 0 if negative: the absolute value of the smallest int is itself."""
    return 0 if index == -INT_MAX - 1 else abs(index) % size
