"""The nearest row before or after an instant, for whole columns: a sorted search instead of a window.

A window function would sort wide rows for each lookup; here only numbers are sorted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from mqreplay.evidence.arrays.distinct import key_codes
from mqreplay.evidence.arrays.frame_arrays import NOWHERE, Numbers, column_numbers, ranks, taken

_MOST = 2**62


def as_of(
    left: pl.DataFrame,
    right: pl.DataFrame,
    by: Sequence[str],
    at: str,
    values: Mapping[str, str],
    *,
    right_at: str | None = None,
    after: bool = False,
) -> pl.DataFrame:
    """Return ``left`` in its order with a new column for each of ``values``: new name -> column of ``right``.

    The value is that of the last ``right`` row of the same ``by`` at or before the instant ``at``, or with ``after``
    that of the first row at or after it; null if there is no such row. ``right_at`` is the instant's column in
    ``right`` if it differs from ``at``. Each value is found separately: rows of ``right`` with a null instant or value
    are skipped. Rows of ``left`` with a null instant get null. Null keys equal each other. Of several values at an
    instant the greatest counts, with ``after`` the least, so that the result does not depend on the order of ``right``.
    """
    if left.is_empty():
        return left.with_columns(pl.lit(None, right.schema[column]).alias(name) for name, column in values.items())
    known = right.filter(pl.col(right_at or at).is_not_null())
    asked_key, known_key = key_codes(by, left, known)
    asked_at, is_asked = column_numbers(left, at)
    known_at, _ = column_numbers(known, right_at or at)
    side = "after" if after else "before"
    columns = []
    for name, column in values.items():
        value = known[column]
        rows = value.arg_sort().to_numpy()[value.null_count() :].astype(np.int64)  # nulls come first
        place = nearest(asked_key, asked_at, known_key[rows], known_at[rows], side=side)
        row = np.append(rows, NOWHERE)[np.where(is_asked, place, NOWHERE)]  # NOWHERE is -1, the last place
        columns.append(pl.Series(name, taken(value.to_arrow(), row), value.dtype))
    return left.with_columns(columns)


def nearest(
    asked_key: Numbers, asked_at: Numbers, known_key: Numbers, known_at: Numbers, *, side: str = "before"
) -> Numbers:
    """Return for each query the nearest row of ``known`` with the same key, NOWHERE if there is none.

    ``side``: ``before`` is the last at or before the instant, ``strictly_before`` excludes it, ``after`` is the first
    at or after it. Of several known rows at an instant the last one counts, or the first one with ``after``.

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
    """Return the same order in numbers from 0, small enough to be combined with a key's number."""
    low, high = asked.min(initial=known.min()), asked.max(initial=known.max())
    if (int(high) - int(low) + 1) * (len(asked) + len(known) + 1) < _MOST:
        return asked - low, known - low
    both = ranks(np.concatenate([asked, known]))
    return both[: len(asked)], both[len(asked) :]
