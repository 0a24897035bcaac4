"""Stale copies: a slave's offset is below all recent offsets of its master's file, so it is no longer copied.

Not a rule of RocketMQ, but of mqreplay, about SlaveSynchronize#syncConsumerOffset. The evidence are only the recorded
changes of the files: if two copies of a file agree, the file was the same in between.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import NamedTuple

from oracles.offset_evidence import COUNTLESS, OffsetChange


class StaleSpan(NamedTuple):
    """The time between two moments (epoch ms), in all of which the slave's offset was the same, below the master's.

    ``began_ms``: the start of the first of consecutive spans; ``lacks``: messages by which it
    was below at ``to_ts``, at most 2**53: what the master ``holds`` then, less what the slave's copy ``has``.
    """

    began_ms: int
    from_ms: int
    to_ms: int
    lacks: int
    holds: int
    has: int


class _What(IntEnum):
    """What is seen at a moment, in the order that counts within one millisecond."""

    HELD = 0  # the master's file, from then on
    COPIED = 1  # the slave's file, from then on
    LEFT = 2  # the slave's file, until then; what it held after that is not known
    ENDED = 3  # the slave's file, when it was last copied


class _Moment(NamedTuple):
    ts: int
    what: _What
    offset: int | None
    before: int | None = None  # of HELD: what the master's file held until then

    @property
    def place(self) -> tuple[int, int]:
        return self.ts // 1000, self.what


def stale_spans(
    master_changes: Iterable[OffsetChange],
    slave_changes: Iterable[OffsetChange],
    slave_last_copy_ts: int | None,
    reach_ms: int,
) -> list[StaleSpan]:
    """Return the spans in which the slave's offset was below all that its master's file held in ``reach_ms`` before.

    A slave that copies gets all offsets of its master (SlaveSynchronize#syncConsumerOffset): an offset that changed in
    these ``reach_ms`` was copied.

    Of one queue and group; changes in any order, of one instant the last in this order counts. Instants epoch us,
    offsets messages; ``slave_last_copy_ts``: when the slave's file was last copied.

    A span ends at a moment at which both offsets are known: when the master's file changes, or at the last copy that
    shows the slave's offset. It begins where the span before ends, or else ``reach_ms`` after the last moment at which
    the offset changed or was not below, if that is earlier. What the master's file held before each change in reach
    must be known.
    No method of RocketMQ: mqreplay's own rule.

    >>> master = [OffsetChange(0, second * 1_000_000, second, second + 10) for second in (10, 20, 30)]
    >>> spans = stale_spans(master, [OffsetChange(None, 11_000_000, None, 15)], 40_000_000, 15_000)
    >>> [(span.began_ms, span.from_ms, span.to_ms, span.lacks) for span in spans]
    [(30000, 30000, 30000, 15), (30000, 30000, 40000, 25)]
    >>> stale_spans(master, [OffsetChange(20_000_000, 26_000_000, 14, 15)], 40_000_000, 15_000)
    []
    """
    moments = _moments(master_changes, slave_changes, slave_last_copy_ts)
    found: list[StaleSpan] = []
    holds: int | None = None
    copied: int | None = None
    began: int | None = None
    prior: int | None = None
    changed: int | None = None
    was_below = False
    for moment in moments:
        ms = moment.ts // 1000
        has = {_What.HELD: copied, _What.COPIED: None}.get(moment.what, moment.offset)
        is_below = (
            has is not None and holds is not None and has < holds and _is_below_all(has, moment, moments, reach_ms)
        )
        if is_below and prior is not None and changed is not None and changed + reach_ms <= ms:
            assert has is not None
            assert holds is not None
            first = changed + reach_ms if was_below else min(ms, prior + reach_ms)
            begin = first if began is None else prior
            began = begin if began is None else began
            found.append(StaleSpan(began, begin, ms, min(holds - has, COUNTLESS), holds, has))
        else:
            began = None
        prior, was_below = ms, is_below
        changed = ms if moment.what is _What.COPIED else changed
        if moment.what is _What.HELD:
            holds = moment.offset
        elif moment.what is not _What.ENDED:
            copied = moment.offset if moment.what is _What.COPIED else None
    return found


def _moments(
    master_changes: Iterable[OffsetChange], slave_changes: Iterable[OffsetChange], slave_last_copy_ts: int | None
) -> list[_Moment]:
    found = [_Moment(each.to_ts, _What.HELD, each.new_offset, each.previous_offset) for each in master_changes]
    of_slave = sorted(slave_changes, key=lambda change: change.to_ts)
    for change in of_slave:
        found.append(_Moment(change.to_ts, _What.COPIED, change.new_offset))
        if change.previous_offset is not None and change.from_ts is not None:
            found.append(_Moment(change.from_ts, _What.LEFT, change.previous_offset))
    if of_slave and slave_last_copy_ts is not None and slave_last_copy_ts >= of_slave[-1].to_ts:
        found.append(_Moment(slave_last_copy_ts, _What.ENDED, of_slave[-1].new_offset))
    return sorted(found, key=lambda moment: (*moment.place, moment.ts))


def _is_below_all(has: int, moment: _Moment, moments: Iterable[_Moment], reach_ms: int) -> bool:
    """Return whether the master's file held more than ``has`` before each of its changes in the last ``reach_ms``."""
    within = [
        other
        for other in moments
        if other.what is _What.HELD
        if other.ts // 1000 > moment.ts // 1000 - reach_ms and other.place <= moment.place
    ]
    return all(other.before is not None and has < other.before for other in within)


class StalePeriod(NamedTuple):
    """A slave's offset that is not copied, from ``from_ms`` to ``to_ms`` (epoch ms).

    When it lacked most messages (``lacks``; of several such moments at the last one), the master's file held ``holds``
    and the slave's copy ``has``, in messages. It was last right at most the least time of a stale copy before it began.
    """

    from_ms: int
    to_ms: int
    holds: int
    has: int
    lacks: int


def stale_periods(
    spans: Iterable[StaleSpan], watched: Iterable[tuple[int, int]], stale_slave_ms: int
) -> list[StalePeriod]:
    """Return the periods of one copy's spans (`stale_spans`), while it was watched (`watched_spans`, epoch ms).

    No method of RocketMQ: mqreplay's own rule.

    >>> first, later = StaleSpan(100, 100, 200, 7, 9, 2), StaleSpan(600, 600, 700, 1, 3, 2)
    >>> stale_periods([first, StaleSpan(100, 200, 400, 5, 9, 4), later], [(0, 300)], 90)
    [StalePeriod(from_ms=10, to_ms=300, holds=9, has=2, lacks=7)]
    """
    watched = list(watched)
    found: dict[int, tuple[int, tuple[int, int, int, int]]] = {}
    for span in spans:
        for from_ms, to_ms in watched:
            if max(from_ms, span.from_ms) <= min(to_ms, span.to_ms):
                most = span.lacks, span.to_ms, span.holds, span.has
                last, most_before = found.get(span.began_ms, (span.from_ms, most))
                found[span.began_ms] = max(last, min(to_ms, span.to_ms)), max(most, most_before)
    return [
        StalePeriod(began - stale_slave_ms, last, holds, has, lacks)
        for began, (last, (lacks, _, holds, has)) in sorted(found.items())
    ]


def watched_spans(
    slave_copies: Iterable[int], master_copies: Sequence[int], master_outages: Sequence[tuple[int, int]], reach_ms: int
) -> list[tuple[int, int]]:
    """Return the spans (first and last epoch ms) in which a slave's copies can be compared with its master's.

    ``slave_copies``, ``master_copies``: when the files were copied; ``master_outages``: when the master was gone; all
    epoch us. A copy counts if the master's file was copied in the ``reach_ms`` before it, and the master was there for
    all of them; copies that are no more than ``reach_ms`` from each other make one span.
    No method of RocketMQ: mqreplay's own rule.

    >>> watched_spans([1_000_000, 6_000_000, 19_000_000], [0, 5_000_000, 17_000_000], [], 10_000)
    [(1000, 6000), (19000, 19000)]
    >>> watched_spans([1_000_000, 6_000_000], [0, 5_000_000], [(2_000_000, 2_500_000)], 10_000)
    [(1000, 1000)]
    """
    watched: list[tuple[int, int]] = []
    for ts in sorted(slave_copies):
        ms = ts // 1000
        masters = [copied for copied in master_copies if copied <= ts]
        was_gone = any(from_ts <= ts and to_ts > ts - reach_ms * 1000 for from_ts, to_ts in master_outages)
        if was_gone or not masters or ms - max(masters) // 1000 >= reach_ms:
            continue
        if watched and ms - watched[-1][1] <= reach_ms:
            watched[-1] = watched[-1][0], ms
        else:
            watched.append((ms, ms))
    return watched
