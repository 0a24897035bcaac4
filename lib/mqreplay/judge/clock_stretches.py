"""Since when, until when and by how much a client's clock was off: during a night it may jump, or be set right."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from mqreplay.core.clock_stretch import AROUND, LEAST, NEAR_MS, SURE_MS, WRITE_MS
from mqreplay.judge.nearest import Numbers, starts


@dataclass(frozen=True)
class Words:
    """What client_words.py found of one client, in any order; all in ms."""

    said: Numbers
    shown: Numbers
    off: Numbers
    unsure: Numbers

    def of(self, which: npt.NDArray[Any]) -> Words:
        """Some of the words."""
        return Words(self.said[which], self.shown[which], self.off[which], self.unsure[which])


@dataclass(frozen=True)
class Stretch:
    """All that a client said until ``said_until_ms``, its clock being ``skew_ms`` ahead of the recorder's.

    ``shown_from_ms`` and ``shown_until_ms`` are by the recorder's clock. None: from the first word, until the last.
    """

    said_until_ms: int | None
    shown_from_ms: int | None
    shown_until_ms: int | None
    skew_ms: int
    matches: int


def stretches(words: Words, most_ms: int) -> list[Stretch]:
    """In order; none if the clock was never off by more than ``most_ms`` and by what copies far apart leave open.

    A clock that went back says some instants twice; they count as the first of the two times.
    """
    words = words.of(np.lexsort((words.off, words.said, words.shown)))
    runs = _sure_runs(words) or [words]
    skews = [_skew(run, most_ms) for run in runs]
    if not any(skews):
        return []
    until = [_between(earlier, later) for earlier, later in pairwise(runs)]
    began = [int(run.shown[0]) for run in runs[1:]]
    ended = [int(run.shown[-1]) for run in runs[:-1]]
    bounds = zip([*until, None], [None, *began], [*ended, None], strict=True)
    return [Stretch(*of, skew, len(run.off)) for of, skew, run in zip(bounds, skews, runs, strict=True)]


def _skew(run: Words, most_ms: int) -> int:
    skew = round(float(np.median(run.off))) + WRITE_MS
    is_off = len(run.off) >= LEAST and abs(skew) - np.median(run.unsure) > most_ms
    return skew if is_off else 0


def _between(earlier: Words, later: Words) -> int:
    """The instant by the client's clock at which the later stretch begins."""
    end, begin = int(earlier.said.max()), int(later.said.min())
    return (end + begin) // 2 if end < begin else end + 1


def _sure_runs(words: Words) -> list[Words]:
    """Runs of copies that show about the same, without words that say otherwise; neighbours that agree are one."""
    # A pull after a jump only repeats what was committed since a word before it: that tells nothing.
    words = words.of(words.unsure <= np.median(words.unsure) + NEAR_MS)
    first = starts(words.shown)
    off, unsure = (_medians(column, first) for column in (words.off, words.unsure))
    jump = np.abs(np.diff(_smooth(off))) > NEAR_MS + unsure[1:] + unsure[:-1]
    found: list[Words] = []
    of_words, of_copies = np.split(np.arange(len(words.off)), first[1:][jump]), np.split(off, np.flatnonzero(jump) + 1)
    for run, copies in zip(of_words, of_copies, strict=True):
        one = words.of(run)
        one = one.of(np.abs(one.off - np.median(copies)) <= NEAR_MS + one.unsure)
        if not _is_sure(one):
            continue
        if found and abs(np.median(found[-1].off) - np.median(one.off)) <= NEAR_MS:
            one = _joined(found.pop(), one)
        found.append(one)
    return found


def _is_sure(run: Words) -> bool:
    copies = len(starts(run.shown))
    return copies >= LEAST and bool(min(np.ptp(run.shown), np.ptp(run.said)) >= SURE_MS)


def _joined(one: Words, other: Words) -> Words:
    pairs = ((one.said, other.said), (one.shown, other.shown), (one.off, other.off), (one.unsure, other.unsure))
    return Words(*map(np.concatenate, pairs))


def _medians(values: Numbers, first: Numbers) -> npt.NDArray[np.float64]:
    return np.array([np.median(part) for part in np.split(values, first[1:])])


def _smooth(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Of each value the median of those around it; at either end of fewer."""
    half = AROUND // 2
    return np.array([np.median(values[max(i - half, 0) : i + half + 1]) for i in range(len(values))])
