"""Locks of queues that a broker gives to the clients of orderly groups: RebalanceLockManager.

A lock is in the broker's memory only: a broker that starts has none. It expires when its client has not renewed it for
60 s; clients renew every 20 s (ConsumeMessageOrderlyService#start). Follows
org.apache.rocketmq.broker.client.rebalance.RebalanceLockManager.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from mqreplay.core.message_queue import MessageQueue

# Default of the system property rocketmq.broker.rebalance.lockMaxLiveTime, in ms.
REBALANCE_LOCK_MAX_LIVE_TIME = 60_000
REBALANCE_LOCK_INTERVAL = 20_000  # ms between renewals; ProcessQueue.REBALANCE_LOCK_INTERVAL


class LockEntry(NamedTuple):
    """The client that has the lock of a queue, and when it got or renewed it (epoch ms)."""

    client_id: str
    last_update_timestamp: int


LockTable = Mapping[MessageQueue, LockEntry]  # the locks of one group


class Locked(NamedTuple):
    """The queues that a request locked, and the locks of the group afterwards."""

    locked: frozenset[MessageQueue]
    table: LockTable


def is_expired(entry: LockEntry, now: int) -> bool:
    """Return whether the lock was not renewed for too long. ``now`` in epoch ms; LockEntry#isExpired.

    >>> is_expired(LockEntry("c", 0), 60_000), is_expired(LockEntry("c", 0), 60_001)
    (False, True)
    """
    return now - entry.last_update_timestamp > REBALANCE_LOCK_MAX_LIVE_TIME


def is_lock_all_expired(table: LockTable, now: int) -> bool:
    """Return whether a group has no unexpired lock. ``now`` in epoch ms; RebalanceLockManager#isLockAllExpired.

    >>> mq = MessageQueue("T", "b", 0)
    >>> is_lock_all_expired({}, 5), is_lock_all_expired({mq: LockEntry("c", 0)}, 60_000)
    (True, False)
    """
    return all(is_expired(entry, now) for entry in table.values())


def try_lock(entry: LockEntry | None, client_id: str, now: int) -> LockEntry | None:
    """Return the lock that the client gets; None if another client's lock refuses it. ``now`` in epoch ms.

    A client gets its own lock also when it has expired. RebalanceLockManager#tryLock.

    >>> try_lock(None, "c", 5), try_lock(LockEntry("d", 0), "c", 5), try_lock(LockEntry("d", 0), "c", 60_001)
    (LockEntry(client_id='c', last_update_timestamp=5), None, LockEntry(client_id='c', last_update_timestamp=60001))
    """
    if entry is None or entry.client_id == client_id or is_expired(entry, now):
        return LockEntry(client_id, now)
    return None


def try_lock_batch(table: LockTable, mqs: Iterable[MessageQueue], client_id: str, now: int) -> Locked:
    """Return what LOCK_BATCH_MQ gives: each queue is decided on its own. ``now`` is in epoch ms.

    Follows RebalanceLockManager#tryLockBatch.

    >>> a, b = MessageQueue("T", "b", 0), MessageQueue("T", "b", 1)
    >>> try_lock_batch({a: LockEntry("d", 0)}, [a, b], "c", 5).locked == {b}
    True
    """
    tried = {mq: try_lock(table.get(mq), client_id, now) for mq in mqs}
    granted = {mq: entry for mq, entry in tried.items() if entry is not None}
    return Locked(frozenset(granted), {**table, **granted})


def lock_quorum(lock_in_strict_mode: bool, total_replicas: int = 1) -> int:
    """Return how many brokers of a name, the asked one among them, must lock a queue before the answer grants it.

    More than 1 only since 5.0, with lockInStrictMode. The asked broker passes on only what it locked itself, and keeps
    that lock also if too few others agree. AdminBrokerProcessor#lockBatchMQ.

    >>> lock_quorum(False, 3), lock_quorum(True), lock_quorum(True, 2), lock_quorum(True, 3)
    (1, 1, 2, 2)
    """
    return total_replicas // 2 + 1 if lock_in_strict_mode else 1


def unlock_batch(table: LockTable, mqs: Iterable[MessageQueue], client_id: str) -> LockTable:
    """Return the locks after UNLOCK_BATCH_MQ: only the client's own ones go. RebalanceLockManager#unlockBatch.

    >>> queue = MessageQueue("T", "b", 0)
    >>> unlock_batch({queue: LockEntry("d", 0)}, [queue], "c"), unlock_batch({queue: LockEntry("c", 0)}, [queue], "c")
    ({MessageQueue(topic='T', broker_name='b', queue_id=0): LockEntry(client_id='d', last_update_timestamp=0)}, {})
    """
    released = frozenset(mqs)
    return {mq: entry for mq, entry in table.items() if mq not in released or entry.client_id != client_id}
