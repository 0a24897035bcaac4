"""gold.offset_continuity of one broker name: breaks in what its brokers' files show."""

from __future__ import annotations

import numpy as np

from .offsets import NONE
from .pull_lines import NULL, Numbers, PullFile
from .pull_route import Skip
from .routes import SHIFT
from .snapshots import SourceRead

REACH_MS = 60_000  # a reset takes at most so long to show
KINDS = ("vanished", "rewind", "beyond_max", "below_min", "jump")
Break = tuple[str, int, str, str, int, str, int | None, int | None, int, int]


class Ends:
    """Where queues of a broker name began and ended, as its master told in answers."""

    def __init__(self, broker_name: str, files: list[PullFile]) -> None:
        self.queues: dict[tuple[str, int], int] = {}
        keys, lows, highs = [], [], []
        for file in files:
            mine = [
                self.queues.setdefault((p[2], p[4]), len(self.queues)) if p[3] == broker_name else -1
                for p in file.places
            ]
            numbers = Numbers.of(file.numbers)
            told = np.flatnonzero(np.array([queue >= 0 for queue in mine])[numbers.place])
            told = told[(numbers["broker_id"][told] == 0) & (numbers["max_offset"][told] != NULL)]
            queue = np.array(mine, np.int64)[numbers.place[told]]
            keys.append((queue << SHIFT) + numbers.answered[told])
            lows.append(numbers["min_offset"][told])
            highs.append(numbers["max_offset"][told])
        key = np.concatenate(keys) if keys else np.empty(0, np.int64)
        order = np.argsort(key, kind="stable")
        self.keys = np.r_[key[order], np.int64(2**62)]
        self.low = np.r_[np.concatenate(lows)[order], 0] if keys else np.zeros(1, np.int64)
        self.high = np.r_[np.concatenate(highs)[order], 0] if keys else np.zeros(1, np.int64)

    def after(self, queue: np.ndarray, ts: np.ndarray) -> np.ndarray:
        """The end first told at or after ``ts``; no end (the greatest number) where none was."""
        found = np.searchsorted(self.keys, (queue << SHIFT) + ts, "left")
        return np.where((self.keys[found] >> SHIFT == queue) & (queue >= 0), self.high[found], 2**62)

    def before(self, queue: np.ndarray, ts: np.ndarray) -> np.ndarray:
        """The beginning last told at or before ``ts``; the least number where none was."""
        found = np.searchsorted(self.keys, (queue << SHIFT) + ts, "right") - 1
        return np.where((found >= 0) & (self.keys[found] >> SHIFT == queue) & (queue >= 0), self.low[found], NULL)


def breaks_of(sources: list[SourceRead], files: list[PullFile], skipped: list[Skip]) -> list[Break]:
    """The breaks of the brokers of one name."""
    ends = Ends(sources[0].broker_name, files)
    return [found for source in sources for found in _breaks(source, ends, skipped)]


def _breaks(source: SourceRead, ends: Ends, skipped: list[Skip]) -> list[Break]:
    snapshot, entry, previous, new = source.rows()
    moments = np.array(source.moments, np.int64)
    to_ts = moments[snapshot]
    from_ts = np.where(snapshot > 0, moments[snapshot - 1], to_ts)
    queue = np.array([ends.queues.get((topic, q), -1) for topic, _, q in source.keys], np.int64)[entry]
    had, has = previous != NONE, new != NONE
    kind = np.full(len(new), -1, np.int8)
    for group, topic, name, q, since, until, ts in skipped:
        if name == source.broker_name and (topic, group, q) in source.keys:
            mine = source.keys.index((topic, group, q))
            past = (entry == mine) & (new == until) & had & (since <= new) & (since >= previous)
            kind[past & (ts >= from_ts - REACH_MS)] = 4
    low = np.flatnonzero(has & (new < ends.low.max()))  # few: most stand above where every queue begins
    kind[low[new[low] < ends.before(queue[low], from_ts[low])]] = 3
    kind[has & (~had | (new > previous)) & (new > ends.after(queue, to_ts))] = 2
    kind[has & had & (new < previous)] = 1
    kind[~has] = 0
    found = []
    for i in np.flatnonzero(kind >= 0).tolist():
        topic, group, q = source.keys[entry[i]]
        offsets = [None if v == NONE else int(v) for v in (previous[i], new[i])]
        place = (source.broker_name, source.broker_id, topic, group, q)
        found.append((*place, KINDS[kind[i]], *offsets, int(from_ts[i]), int(to_ts[i])))
    return found
