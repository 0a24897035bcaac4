"""Columns of frames as numpy arrays, and back."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from mqreplay.judge.nearest import NOWHERE, Numbers, common_codes, numbers

Mask = npt.NDArray[np.bool_]


def key_codes(names: Sequence[str], *frames: pl.DataFrame) -> list[Numbers]:
    """Return for each frame one number a row: equal where the columns ``names`` are, within and between frames."""
    return common_codes(*[[frame[name].to_arrow() for name in names] for frame in frames])


def column_numbers(frame: pl.DataFrame, name: str) -> tuple[Numbers, Mask]:
    """Return a column of integers or instants (microseconds), null as 0, and where it is not null."""
    return numbers(frame[name].to_arrow())


def int64_series(values: Numbers, known: Mask) -> pl.Series:
    """Return the values as a column, null where they are not known."""
    return pl.Series(pa.array(values, pa.int64(), mask=~known))


def gathered(column: pl.Series, rows: Numbers) -> pl.Series:
    """Return the column's values at those rows, null for NOWHERE."""
    return column.gather(int64_series(rows, rows != NOWHERE))
