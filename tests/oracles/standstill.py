"""Standstills: a group's offset of a queue does not change while messages wait.

Not a rule of RocketMQ, but of mqreplay: its client stores as offset the smallest one that is not yet consumed
(ProcessQueue#removeMessage), so one message whose processing never finishes blocks its queue.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from mqreplay.core.java import LONG_MAX
from oracles.offset_evidence import OffsetChange, QueueEnd

USUAL_STEPS = 3  # without commits, a standstill is longer than this number of usual intervals between two pulls


class OffsetStatement(NamedTuple):
    """An offset (messages) of the group, stated at ``ts`` (epoch us) by a client, or by the master's file (None)."""

    ts: int
    offset: int
    client_id: str | None = None


class Standstill(NamedTuple):
    """A time span in which the offset did not change and messages waited.

    ``offset`` (messages) was set at ``since_ts``; messages waited from ``from_ts`` to ``to_ts`` (epoch us), at most
    ``waiting`` of them; ``arrived`` is how many of them came in that time.
    """

    offset: int
    since_ts: int
    from_ts: int
    to_ts: int
    waiting: int
    arrived: int


def standstills(
    commits: Sequence[OffsetStatement],
    pulls: Sequence[OffsetStatement],
    changes: Sequence[OffsetChange],
    ends: Sequence[QueueEnd],
    stuck_ms: int,
    last_copy_ts: int | None = None,
) -> list[Standstill]:
    """Return the standstills of one queue and group of ``stuck_ms`` and longer, oldest first.

    ``commits``: what clients asked brokers to store (UPDATE_CONSUMER_OFFSET); ``pulls``: the commit offsets that pulls
    carry; ``changes`` and ``last_copy_ts`` (epoch us): changes of the master's consumerOffset.json and its last copy;
    ``ends``: the queue's ends. Each in any order, instants epoch us, offsets messages.

    With commits, an offset lasts until another one is stated, or until the last end behind which messages waited. With
    none, it lasts as long as copies and pulls show it, since it may change at any time between two of them; and a
    standstill takes longer then (`least_standstill_ms`). Both bounds of a length count in whole ms.
    No method of RocketMQ: mqreplay's own rule.

    >>> commits = [OffsetStatement(0, 5, "c"), OffsetStatement(60_000_000, 5, "c"), OffsetStatement(90_000_000, 6, "c")]
    >>> standstills(commits, [], [], [QueueEnd(10_000_000, 0, 9)], 30_000)
    [Standstill(offset=5, since_ts=0, from_ts=10000000, to_ts=90000000, waiting=4, arrived=0)]
    >>> standstills([], commits[:2], [], [QueueEnd(10_000_000, 0, 9)], 30_000)
    []
    """
    of_file = [OffsetStatement(change.to_ts, change.new_offset) for change in changes if change.new_offset is not None]
    statements = [*commits, *pulls, *of_file]
    changed = changed_statements(statements)
    shown = [] if commits else _shown(statements, changes, last_copy_ts)
    least_ms = stuck_ms if commits else least_standstill_ms([pull.ts for pull in pulls], stuck_ms)
    found: list[Standstill] = []
    for number, stated in enumerate(changed, 1):
        next_ts = changed[number].ts if number < len(changed) else None
        until_ts = next_ts if commits else _last_shown(stated, next_ts, shown)
        if until_ts is not None and _length_ms(stated.ts, until_ts) < least_ms:
            continue
        still = _waiting(stated, until_ts, ends)
        if still is not None and _length_ms(still.from_ts, still.to_ts) >= least_ms:
            found.append(still)
    return found


def changed_statements(statements: Iterable[OffsetStatement]) -> list[OffsetStatement]:
    """Return the first statement of each client and of the file, and each that differs from that source's last one.

    By ``ts`` (epoch us) and offset (messages). A client that repeats an offset does not change it, regardless of other
    clients in between. No method of RocketMQ: mqreplay's own rule.

    >>> statements = [OffsetStatement(1, 5, "a"), OffsetStatement(2, 7, "b"), OffsetStatement(3, 5, "a")]
    >>> [(changed.ts, changed.offset) for changed in changed_statements(statements)]
    [(1, 5), (2, 7)]
    """
    by_source: dict[str | None, list[OffsetStatement]] = {}
    for statement in statements:
        by_source.setdefault(statement.client_id, []).append(statement)
    changed: list[OffsetStatement] = []
    for of_source in by_source.values():
        of_source.sort(key=_by_time)
        changed += of_source[:1] + [after for before, after in pairwise(of_source) if after.offset != before.offset]
    return sorted(changed, key=_by_time)


def least_standstill_ms(request_ts: Iterable[int], stuck_ms: int) -> int:
    """Return how long a standstill is where only pulls (``request_ts``, epoch us) and copies show the offset.

    At least ``stuck_ms``, and 3 times the median interval from one pull to the next, the lower one of two medians.
    No method of RocketMQ: mqreplay's own rule.

    >>> least_standstill_ms([0, 20_000_000, 50_000_000], 30_000), least_standstill_ms([0], 30_000)
    (60000, 30000)
    """
    pulled_ms = sorted(ts // 1000 for ts in request_ts)
    intervals = sorted(after - before for before, after in pairwise(pulled_ms))
    return max(stuck_ms, USUAL_STEPS * intervals[(len(intervals) - 1) // 2]) if intervals else stuck_ms


def _by_time(statement: OffsetStatement) -> tuple[int, int]:
    return statement.ts, statement.offset


def _length_ms(from_ts: int, to_ts: int) -> int:
    return to_ts // 1000 - from_ts // 1000


def _shown(
    statements: Iterable[OffsetStatement], changes: Sequence[OffsetChange], last_copy_ts: int | None
) -> list[tuple[int, int]]:
    """Return (epoch us, offset): all moments at which a statement or a copy of the file shows an offset."""
    shown = [(statement.ts, statement.offset) for statement in statements]
    newest: tuple[int, int] | None = None
    for change in changes:
        if change.new_offset is None:
            continue
        newest = max(newest or (change.to_ts, change.new_offset), (change.to_ts, change.new_offset))
        if change.from_ts is not None and change.previous_offset is not None:
            shown.append((change.from_ts, change.previous_offset))
    if newest is not None and last_copy_ts is not None:
        shown.append((last_copy_ts, newest[1]))
    return shown


def _last_shown(stated: OffsetStatement, next_ts: int | None, shown: Iterable[tuple[int, int]]) -> int:
    """Return the last moment (epoch us) before the next one at which the offset is shown."""
    still = [
        ts for ts, offset in shown if offset == stated.offset and ts >= stated.ts and (next_ts is None or ts < next_ts)
    ]
    return max(still, default=stated.ts)


def _waiting(stated: OffsetStatement, until_ts: int | None, ends: Iterable[QueueEnd]) -> Standstill | None:
    """Return the span from the first end behind which messages wait to ``until_ts``, else to the last such end.

    A negative offset counts as 0, as in AdminBrokerProcessor#getConsumeStats.
    """
    at = max(stated.offset, 0)
    behind = [
        (end.ts, end.max_offset)
        for end in ends
        if end.max_offset is not None and end.max_offset > at
        if end.ts >= stated.ts and (until_ts is None or end.ts <= until_ts)
    ]
    if not behind:
        return None
    instants, ends_at = zip(*behind, strict=True)
    to_ts = max(instants) if until_ts is None else until_ts
    waiting, arrived = max(ends_at) - at, max(ends_at) - min(ends_at)
    return Standstill(stated.offset, stated.ts, min(instants), to_ts, min(waiting, LONG_MAX), min(arrived, LONG_MAX))
