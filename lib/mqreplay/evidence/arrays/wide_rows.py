"""Slices of rows with long lists: a rebalance may name 1,000 clients and 1,000 queues, in thousands of rows.

Code that works on list items processes slices of rows, so that its memory does not grow with the night.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl

from mqreplay.evidence.arrays.frame_arrays import Numbers

MOST_ITEMS = 500_000  # items in the lists of a slice: about 20 MB of names


def slices(
    rows: pl.DataFrame, lists: Sequence[str], together: Sequence[str], most_items: int = MOST_ITEMS
) -> Iterator[Numbers]:
    """Yield row numbers in slices whose ``lists`` have at most ``most_items`` items in all; a longer row is alone.

    Rows are in the order of the columns ``together``, so that equal rows are mostly in one slice.
    """
    if rows.is_empty():
        return
    order = rows.select(pl.arg_sort_by(*together)).to_series().to_numpy().astype(np.int64)
    items = rows.select(pl.sum_horizontal(pl.col(name).list.len().fill_null(0) + 1 for name in lists)).to_series()
    before = np.cumsum(items.to_numpy().astype(np.int64)[order])
    start = 0
    while start < len(order):
        taken = before[start - 1] if start else 0
        end = max(int(np.searchsorted(before, taken + most_items, side="right")), start + 1)
        yield order[start:end]
        start = end
