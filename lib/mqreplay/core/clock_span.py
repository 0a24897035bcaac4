"""Time spans of a client's clock with a constant error, because a clock may jump or be corrected.

Not a rule of RocketMQ, but of mqreplay. A commit is in the master's consumerOffset.json with its next write (every
5 s, BrokerConfig#flushConsumerOffsetInterval) and in the next copy of that file. If a client's commits are in copies
made long before, or only in copies made long after, its clock is wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby, pairwise
from operator import attrgetter
from statistics import median
from typing import NamedTuple

USUAL_MS = 5_000  # from a copy or a commit to the next
WRITE_MS = 3_000  # from a commit to the copy that shows it, about: writes and copies are each 5 s apart
LEAST = 3  # samples that must agree; where a clock has several spans, copies of each
NEAR_MS = 15_000  # samples of one span differ by less than this plus the uncertainty from the distance of copies
SURE_MS = 20_000  # the least length of a span, where a clock has several: lost commits cause shorter ones
AROUND = 5  # copies around a copy for its median, so that a single wrong one does not end a span


class ClockSample(NamedTuple):
    """One comparison of a client's clock with the recorder's; all ms, the first two epoch ms.

    ``stated_ms``: when the client stated an offset; ``shown_ms``: when the copy was made that shows it; ``off_ms``: the
    client's clock less the recorder's, by this comparison; ``unsure_ms``: the largest error of ``off_ms``.
    """

    stated_ms: int
    shown_ms: int
    off_ms: int
    unsure_ms: int


class ClockSpan(NamedTuple):
    """A time span until ``stated_until_ms`` (client's clock) in which the clock is ``skew_ms`` ahead of the recorder's.

    ``shown_from_ms`` and ``shown_until_ms`` are epoch ms by the recorder's clock. None: from the first sample, until
    the last. ``matches``: number of samples.
    """

    stated_until_ms: int | None
    shown_from_ms: int | None
    shown_until_ms: int | None
    skew_ms: int
    matches: int


def clock_spans(samples: Iterable[ClockSample], most_ms: int) -> list[ClockSpan]:
    """Return the time spans of a client's clock in order; none if it is never wrong by more than ``most_ms``.

    A clock counts as wrong if the median of 3 samples or more is off by more than ``most_ms`` plus the uncertainty from
    the distance of copies. If there are several spans, each lasts at least 20 s, in 3 copies or more. A clock that is
    set back shows some instants twice; they count as the first of the two times. No method of RocketMQ: mqreplay's own
    rule.

    >>> hour = [ClockSample(3_600_000 + ms, ms + 3_000, 3_597_000, 0) for ms in range(0, 60_000, 5_000)]
    >>> clock_spans(hour, 60_000)
    [ClockSpan(stated_until_ms=None, shown_from_ms=None, shown_until_ms=None, skew_ms=3600000, matches=12)]
    >>> clock_spans(hour, 3_600_000)
    []
    """
    ordered = sorted(samples, key=attrgetter("shown_ms", "stated_ms", "off_ms"))
    if not ordered:
        return []
    runs = _sure_runs(ordered) or [ordered]
    skews = [_skew_ms(run, most_ms) for run in runs]
    if not any(skews):
        return []
    until = [_bound_ms(earlier, later) for earlier, later in pairwise(runs)]
    began = [run[0].shown_ms for run in runs[1:]]
    ended = [run[-1].shown_ms for run in runs[:-1]]
    bounds = zip([*until, None], [None, *began], [*ended, None], strict=True)
    return [ClockSpan(*bound, skew, len(run)) for bound, skew, run in zip(bounds, skews, runs, strict=True)]


def _skew_ms(run: Sequence[ClockSample], most_ms: int) -> int:
    skew_ms = round(_median(run, "off_ms")) + WRITE_MS
    is_off = len(run) >= LEAST and abs(skew_ms) - _median(run, "unsure_ms") > most_ms
    return skew_ms if is_off else 0


def _bound_ms(earlier: Sequence[ClockSample], later: Sequence[ClockSample]) -> int:
    """Return the instant by the client's clock at which the later span begins."""
    end, begin = max(each.stated_ms for each in earlier), min(each.stated_ms for each in later)
    return (end + begin) // 2 if end < begin else end + 1


def _sure_runs(samples: Sequence[ClockSample]) -> list[list[ClockSample]]:
    """Return runs of copies that show about the same skew, without samples that differ; neighbours that agree are one.

    A pull after a jump repeats what was committed since a statement before it: such samples, less sure than usual by
    the jump itself, show nothing.
    """
    usual_ms = _median(samples, "unsure_ms")
    sure = [each for each in samples if each.unsure_ms <= usual_ms + NEAR_MS]
    copies = [list(of_copy) for _, of_copy in groupby(sure, key=attrgetter("shown_ms"))]
    runs: list[list[ClockSample]] = []
    for copies_of_run in _cut_at_jumps(copies):
        middle = median(_median(of_copy, "off_ms") for of_copy in copies_of_run)
        of_run = [each for of_copy in copies_of_run for each in of_copy]
        run = [each for each in of_run if abs(each.off_ms - middle) <= NEAR_MS + each.unsure_ms]
        if not _is_sure(run):
            continue
        if runs and abs(_median(runs[-1], "off_ms") - _median(run, "off_ms")) <= NEAR_MS:
            run = runs.pop() + run
        runs.append(run)
    return runs


def _cut_at_jumps(copies: Sequence[list[ClockSample]]) -> list[list[list[ClockSample]]]:
    """Return the copies in runs, cut where the skew changes by more than samples of one span differ."""
    off = [_median(of_copy, "off_ms") for of_copy in copies]
    unsure = [_median(of_copy, "unsure_ms") for of_copy in copies]
    half = AROUND // 2
    smooth = [median(off[max(place - half, 0) : place + half + 1]) for place in range(len(off))]
    runs: list[list[list[ClockSample]]] = []
    for place, of_copy in enumerate(copies):
        is_jump = place > 0 and abs(smooth[place] - smooth[place - 1]) > NEAR_MS + unsure[place] + unsure[place - 1]
        if is_jump or not runs:
            runs.append([])
        runs[-1].append(of_copy)
    return runs


def _is_sure(run: Sequence[ClockSample]) -> bool:
    if len({each.shown_ms for each in run}) < LEAST:
        return False
    stated = [each.stated_ms for each in run]
    return min(run[-1].shown_ms - run[0].shown_ms, max(stated) - min(stated)) >= SURE_MS


def _median(samples: Iterable[ClockSample], name: str) -> float:
    return float(median(getattr(each, name) for each in samples))
