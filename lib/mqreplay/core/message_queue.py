"""Message queues and client ids: names, hashes and order.

Every consumer sorts both lists before it allocates (RebalanceImpl#rebalanceByTopic), so the order is part of
each decision: topic, then broker name, as Java strings; then the queue id by int subtraction, which
overflows.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from mqreplay.core.java import INT_MAX, string_hash, to_int, utf16_key, utf16_units

# ComparableTimSort#MIN_MERGE: a shorter list is sorted by binary insertion alone.
MIN_MERGE = 32


class MessageQueue(NamedTuple):
    """A queue of a topic on a broker, as org.apache.rocketmq.common.message.MessageQueue.

    Tuple equality is MessageQueue#equals; Python's own ``<`` is not RocketMQ's order, see
    sort_message_queues.
    """

    topic: str
    broker_name: str
    queue_id: int

    def __str__(self) -> str:
        """MessageQueue#toString, which the consistent hash takes as the queue's key.

        >>> str(MessageQueue("T", "broker-a", 0))
        'MessageQueue [topic=T, brokerName=broker-a, queueId=0]'
        """
        return f"MessageQueue [topic={self.topic}, brokerName={self.broker_name}, queueId={self.queue_id}]"


def compare_strings(a: str, b: str) -> int:
    """String#compareTo: the difference of the first differing UTF-16 units, else of the lengths in units.

    >>> compare_strings("a", "c"), compare_strings("ab", "a"), compare_strings("\\U0001f600", "\\uffff")
    (-2, 1, -10178)
    """
    if a == b:
        return 0
    units_a, units_b = utf16_units(a), utf16_units(b)
    for unit_a, unit_b in zip(units_a, units_b, strict=False):
        if unit_a != unit_b:
            return unit_a - unit_b
    return len(units_a) - len(units_b)


def compare_message_queues(a: MessageQueue, b: MessageQueue) -> int:
    """MessageQueue#compareTo: negative, 0 or positive; the exact int that Java returns.

    Queue ids more than 2**31 - 1 apart compare the wrong way round, as in Java.

    >>> compare_message_queues(MessageQueue("T", "b", 3), MessageQueue("T", "b", 10))
    -7
    >>> compare_message_queues(MessageQueue("T", "b", 2**31 - 1), MessageQueue("T", "b", -1))
    -2147483648
    """
    return (
        compare_strings(a.topic, b.topic)
        or compare_strings(a.broker_name, b.broker_name)
        or to_int(a.queue_id - b.queue_id)
    )


def message_queue_hash(mq: MessageQueue) -> int:
    """MessageQueue#hashCode, a Java int; it gives HashMap and HashSet their walking order.

    >>> message_queue_hash(MessageQueue("T", "b", 2147483647))
    -2147359626
    """
    result = 31 + string_hash(mq.broker_name)
    result = 31 * result + mq.queue_id
    return to_int(31 * result + string_hash(mq.topic))


def sort_key(mq: MessageQueue) -> tuple[bytes, bytes, int]:
    """A sort key that agrees with MessageQueue#compareTo while queue ids differ by at most 2**31 - 1.

    >>> sort_key(MessageQueue("T", "b", 3)) < sort_key(MessageQueue("T", "b", 10))
    True
    """
    return utf16_key(mq.topic), utf16_key(mq.broker_name), mq.queue_id


def sort_message_queues(mqs: Iterable[MessageQueue]) -> list[MessageQueue]:
    """The queues in the order of Collections.sort, as RebalanceImpl#rebalanceByTopic sorts mq_all.

    Where queue ids overflow, the comparison is not transitive and the answer depends on Java's algorithm,
    which is then followed for lists shorter than 32. (Longer ones fall back to the order without overflow: no
    broker has such ids.)

    >>> sort_message_queues([MessageQueue("T", "b", 10), MessageQueue("T", "a", 11)])[0]
    MessageQueue(topic='T', broker_name='a', queue_id=11)
    """
    queues = list(mqs)
    ids = [mq.queue_id for mq in queues]
    if ids and max(ids) - min(ids) > INT_MAX and len(queues) < MIN_MERGE:
        return _binary_insertion_sort(queues)
    return sorted(queues, key=sort_key)


def sort_client_ids(cids: Iterable[str]) -> list[str]:
    """Client ids in the order of Collections.sort, as Java strings: ``10.0.0.10@1`` before ``10.0.0.1@1``.

    Follows RebalanceImpl#rebalanceByTopic.

    >>> sort_client_ids(["10.0.0.2@1", "10.0.0.1@1", "10.0.0.10@1"])
    ['10.0.0.10@1', '10.0.0.1@1', '10.0.0.2@1']
    """
    return sorted(cids, key=utf16_key)


def _binary_insertion_sort(queues: list[MessageQueue]) -> list[MessageQueue]:
    """java.util.ComparableTimSort for a short list: the first run, then binary insertion of the rest."""
    run = _first_run(queues)
    done = queues[:run]
    if run > 1 and compare_message_queues(queues[1], queues[0]) < 0:
        done.reverse()
    for pivot in queues[run:]:
        left, right = 0, len(done)
        while left < right:
            mid = (left + right) // 2
            if compare_message_queues(pivot, done[mid]) < 0:
                right = mid
            else:
                left = mid + 1
        done.insert(left, pivot)
    return done


def _first_run(queues: list[MessageQueue]) -> int:
    """ComparableTimSort#countRunAndMakeAscending: length of the run the list begins with."""
    if len(queues) < 2:
        return len(queues)
    falling = compare_message_queues(queues[1], queues[0]) < 0
    run = 2
    while run < len(queues) and (compare_message_queues(queues[run], queues[run - 1]) < 0) == falling:
        run += 1
    return run
