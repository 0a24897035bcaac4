"""Skips: a group's pull of a queue begins after a message that no pull of the group received.

Not a rule of RocketMQ, but of mqreplay: a pull begins where an earlier one ended, unless somebody set the offset.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Pull(NamedTuple):
    """A pull of a queue, and its answer.

    ``request_ts`` in epoch us; ``opaque``: the request's number; ``queue_offset`` (messages): where it begins;
    ``next_begin_offset`` (messages): where the answer says to go on, None without an answer; ``max_offset``: the
    queue's end in messages.
    """

    request_ts: int
    queue_offset: int | None
    next_begin_offset: int | None = None
    max_offset: int | None = None
    opaque: int | None = None
    client_id: str | None = None


class Skip(NamedTuple):
    """Messages from offset ``skipped_from`` up to ``skipped_to``, without it, that the pull at ``ts`` (us) skips."""

    skipped_from: int
    skipped_to: int
    ts: int


def skips(pulls: Iterable[Pull]) -> list[Skip]:
    """Return the skips among all pulls of one queue by one group, oldest first; offsets in messages, instants in us.

    Pulls of one instant are ordered by their opaque, none first, then by client. The first pull skips nothing: what
    the group received before the recording is unknown. A pull past the queue's end, which the broker corrects, and one
    whose answer does not state the end skip nothing either.
    No method of RocketMQ: mqreplay's own rule.

    >>> skips([Pull(1, 10, 14, 90), Pull(2, 14, 20, 90), Pull(3, 50, 60, 90)])
    [Skip(skipped_from=20, skipped_to=50, ts=3)]
    >>> skips([Pull(1, 10, 14, 90), Pull(2, 91, 14, 90), Pull(3, 14, 20, 90)])
    []
    """
    found: list[Skip] = []
    reached: int | None = None
    for pull in sorted(pulls, key=_in_order):
        begin, end = pull.queue_offset, pull.max_offset
        if begin is not None and reached is not None and end is not None and reached < begin <= end:
            found.append(Skip(reached, begin, pull.request_ts))
        offsets = [offset for offset in (reached, begin, pull.next_begin_offset) if offset is not None]
        reached = max(offsets, default=None)
    return found


def _in_order(pull: Pull) -> tuple[int, bool, int, str]:
    return pull.request_ts, pull.opaque is not None, pull.opaque or 0, pull.client_id or ""
