"""The nearest row before or after a moment, over whole columns at once: a sorted search instead of a window.

A window over questions and answers together sorts wide rows once for each thing that is looked up; here rows stay
where they are, and only numbers are sorted.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from mqreplay.judge.distinct import distinct_rows

Numbers = npt.NDArray[np.int64]
NOWHERE = -1
_MOST = 2**62


def common_codes(*tables: Sequence[pa.Array]) -> list[Numbers]:
    """For each of several tables' key columns one number a row: equal where the keys are, within and between tables."""
    columns = [pa.concat_arrays([_plain(column) for column in same]) for same in zip(*tables, strict=True)]
    places, _ = distinct_rows(columns)
    return np.split(places, np.cumsum([len(table[0]) for table in tables])[:-1])


def _plain(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def numbers(column: pa.Array | pa.ChunkedArray) -> tuple[Numbers, npt.NDArray[np.bool_]]:
    """A column of whole numbers or instants (microseconds) and where it is not null; null is 0."""
    plain = _plain(column)
    if pa.types.is_timestamp(plain.type):
        plain = plain.cast(pa.timestamp("us", plain.type.tz)).cast(pa.int64())
    there = pc.is_valid(plain).to_numpy(zero_copy_only=False)
    return pc.fill_null(plain.cast(pa.int64()), 0).to_numpy().astype(np.int64, copy=False), there


def ranks(*by: Numbers) -> Numbers:
    """The place of each row in the order of several columns, the first first; equal rows share it."""
    order = np.lexsort(by[::-1])
    changed = np.zeros(len(order), np.int64)
    changed[starts(*(column[order] for column in by))[1:]] = 1
    found = np.empty(len(order), np.int64)
    found[order] = np.cumsum(changed)
    return found


def starts(*by: Numbers) -> Numbers:
    """Of columns sorted together: the first row of each run of equal rows."""
    changed = np.zeros(len(by[0]), bool)
    changed[:1] = True
    for column in by:
        changed[1:] |= column[1:] != column[:-1]
    return np.flatnonzero(changed)


def nearest(
    asked_key: Numbers, asked_at: Numbers, known_key: Numbers, known_at: Numbers, *, side: str = "before"
) -> Numbers:
    """For each question the row of ``known`` of the same key that is nearest, NOWHERE if there is none.

    ``side``: ``before`` is the last at or before the moment, ``strictly_before`` without it, ``after`` the first at or
    after it. Of several known at one moment the last given counts, or the first with ``after``.

    >>> key = np.zeros(3, np.int64)
    >>> nearest(key, np.array([0, 5, 9]), key[:2], np.array([3, 9])).tolist()
    [-1, 0, 1]
    """
    if not len(known_key):
        return np.full(len(asked_key), NOWHERE)
    at, known_moment = _close(asked_at, known_at)
    width = int(max(at.max(initial=0), known_moment.max())) + 1
    order = np.lexsort((known_moment, known_key))
    known = known_key[order] * width + known_moment[order]
    wanted = asked_key * width + at
    place = np.searchsorted(known, wanted, "right" if side == "before" else "left")
    if side != "after":
        place -= 1
    inside = (place >= 0) & (place < len(known))
    found = order[np.where(inside, place, 0)]
    return np.where(inside & (known_key[found] == asked_key), found, NOWHERE)


def _close(asked: Numbers, known: Numbers) -> tuple[Numbers, Numbers]:
    """The same order in numbers from 0 that are small enough to stand beside a key's."""
    low, high = asked.min(initial=known.min()), asked.max(initial=known.max())
    if (int(high) - int(low) + 1) * (len(asked) + len(known) + 1) < _MOST:
        return asked - low, known - low
    both = ranks(np.concatenate([asked, known]))
    return both[: len(asked)], both[len(asked) :]


def taken(column: pa.Array | pa.ChunkedArray, rows: Numbers) -> pa.Array:
    """The values of those rows, null for NOWHERE."""
    return _plain(column).take(pa.array(rows, pa.int64(), mask=rows == NOWHERE))
