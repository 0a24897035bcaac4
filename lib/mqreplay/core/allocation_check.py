"""The checks at the start of every allocation strategy except CONFIG."""

from __future__ import annotations

from collections.abc import Sequence

from mqreplay.core.message_queue import MessageQueue
from mqreplay.words.errors import IllegalArgument


def check(
    current_cid: str | None,
    mq_all: Sequence[MessageQueue] | None,
    cid_all: Sequence[str | None] | None,
) -> tuple[Sequence[MessageQueue], Sequence[str | None], int]:
    """Return the non-empty lists, and the first position of current_cid in cid_all, -1 if it is missing.

    Raises IllegalArgument with RocketMQ's message for the first of current_cid, mq_all, cid_all that is empty or None.
    Follows AbstractAllocateMessageQueueStrategy#check.

    >>> check("c1", [MessageQueue("T", "b", 0)], ["c0", "c1", "c1"])[2]
    1
    >>> check("", [], [])
    Traceback (most recent call last):
    mqreplay.words.errors.IllegalArgument: java.lang.IllegalArgumentException: currentCID is empty
    """
    if not current_cid:
        raise IllegalArgument("currentCID is empty")
    if not mq_all:
        raise IllegalArgument("mqAll is null or mqAll empty")
    if not cid_all:
        raise IllegalArgument("cidAll is null or cidAll empty")
    return mq_all, cid_all, cid_all.index(current_cid) if current_cid in cid_all else -1
