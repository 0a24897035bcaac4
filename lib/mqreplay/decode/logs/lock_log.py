"""lock.log: lock requests of orderly clients. Source: RebalanceLockManager.

Renewals of a lock (every 20 s) leave no line: the log shows when a lock began, not how long it was held.
"""

from __future__ import annotations

import re
from typing import Final, Literal, NamedTuple

from mqreplay.decode.logs.java_text import NAME, QUEUE, queue_of
from mqreplay.decode.message_queue import MessageQueue
from mqreplay.errors import DecodeError


class LockLine(NamedTuple):
    """A lock or unlock request for a queue; ``other`` is the client that holds or held the lock."""

    kind: Literal["granted", "refused", "unlocked"]
    group: str
    client_id: str
    queue: MessageQueue
    other: str | None


_FLAGS: Final = re.ASCII | re.DOTALL
_TRY: Final = "tryLock(?:Batch)?"
_FREE: Final = re.compile(
    rf"{_TRY}, message queue not locked, I got it\. Group: ({NAME}) NewClientId: ({NAME}) ({QUEUE})", _FLAGS
)
_EXPIRED: Final = re.compile(
    rf"{_TRY}, message queue lock expired, I got it\. "
    rf"Group: ({NAME}) OldClientId: ({NAME}) NewClientId: ({NAME}) ({QUEUE})",
    _FLAGS,
)
_REFUSED: Final = re.compile(
    rf"{_TRY}, message queue locked by other client\. "
    rf"Group: ({NAME}) OtherClientId: ({NAME}) NewClientId: ({NAME}) ({QUEUE})",
    _FLAGS,
)
_UNLOCKED: Final = re.compile(rf"unlockBatch, Group: ({NAME}) ({QUEUE}) ({NAME})", _FLAGS)
_OF_5: Final = "RebalanceLockManager#"
STARTS: Final = ("tryLock", "unlockBatch", _OF_5)
_FREE_5: Final = re.compile(
    rf"{_OF_5}{_TRY}: lock a message (?:queue )?which has not been locked yet, group=({NAME}), "
    rf"clientId=({NAME}), mq=({QUEUE})",
    _FLAGS,
)
_EXPIRED_5: Final = re.compile(
    rf"{_OF_5}{_TRY}: try to lock a expired message queue, group=({NAME}), mq=({QUEUE}), old client id=({NAME}), "
    rf"new client id=({NAME})",
    _FLAGS,
)
_REFUSED_5: Final = re.compile(
    rf"{_OF_5}{_TRY}: message queue has been locked by other client, group=({NAME}), mq=({QUEUE}), "
    rf"locked client id=({NAME}), current client id=({NAME})",
    _FLAGS,
)
_UNLOCKED_5: Final = re.compile(
    rf"{_OF_5}unlockBatch: unlock mq, group=({NAME}), clientId=({NAME}), mqs=({QUEUE})", _FLAGS
)


def read_lock_line(message: str) -> LockLine | None:
    """Return the fact in a message of lock.log; None for any other message.

    Raises:
        DecodeError: bad_queue.

    >>> line = read_lock_line("unlockBatch, Group: g MessageQueue [topic=t, brokerName=b, queueId=1] c")
    >>> line.kind, line.client_id, line.queue.queue_id
    ('unlocked', 'c', 1)
    """
    if not message.startswith(STARTS):
        return None
    if match := _FREE.fullmatch(message) or _FREE_5.fullmatch(message):
        return LockLine("granted", match[1], match[2], queue_of(match[3]), None)
    if match := _UNLOCKED.fullmatch(message):
        return LockLine("unlocked", match[1], match[3], queue_of(match[2]), None)
    if match := _UNLOCKED_5.fullmatch(message):
        return LockLine("unlocked", match[1], match[2], queue_of(match[3]), None)
    if match := _EXPIRED.fullmatch(message):
        return LockLine("granted", match[1], match[3], queue_of(match[4]), match[2])
    if match := _EXPIRED_5.fullmatch(message):
        return LockLine("granted", match[1], match[4], queue_of(match[2]), match[3])
    if match := _REFUSED.fullmatch(message):
        return LockLine("refused", match[1], match[3], queue_of(match[4]), match[2])
    if match := _REFUSED_5.fullmatch(message):
        return LockLine("refused", match[1], match[4], queue_of(match[2]), match[3])
    if " I got it. " in message or " locked by other client. Group" in message:
        raise DecodeError("bad_message", f"cut, or not RocketMQ's: {message[:100]!r}")
    return None
