"""A client's clock compared with the recorder's, by the times of its commits and of the copies that show them.

Not a rule of RocketMQ, but of mqreplay. A commit is in the master's consumerOffset.json with its next write (every
5 s, BrokerConfig#flushConsumerOffsetInterval) and in the next copy of that file. If a client's commits are in copies
made long before, or only in copies made long after, its clock is wrong. clock_span finds when and by how much.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

from mqreplay.core.clock_span import USUAL_MS, ClockSample, ClockSpan
from oracles.offset_evidence import OffsetChange


class ClientOffset(NamedTuple):
    """An offset (messages) that a client states at ``ts`` (epoch us, by its clock), in a commit or in a pull."""

    ts: int
    offset: int
    is_pull: bool = False


def clock_samples(offsets: Iterable[ClientOffset], changes: Iterable[OffsetChange]) -> list[ClockSample]:
    """Return one sample for each rise of the offset in the master's file that contains an offset of this client.

    ``offsets``: what one client states of one queue and group; ``changes``: those of the master's consumerOffset.json,
    by ``to_ts``. Instants epoch us, offsets messages.

    Of a rise the client's highest offset counts, at the moment at which the client first states it. Its very first
    statement may repeat an old commit, and gives no sample. A commit may have been stored at any time since the
    copy before, and a pull only repeats what was committed since the client's statement before; the middle of such a
    time counts if it is longer than 5 s. Offsets that the file passes more than once, as after a reset, are ignored.
    No method of RocketMQ: mqreplay's own rule.

    >>> offsets = [ClientOffset(0, 5), ClientOffset(4_000_000, 9)]
    >>> clock_samples(offsets, [OffsetChange(3_000_000, 7_000_000, 5, 9)])
    [ClockSample(stated_ms=4000, shown_ms=7000, off_ms=-3000, unsure_ms=0)]
    >>> clock_samples(offsets, [OffsetChange(3_000_000, 18_000_000, 5, 9)])
    [ClockSample(stated_ms=4000, shown_ms=18000, off_ms=-9000, unsure_ms=5000)]
    """
    first = _first_statements(offsets)
    shown = [(change, passed) for change in changes if (passed := _passed(change)) is not None]
    found: list[ClockSample] = []
    for change, passed in shown:
        meeting = sum(_meets(passed, other) for _, other in shown)
        within = [statement for statement in first if statement[0].offset in passed]
        if (change.new_offset or 0) > (change.previous_offset or 0) and meeting == 1 and within:
            highest, since_ts = max(within, key=lambda statement: statement[0].offset)
            found.append(_sample(highest.ts // 1000, since_ts // 1000, change))
    return found


def _first_statements(offsets: Iterable[ClientOffset]) -> list[tuple[ClientOffset, int]]:
    """Return the first statement of each offset, without the client's first of all, and since when it may hold (us)."""
    ordered = sorted((each for each in offsets if each.offset > 0), key=lambda each: (each.ts, each.is_pull))
    found: list[tuple[ClientOffset, int]] = []
    seen = {each.offset for each in ordered[:1]}
    for before, each in pairwise(ordered):
        if each.offset not in seen:
            found.append((each, before.ts if each.is_pull else each.ts))
        seen.add(each.offset)
    return found


def _passed(change: OffsetChange) -> range | None:
    """Return the offsets that the change passes, up or down, without the lower end; None if it is the first seen."""
    if change.new_offset is None or (change.previous_offset is None and change.from_ts is None):
        return None
    new, old = change.new_offset, change.previous_offset or 0  # an entry that is not there is as good as 0
    return range(old + 1, new + 1) if new > old else range(new, old + 1)


def _meets(one: range, other: range) -> bool:
    return max(one.start, other.start) < min(one.stop, other.stop)


def _sample(stated_ms: int, since_ms: int, change: OffsetChange) -> ClockSample:
    shown_ms = change.to_ts // 1000
    copied_before_ms = shown_ms if change.from_ts is None else change.from_ts // 1000
    of_client, of_copy = _half_of_more(stated_ms - since_ms), _half_of_more(shown_ms - copied_before_ms)
    return ClockSample(stated_ms, shown_ms, (stated_ms - of_client) - (shown_ms - of_copy), of_client + of_copy)


def _half_of_more(ms: int) -> int:
    return max(ms - USUAL_MS, 0) // 2


def recorders_ms(stated_ms: int, spans: Iterable[ClockSpan]) -> int:
    """Return an instant by the recorder's clock that a client states as ``stated_ms``, both epoch ms.

    ``spans``: those of `clock_spans` of the client, in order.
    No method of RocketMQ: mqreplay's own rule.

    >>> spans = [ClockSpan(50_000, None, 40_000, 0, 9), ClockSpan(None, 45_000, None, 60_000, 9)]
    >>> recorders_ms(49_999, spans), recorders_ms(110_000, spans), recorders_ms(110_000, [])
    (49999, 50000, 110000)
    """
    skews = (each.skew_ms for each in spans if each.stated_until_ms is None or stated_ms < each.stated_until_ms)
    return stated_ms - next(skews, 0)
