"""Join rows to the nearest row before or after an instant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from mqreplay.judge.nearest import NOWHERE, common_codes, nearest, numbers, taken


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
    """Return ``left``, in its order, with one more column for each of ``values``: new name -> column of ``right``.

    The value is that of the last ``right`` row of the same ``by`` at or before the instant ``at``, or with ``after``
    that of the first row at or after it; null where there is no such row. ``right_at`` names the instant's column in
    ``right`` if it is not called ``at`` there. Each value is looked up by itself: rows of ``right`` whose instant or
    value is null are passed over. Rows of ``left`` whose instant is null get null. Null keys equal each other. Of
    several values at one instant the greatest counts, with ``after`` the least, so that the result does not depend on
    the order of ``right``.
    """
    known = right.filter(pl.col(right_at or at).is_not_null())
    asked_key, known_key = common_codes(*[[frame[name].to_arrow() for name in by] for frame in (left, known)])
    asked_at, is_asked = numbers(left[at].to_arrow())
    known_at, _ = numbers(known[right_at or at].to_arrow())
    side = "after" if after else "before"
    columns = []
    for name, column in values.items():
        value = known[column]
        rows = value.arg_sort().to_numpy()[value.null_count() :].astype(np.int64)  # nulls come first
        place = nearest(asked_key, asked_at, known_key[rows], known_at[rows], side=side)
        row = np.append(rows, NOWHERE)[np.where(is_asked, place, NOWHERE)]  # NOWHERE is -1, the last place
        columns.append(pl.Series(name, taken(value.to_arrow(), row), value.dtype))
    return left.with_columns(columns)
