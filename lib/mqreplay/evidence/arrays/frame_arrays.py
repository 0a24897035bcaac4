"""Columns of frames and of Arrow as numpy arrays, and back."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

Numbers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
LEAST, MOST = np.iinfo(np.int64).min, np.iinfo(np.int64).max
NOWHERE = -1  # the number of no row


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
