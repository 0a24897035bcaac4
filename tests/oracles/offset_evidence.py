"""Evidence about a queue in a recording: changes of an offset in a broker's file, and bounds of the queue.

The arguments of mqreplay's own rules (standstill, skip, offset_suspect, queue_progress, client_clock, stale_copy, ...).
Offsets are in messages. Instants are epoch microseconds (us), as in the silver tables; durations are ms.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from mqreplay.core.status_windows import HeadPoint
from mqreplay.core.topic_route import MASTER_ID

# More messages than any queue holds. A broker stores any offset, even Long.MAX_VALUE: offsets with a larger distance
# were set, not consumed.
COUNTLESS = 2**53


class OffsetChange(NamedTuple):
    """An offset that differs between two copies of a broker's consumerOffset.json, one after the other.

    ``from_ts``: epoch us of the earlier copy, None if there is none; ``to_ts``: epoch us of the later one, the first
    that shows ``new_offset``. ``previous_offset`` and ``new_offset`` in messages; None: the file has no such entry.
    """

    from_ts: int | None
    to_ts: int
    previous_offset: int | None
    new_offset: int | None


class QueueEnd(NamedTuple):
    """The bounds of a queue, from its master, in messages, which answered at ``ts`` (epoch us).

    ``min_offset`` is the first message's, ``max_offset`` that of the next message to be written; None: not stated.
    Both only rise, so they are at least these from ``ts`` on. They were at most these until ``asked_ts`` (epoch us),
    when the master was asked; None: at ``ts``.
    """

    ts: int
    min_offset: int | None
    max_offset: int | None
    asked_ts: int | None = None


def pull_end(
    broker_id: int | None, request_ts: int, response_ts: int | None, min_offset: int | None, max_offset: int | None
) -> QueueEnd | None:
    """Return what the answer to a pull states about the queue, by its request and response (epoch us).

    Offsets in messages. None unless a master stated ``max_offset``: a slave's queue may end before its master's, and
    would make a correct offset look wrong. Topic statistics of a master count as they are.
    No method of RocketMQ: it only fills the fields (PullMessageResponseHeader).

    >>> pull_end(0, 5_000_000, 5_200_000, 0, 90)
    QueueEnd(ts=5200000, min_offset=0, max_offset=90, asked_ts=5000000)
    >>> pull_end(0, 5_000_000, None, None, 90)
    QueueEnd(ts=5000000, min_offset=None, max_offset=90, asked_ts=5000000)
    >>> pull_end(1, 5_000_000, 5_200_000, 0, 80) is None
    True
    """
    if broker_id != MASTER_ID or max_offset is None:
        return None
    return QueueEnd(request_ts if response_ts is None else response_ts, min_offset, max_offset, request_ts)


def head_of_each_second(ends: Iterable[QueueEnd]) -> list[HeadPoint]:
    """Return (highest ``max_offset`` in messages, last epoch ms) of each second in which one was stated, oldest first.

    The points for status_windows: of ends that do not rise, one of each second is enough.
    No method of RocketMQ: the points are those of kafka-lag-exporter.

    >>> head_of_each_second([QueueEnd(1_900_000, 0, 7), QueueEnd(1_200_000, 0, 9), QueueEnd(2_000_000, 0, None)])
    [(9, 1900)]
    """
    seconds: dict[int, HeadPoint] = {}
    for end in ends:
        if end.max_offset is not None:
            head, ts = seconds.get(end.ts // 1_000_000, (end.max_offset, end.ts // 1000))
            seconds[end.ts // 1_000_000] = max(head, end.max_offset), max(ts, end.ts // 1000)
    return [seconds[second] for second in sorted(seconds)]
