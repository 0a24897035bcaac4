"""One step of a rebalance: the queues of a client are adapted to its allocation.

Queues that are no longer allocated are dropped after persisting their offset. New queues are taken if the broker locks
them (orderly consumption) and there is a start offset. The next rebalance, up to 20 s later, retries failures. Follows
org.apache.rocketmq.client.impl.consumer.RebalanceImpl#updateProcessQueueTableInRebalance,
#truncateMessageQueueNotMyTopic and RebalancePushImpl#removeUnnecessaryMessageQueue.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from mqreplay.core.message_queue import MessageQueue
from mqreplay.core.process_queue import is_pull_expired
from mqreplay.core.version import CLIENT_4, at_least

UNLOCK_DELAY_TIME = 20_000  # ms
REBALANCE_LATER = 500  # ms


class HeldQueue(NamedTuple):
    """A ProcessQueue in the table; timestamps in epoch ms.

    ``consuming``: a listener works on it right now, and keeps its consume lock for longer than a rebalance
    waits (1 s before 5.2.0, 0.5 s since). ``dropped``: it is pulled and consumed no more, but still in the
    table.
    """

    last_pull_timestamp: int
    last_lock_timestamp: int = 0
    consuming: bool = False
    dropped: bool = False


class RebalanceStep(NamedTuple):
    """The result of the step; each list in order.

    ``added``: queue and the offset to pull from first; ``removed``: dropped and removed, offset persisted;
    ``kept_dropped``: dropped, but their listener is still busy, so still in the table, and in the way of
    taking them again; ``lock_failed`` and ``no_offset``: not taken, for that reason; ``changed``: a new
    allocation is logged and sent to the brokers; ``rebalance_later``: ms after which the client tries
    again, None where it just waits for its turn.
    """

    process_queue_table: Mapping[MessageQueue, HeldQueue]
    added: tuple[tuple[MessageQueue, int], ...]
    removed: tuple[MessageQueue, ...]
    kept_dropped: tuple[MessageQueue, ...]
    lock_failed: tuple[MessageQueue, ...]
    no_offset: tuple[MessageQueue, ...]
    changed: bool
    rebalance_later: int | None


class Dropped(NamedTuple):
    """The table without dropped queues, the removed queues, and those that could not be removed."""

    process_queue_table: Mapping[MessageQueue, HeldQueue]
    removed: tuple[MessageQueue, ...]
    kept_dropped: tuple[MessageQueue, ...]


def update_process_queue_table_in_rebalance(
    topic: str,
    process_queue_table: Mapping[MessageQueue, HeldQueue],
    mq_set: Iterable[MessageQueue],
    next_offsets: Mapping[MessageQueue, int],
    now: int,
    locked: Collection[MessageQueue] | None = None,
    version: str = CLIENT_4,
) -> RebalanceStep:
    """Adapt the table of one topic to the allocation (RebalanceImpl#updateProcessQueueTableInRebalance).

    ``mq_set``: the allocation, taken in this order (Java's is a set's). ``next_offsets``: what
    computePullFromWhere gives for new queues, in messages; below 0 or missing, the queue is not taken.
    ``locked``: the queues the broker locks for this client, None where consumption is not orderly and needs
    none. ``now`` in epoch ms.

    >>> a, b = MessageQueue("T", "b", 0), MessageQueue("T", "b", 1)
    >>> step = update_process_queue_table_in_rebalance("T", {a: HeldQueue(0)}, [b], {b: 7}, now=0)
    >>> step.added == ((b, 7),), step.removed == (a,), step.changed
    (True, True, True)
    """
    wanted = dict.fromkeys(mq_set)
    orderly = locked is not None
    table, removed, kept_dropped = drop_queues(topic, process_queue_table, wanted, now, orderly, version)
    new = [mq for mq in wanted if mq not in table]
    lock_failed = tuple(mq for mq in new if locked is not None and mq not in locked)
    unlocked = set(lock_failed)
    no_offset = tuple(mq for mq in new if mq not in unlocked and next_offsets.get(mq, -1) < 0)
    left_out = unlocked.union(no_offset)
    added = tuple((mq, next_offsets[mq]) for mq in new if mq not in left_out)
    return RebalanceStep(
        {**table, **{mq: HeldQueue(now, now) for mq, _ in added}},
        added,
        removed,
        kept_dropped,
        lock_failed,
        no_offset,
        changed=bool(added or removed),
        rebalance_later=REBALANCE_LATER if lock_failed and at_least(version, "5.0.0") else None,
    )


def drop_queues(
    topic: str,
    process_queue_table: Mapping[MessageQueue, HeldQueue],
    mq_set: Collection[MessageQueue],
    now: int,
    orderly: bool = False,
    version: str = CLIENT_4,
) -> Dropped:
    """First half: drop a topic's queues that are not in mq_set or were not pulled for two minutes.

    (The latter are taken again in the second half, in the same step.) A queue under orderly consumption goes
    only when its listener is done, since 5.2.0 at the latest 20 s after its last lock. ``now`` in epoch ms.
    RebalanceImpl#updateProcessQueueTableInRebalance, RebalancePushImpl#removeUnnecessaryMessageQueue.

    >>> queue = MessageQueue("T", "b", 0)
    >>> drop_queues("T", {queue: HeldQueue(0, consuming=True)}, [], 0, orderly=True).kept_dropped == (queue,)
    True
    """
    table: dict[MessageQueue, HeldQueue] = {}
    removed: list[MessageQueue] = []
    kept_dropped: list[MessageQueue] = []
    for mq, held in process_queue_table.items():
        if mq.topic != topic or (mq in mq_set and not is_pull_expired(held.last_pull_timestamp, now)):
            table[mq] = held
        elif orderly and held.consuming and not _forced(held, now, version):
            table[mq] = held._replace(dropped=True)
            kept_dropped.append(mq)
        else:
            removed.append(mq)
    return Dropped(table, tuple(removed), tuple(kept_dropped))


def truncate_message_queue_not_my_topic(
    process_queue_table: Mapping[MessageQueue, HeldQueue], subscribed: Collection[str]
) -> Dropped:
    """Drop the queues of topics no longer subscribed, at the end of each rebalance.

    Unlike above their offset is not persisted here, their lock is not released, and nothing waits for the
    listener. RebalanceImpl#truncateMessageQueueNotMyTopic.

    >>> truncate_message_queue_not_my_topic({MessageQueue("T", "b", 0): HeldQueue(0)}, ["U"]).process_queue_table
    {}
    """
    table = {mq: held for mq, held in process_queue_table.items() if mq.topic in subscribed}
    return Dropped(table, tuple(mq for mq in process_queue_table if mq not in table), ())


def _forced(held: HeldQueue, now: int, version: str) -> bool:
    return at_least(version, "5.2.0") and now > held.last_lock_timestamp + UNLOCK_DELAY_TIME
