"""Numbers for the values of rows: equal where the values are equal. Windows over numbers are faster than over names."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from mqreplay.judge.nearest import Numbers


def distinct_values(rows: pl.DataFrame, columns: Sequence[str]) -> tuple[pl.DataFrame, Numbers]:
    """Return the distinct values of the columns, and for each row the number of its values among them."""
    groups = rows.select(columns).with_row_index("_row").group_by(columns).agg("_row").with_row_index("_number")
    numbers = groups.select("_row", "_number").explode("_row").sort("_row")["_number"]
    return groups.select(columns), numbers.to_numpy().astype(np.int64)


def value_numbers(rows: pl.DataFrame, columns: Sequence[str], name: str) -> pl.Series:
    """Return a column called ``name``: for each row the number of its values in the columns."""
    return pl.Series(name, distinct_values(rows, columns)[1])
