"""Suspect queues: their offset did not only rise within the bounds of the queue.

Not a rule of RocketMQ, but of mqreplay: all other queues have no break, and are not judged further.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from oracles.offset_evidence import OffsetChange, QueueEnd

Reason = Literal["vanished", "fell", "above max_offset", "below min_offset"]


def suspect_reasons(changes: Iterable[OffsetChange], ends: Sequence[QueueEnd]) -> set[Reason]:
    """Return why the offset of a queue and group is suspect, by the changes of all brokers' files; empty if it is not.

    ``vanished``: the entry is gone. ``fell``: below the offset before. ``above max_offset``: above the end that the
    master was asked for first at or after the copy that shows it; a queue's end only rises. ``below min_offset``: below
    the beginning stated last at or before the copy before, by which the change may have been made. Of several
    statements of one instant the strictest counts. Offsets in messages, instants in epoch us.
    No method of RocketMQ: mqreplay's own rule.

    >>> suspect_reasons([OffsetChange(0, 5, 10, 20), OffsetChange(5, 9, 20, 15)], [])
    {'fell'}
    >>> suspect_reasons([OffsetChange(0, 5, 10, 20)], [QueueEnd(4, 0, 18), QueueEnd(6, 0, 19), QueueEnd(7, 0, 25)])
    {'above max_offset'}
    """
    found: set[Reason] = set()
    for change in changes:
        new = change.new_offset
        if new is None:
            found.add("vanished")
            continue
        if change.previous_offset is not None and new < change.previous_offset:
            found.add("fell")
        began_ts = change.to_ts if change.from_ts is None else change.from_ts
        highs = [(end.ts if end.asked_ts is None else end.asked_ts, end.max_offset) for end in ends]
        after = [(ts, high) for ts, high in highs if high is not None and ts >= change.to_ts]
        before = [(end.ts, end.min_offset) for end in ends if end.min_offset is not None and end.ts <= began_ts]
        if after and new > min(after)[1]:
            found.add("above max_offset")
        if before and new < max(before)[1]:
            found.add("below min_offset")
    return found
