"""Resets that a broker of 5.x keeps until the next pull of the queue, which it answers with the offset."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple


class HeldReset(NamedTuple):
    """A reset of one queue: its time (epoch ms) and the offset (messages), None if it is not known."""

    ts: int
    offset: int | None


class MovedPull(NamedTuple):
    """A pull of one queue that can be answered by a reset: the time of the answer (epoch ms), and its next offset."""

    ts: int
    next_begin_offset: int


def are_answered_by_resets(
    resets: Iterable[HeldReset], pulls: Sequence[MovedPull], clock_skew_time: int = 0
) -> list[bool]:
    """Return for each pull of a queue whether one of the resets gave its answer.

    pulls are in order of time; clock_skew_time is the largest difference between the clocks of the resets and of the
    pulls, in ms. A reset replaces one that waits, and the next pull takes it.
    Follows ConsumerOffsetManager#assignResetOffset, #queryThenEraseResetOffset.

    >>> resets = [HeldReset(100, 7), HeldReset(200, 3)]
    >>> are_answered_by_resets(resets, [MovedPull(150, 7), MovedPull(250, 3), MovedPull(350, 3)])
    [True, True, False]
    >>> are_answered_by_resets(resets, [MovedPull(250, 7)])
    [False]
    """
    waiting = sorted(resets, key=lambda reset: reset.ts)
    answered = []
    for pull in pulls:
        surely, perhaps = pull.ts - clock_skew_time, pull.ts + clock_skew_time
        taken = _taken(waiting, pull.next_begin_offset, surely, perhaps)
        answered.append(taken is not None)
        waiting = [reset for reset in waiting[0 if taken is None else taken + 1 :] if reset.ts > surely]
    return answered


def _taken(waiting: Sequence[HeldReset], offset: int, surely: int, perhaps: int) -> int | None:
    """Return the place of the first reset that the pull can have taken: it fits, and no later one replaced it."""
    replaced = -1
    for place, reset in enumerate(waiting):
        if reset.ts <= surely and reset.offset not in (None, offset):
            replaced = place
    fits = (
        place
        for place, reset in enumerate(waiting)
        if place > replaced and reset.ts <= perhaps and reset.offset in (None, offset)
    )
    return next(fits, None)
