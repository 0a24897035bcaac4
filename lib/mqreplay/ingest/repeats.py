"""Repeated lines within one file: each is a separate record with its own record_id.

A client may compute the same thing twice in a millisecond; a recorder then writes one line twice. Runs on the workers.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

_MIX = np.uint64(0x9E3779B97F4A7C15)  # odd, so that multiplication is invertible
Marks = npt.NDArray[np.uint64]


class Repeats:
    """The record ids of one file, processed in order of lines, some thousands at a time.

    It keeps eight bytes per line. If two ids have the same mark, the second one is wrongly numbered as a repetition,
    but no record is lost.
    """

    def __init__(self) -> None:
        """Nothing was seen yet."""
        # Sorted, each shorter than the one before, so that adding some thousands does not sort millions again.
        self._seen: list[Marks] = []
        self._times: dict[int, int] = {}

    def named(self, ids: Sequence[str]) -> list[str]:
        """Return the ids; repeated ones with a number: id-2, id-3.

        >>> repeats = Repeats()
        >>> a, b = "a" * 32, "b" * 32
        >>> [name[31:] for name in repeats.named([a, b, a]) + repeats.named([b, a])]
        ['a', 'b', 'a-2', 'b-2', 'a-3']
        """
        names = list(ids)
        if not names:
            return names
        marks = _marks(names)
        ordered = np.sort(marks)
        twice = ordered[1:][ordered[1:] == ordered[:-1]]
        before = self._known(ordered)
        again = np.union1d(twice, ordered[before])
        if len(again):
            self._count(names, marks, again)
        self._seen.append(ordered)
        while len(self._seen) > 1 and len(self._seen[-2]) <= len(self._seen[-1]):
            last = self._seen.pop()
            self._seen[-1] = np.sort(np.concatenate([self._seen[-1], last]), kind="stable")
        return names

    def _known(self, marks: Marks) -> npt.NDArray[np.bool_]:
        known = np.zeros(len(marks), bool)
        for seen in self._seen:
            place = np.minimum(np.searchsorted(seen, marks), len(seen) - 1)
            known |= seen[place] == marks
        return known

    def _count(self, names: list[str], marks: Marks, again: Marks) -> None:
        seen_before = dict(zip(again.tolist(), self._known(again).tolist(), strict=True))
        for row in np.flatnonzero(np.isin(marks, again)).tolist():
            mark = int(marks[row])
            times = self._times.get(mark, int(seen_before[mark])) + 1
            self._times[mark] = times
            if times > 1:
                names[row] = f"{names[row]}-{times}"


def _marks(ids: Sequence[str]) -> Marks:
    """Return 64 bits of each hexadecimal id."""
    words = np.frombuffer("".join(ids).encode("ascii"), "<u8").reshape(len(ids), -1)
    mixed = words[:, 0].copy()
    for column in range(1, words.shape[1]):
        mixed = (mixed ^ (mixed >> np.uint64(29))) * _MIX + words[:, column]
    return mixed
