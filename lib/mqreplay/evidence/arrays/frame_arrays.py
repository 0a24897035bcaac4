"""Columns of frames and of Arrow as numpy arrays, and back; runs of equal rows in sorted columns; slices of wide rows.

A rebalance may name 1,000 clients and 1,000 queues, in thousands of rows: code that works on items processes slices of
rows, so that its memory does not grow with the night. Differences and sums of offsets saturate: a broker stores any
offset, even Long.MAX_VALUE.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

Numbers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
INT64_MIN, INT64_MAX = np.iinfo(np.int64).min, np.iinfo(np.int64).max
# More messages than any queue holds. A broker stores any offset, even Long.MAX_VALUE: offsets with a larger distance
# were set, not consumed.
COUNTLESS = 2**53
NOWHERE = -1  # the number of no row
MOST_ITEMS = 500_000  # items in the lists of a slice: about 20 MB of names


def numbers(column: pa.Array | pa.ChunkedArray) -> tuple[Numbers, Mask]:
    """Return a column of integers or instants (microseconds) and where it is not null; null is 0."""
    plain = whole_array(column)
    if pa.types.is_timestamp(plain.type):
        plain = plain.cast(pa.timestamp("us", plain.type.tz)).cast(pa.int64())
    there = plain.is_valid().to_numpy(zero_copy_only=False)
    return plain.cast(pa.int64()).fill_null(0).to_numpy().astype(np.int64, copy=False), there


def whole_array(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return the column as one array."""
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def column_numbers(frame: pl.DataFrame, name: str) -> tuple[Numbers, Mask]:
    """Return a column of integers or instants (microseconds) with null as 0, and where it is not null."""
    return numbers(frame[name].to_arrow())


def int64_series(values: Numbers, known: Mask) -> pl.Series:
    """Return the values as a column, null where they are unknown."""
    return pl.Series(maybe(values, known))


def gathered(column: pl.Series, rows: Numbers) -> pl.Series:
    """Return the column's values at those rows, null for NOWHERE."""
    return column.gather(int64_series(rows, rows != NOWHERE))


def taken(column: pa.Array | pa.ChunkedArray, rows: Numbers) -> pa.Array:
    """Return the values of the rows, null for NOWHERE."""
    return whole_array(column).take(pa.array(rows, pa.int64(), mask=rows == NOWHERE))


def maybe(values: Numbers, there: Mask) -> pa.Array:
    """Return numbers, null where they are missing."""
    return pa.array(values, pa.int64(), mask=~there)


def instants(values: Numbers, there: Mask | None = None) -> pa.Array:
    """Return microseconds as instants."""
    return pa.array(values, pa.int64(), mask=None if there is None else ~there).cast(pa.timestamp("us", "UTC"))


def lists(bounds: Numbers, fields: Mapping[str, pa.Array]) -> pa.Array:
    """Return lists of structs: the list of row i starts at ``bounds[i]``."""
    structs = pa.StructArray.from_arrays(list(fields.values()), names=list(fields))
    kind = pa.list_(pa.field("element", structs.type))  # Spark's name for list items
    return pa.ListArray.from_arrays(pa.array(bounds.astype(np.int32)), structs, type=kind)


def starts(*by: Numbers) -> Numbers:
    """Return the first row of each run of equal rows, of columns sorted together."""
    changed = np.zeros(len(by[0]), bool)
    changed[:1] = True
    for column in by:
        changed[1:] |= column[1:] != column[:-1]
    return np.flatnonzero(changed)


def lasts(first: Numbers, rows: int) -> Numbers:
    """Return the last row of each run, from the first rows."""
    return np.append(first[1:], rows)[: len(first)] - 1


def lengths(first: Numbers, rows: int) -> Numbers:
    """Return the length of each run, from the first rows."""
    return np.diff(np.append(first, rows))


def ranks(*by: Numbers) -> Numbers:
    """Return the rank of each row in the order of several columns; equal rows share a rank."""
    order = np.lexsort(by[::-1])
    changed = np.zeros(len(order), np.int64)
    changed[starts(*(column[order] for column in by))[1:]] = 1
    found = np.empty(len(order), np.int64)
    found[order] = np.cumsum(changed)
    return found


def spread(begin: Numbers, count: Numbers) -> Numbers:
    """Return all positions of several ranges, one after the other, from their starts and lengths."""
    return np.arange(count.sum()) + np.repeat(begin - (np.cumsum(count) - count), count)


def one_later(values: npt.NDArray[Any], first: int = 0) -> npt.NDArray[Any]:
    """Return for each row the value of the row before it; for the first row ``first``."""
    return np.append(np.array([first], values.dtype), values[:-1])[: len(values)]


def runs(law: np.ufunc, values: npt.NDArray[Any], first: Numbers) -> npt.NDArray[Any]:
    """Return one value per run: its values reduced by ``law``, such as np.maximum."""
    return law.reduceat(values, first) if len(first) else values[:0]


def last_such(such: Mask, first: Numbers) -> Numbers:
    """Return for each row the last row of its run up to it for which ``such`` is true, or NOWHERE."""
    last = np.maximum.accumulate(np.where(such, np.arange(len(such)), NOWHERE))
    return np.where(last >= np.repeat(first, lengths(first, len(such))), last, NOWHERE)


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


def less(a: str | pl.Expr, b: str | pl.Expr) -> pl.Expr:
    """Return ``a`` - ``b`` of two Int64 columns, clipped to [-INT64_MAX, INT64_MAX]; null if one is null."""
    one, other = (pl.col(side) if isinstance(side, str) else side for side in (a, b))
    wide = one.cast(pl.Int128) - other.cast(pl.Int128)
    return wide.clip(-INT64_MAX, INT64_MAX).cast(pl.Int64)


def total(counts: str | pl.Expr) -> pl.Expr:
    """Return the sum of a group's counts (none negative), at most INT64_MAX; null if the group has no count."""
    count = pl.col(counts) if isinstance(counts, str) else counts
    return pl.when(count.count() > 0).then(count.cast(pl.Int128).sum().clip(0, INT64_MAX).cast(pl.Int64))
