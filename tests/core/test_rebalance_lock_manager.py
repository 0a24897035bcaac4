"""Who gets the lock of a queue from a broker, and for how long."""

from __future__ import annotations

import pytest

from mqreplay.core.message_queue import MessageQueue
from mqreplay.core.rebalance_lock_manager import (
    REBALANCE_LOCK_MAX_LIVE_TIME,
    LockEntry,
    try_lock,
    try_lock_batch,
    unlock_batch,
)

A, B, C = (MessageQueue("T", "b", queue_id) for queue_id in range(3))
LAST = REBALANCE_LOCK_MAX_LIVE_TIME


@pytest.mark.parametrize(
    ("holder", "age", "granted"),
    [
        (None, 0, True),
        ("c", 0, True),
        ("c", LAST, True),
        ("c", LAST + 1, True),  # its own, expired
        ("d", 0, False),
        ("d", LAST, False),  # LockEntry#isExpired: more than 60 s
        ("d", LAST + 1, True),
    ],
)
def test_a_lock_is_refused_only_while_another_client_renews_it(holder: str | None, age: int, granted: bool) -> None:
    entry = None if holder is None else LockEntry(holder, 1000)
    assert try_lock(entry, "c", 1000 + age) == (LockEntry("c", 1000 + age) if granted else None)


def test_queues_of_a_batch_are_decided_one_by_one() -> None:
    table = {A: LockEntry("d", 1000), B: LockEntry("c", 0)}
    locked = try_lock_batch(table, [A, B, C], "c", 2000)
    assert locked.locked == {B, C}
    assert locked.table == {A: LockEntry("d", 1000), B: LockEntry("c", 2000), C: LockEntry("c", 2000)}


def test_a_client_releases_its_own_locks_alone() -> None:
    table = {A: LockEntry("d", 0), B: LockEntry("c", 0), C: LockEntry("c", 0)}
    assert unlock_batch(table, [A, B], "c") == {A: LockEntry("d", 0), C: LockEntry("c", 0)}
