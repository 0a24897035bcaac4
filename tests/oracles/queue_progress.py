"""The progress of a group on a queue in an hour, and its lag at the hour's end, by one broker's consumerOffset.json.

Not a rule of RocketMQ, but of mqreplay: DefaultMQAdminExt shows the lag of this moment only.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from mqreplay.core.java import LONG_MAX
from oracles.offset_evidence import OffsetChange, QueueEnd

HOUR_US = 3_600_000_000


class HourProgress(NamedTuple):
    """The progress of a group and queue in a broker's file in the hour that begins at ``hour`` (epoch us).

    All offsets in messages, None: not known. ``first_offset``: before the hour's first change, else after it;
    ``last_offset``: after its last change, None if it vanished; ``min_offset`` and ``max_offset``: of all of the hour;
    ``changes``: how many; ``queue_max_offset``: the queue's end, as last stated in the hour.
    """

    hour: int
    first_offset: int | None
    last_offset: int | None
    min_offset: int | None
    max_offset: int | None
    changes: int
    queue_max_offset: int | None

    @property
    def advance(self) -> int | None:
        """Return the messages from the first to the last offset, negative if it fell; at most Long.MAX_VALUE.

        No method of RocketMQ: mqreplay's own rule.

        >>> HourProgress(0, 9, 5, 5, 9, 1, None).advance, HourProgress(0, -9, LONG_MAX, -9, LONG_MAX, 1, None).advance
        (-4, 9223372036854775807)
        """
        if self.first_offset is None or self.last_offset is None:
            return None
        return max(-LONG_MAX, min(self.last_offset - self.first_offset, LONG_MAX))

    @property
    def lag(self) -> int | None:
        """Return the messages from the last offset to the queue's end; None if one is unknown, or the offset negative.

        No method of RocketMQ: mqreplay's own rule. A broker takes a negative offset for none, so the group goes on
        from elsewhere (ConsumerManageProcessor#queryConsumerOffset).

        >>> HourProgress(0, 5, 9, 5, 9, 1, 12).lag, HourProgress(0, 5, 9, 5, 9, 1, 7).lag
        (3, 0)
        >>> HourProgress(0, 5, -1, -1, 5, 1, 12).lag
        """
        if self.queue_max_offset is None or self.last_offset is None or self.last_offset < 0:
            return None
        return max(0, self.queue_max_offset - self.last_offset)


def progress_by_hour(changes: Iterable[OffsetChange], ends: Sequence[QueueEnd]) -> list[HourProgress]:
    """Return the progress of each hour in which the offset changed, oldest first; instants epoch us, offsets messages.

    ``changes``: of one group, queue and broker; those of one instant count in the order of their previous, then their
    new offset, missing ones first. ``ends``: of the queue. The end that counts is the last one stated, the highest of
    one instant; the instant at which the hour ends belongs to it. It is not known if it was stated before the hour.
    No method of RocketMQ: mqreplay's own rule.

    >>> rows = progress_by_hour([OffsetChange(0, 60_000_000, 4, 9), OffsetChange(0, 90_000_000, 9, 8)],
    ...                         [QueueEnd(70_000_000, 0, 11)])
    >>> [(row.first_offset, row.last_offset, row.max_offset, row.advance, row.lag) for row in rows]
    [(4, 8, 9, 4, 3)]
    """
    hours: dict[int, list[OffsetChange]] = {}
    for change in sorted(changes, key=_in_order):
        hours.setdefault(change.to_ts // HOUR_US * HOUR_US, []).append(change)
    return [_progress(hour, of_hour, ends) for hour, of_hour in hours.items()]


def _progress(hour: int, changes: Sequence[OffsetChange], ends: Iterable[QueueEnd]) -> HourProgress:
    first, last = changes[0], changes[-1]
    offsets = [
        offset for change in changes for offset in (change.previous_offset, change.new_offset) if offset is not None
    ]
    stated = max((end for end in ends if end.ts <= hour + HOUR_US), key=_by_time, default=None)
    return HourProgress(
        hour,
        first.new_offset if first.previous_offset is None else first.previous_offset,
        last.new_offset,
        min(offsets, default=None),
        max(offsets, default=None),
        len(changes),
        None if stated is None or stated.ts < hour else stated.max_offset,
    )


def _in_order(change: OffsetChange) -> tuple[int, bool, int, bool, int]:
    previous, new = change.previous_offset, change.new_offset
    return change.to_ts, previous is not None, previous or 0, new is not None, new or 0


def _by_time(end: QueueEnd) -> tuple[int, bool, int]:
    return end.ts, end.max_offset is not None, end.max_offset or 0
