"""Find equal rows of Arrow columns without making Python objects.

A column becomes integers that are equal if its values are equal: leaves by Arrow's dictionary, structs by
combining their fields' integers, lists and maps by the bytes of their items' integers. So a rule is called once for
each distinct input of a batch, at about the cost of hashing the columns.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from mqreplay.evidence.arrays.frame_arrays import Numbers, whole_array

Codes = npt.NDArray[np.int64]


def distinct_rows(columns: Sequence[pa.Array]) -> tuple[Codes, Codes]:
    """Return (places, row_of): row_of[places[i]] is the first row equal to row i in all columns."""
    places = _combine([_codes(column) for column in columns])
    row_of = np.empty(int(places.max(initial=-1)) + 1, dtype=np.int64)
    # The last assignment to a place remains: in reverse order, that is the first row.
    row_of[places[::-1]] = np.arange(len(places) - 1, -1, -1)
    return places, row_of


def distinct_cases(rows: pl.DataFrame) -> tuple[pl.DataFrame, Codes]:
    """Return the distinct rows, and for each row the number of its like among them."""
    places, row_of = distinct_rows([rows[name].to_arrow() for name in rows.columns])
    return rows[row_of], places


def _codes(column: pa.Array) -> Codes:
    """Return integers from 0 without gaps, equal if the values are equal; null equals null."""
    if pa.types.is_struct(column.type):
        return _combine([*(_codes(field) for field in column.flatten()), *_validity(column)], len(column))
    if pa.types.is_map(column.type):
        return _list_codes(column, _combine([_codes(column.keys), _codes(column.items)]))
    if pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
        return _list_codes(column, _codes(column.values))
    return _dense(column)


def _list_codes(column: pa.Array, items: Codes) -> Codes:
    """Return codes of lists whose items have these codes: the bytes of a list's items are its key."""
    offsets = column.offsets.to_numpy().astype(np.int64) * items.itemsize
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(items))]
    keys = pa.Array.from_buffers(pa.large_binary(), len(column), buffers)
    return _combine([_dense(keys), *_validity(column)], len(column))


def _validity(column: pa.Array) -> list[Codes]:
    return [column.is_null().cast(pa.int64()).to_numpy()] if column.null_count else []


def _combine(columns: Sequence[Codes], rows: int = 0) -> Codes:
    """Return one code for each row of several columns of codes."""
    if not columns:
        return np.zeros(rows, dtype=np.int64)
    combined = columns[0]
    for codes in columns[1:]:
        # Both are below the number of rows (or items) of a batch, so the product fits 64 bits.
        width = int(codes.max(initial=0)) + 1
        if width > 1:
            combined = _dense(pa.array(combined * width + codes))
    return combined


def _dense(column: pa.Array) -> Codes:
    return column.dictionary_encode(null_encoding="encode").indices.to_numpy().astype(np.int64)


def common_codes(*tables: Sequence[pa.Array]) -> list[Numbers]:
    """Return for each table's key columns one number per row, equal if the keys are, also between tables."""
    columns = [pa.concat_arrays([whole_array(column) for column in same]) for same in zip(*tables, strict=True)]
    places, _ = distinct_rows(columns)
    return np.split(places, np.cumsum([len(table[0]) for table in tables])[:-1])


def key_codes(names: Sequence[str], *frames: pl.DataFrame) -> list[Numbers]:
    """Return for each frame one number per row, equal if the columns ``names`` are, also between frames."""
    return common_codes(*[[frame[name].to_arrow() for name in names] for frame in frames])


def distinct_values(rows: pl.DataFrame, columns: Sequence[str]) -> tuple[pl.DataFrame, Numbers]:
    """Return the distinct values of the columns, and for each row the number of its values among them."""
    groups = rows.select(columns).with_row_index("_row").group_by(columns).agg("_row").with_row_index("_number")
    number_of = groups.select("_row", "_number").explode("_row").sort("_row")["_number"]
    return groups.select(columns), number_of.to_numpy().astype(np.int64)


def value_numbers(rows: pl.DataFrame, columns: Sequence[str], name: str) -> pl.Series:
    """Return a column called ``name``: for each row the number of its values in the columns."""
    return pl.Series(name, distinct_values(rows, columns)[1])
