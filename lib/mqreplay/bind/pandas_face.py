"""The Python body of the pandas face, which runs in Spark's Python workers: Series in, answers out, without loss.

pandas turns an integer column with a null into floats, which are wrong from 2**53 on, and a map becomes a
dict, which cannot have a struct as its key; a struct becomes a DataFrame, in which a null struct and a struct
of nulls are one. So an integer goes as two columns, itself with 0 for null and whether it is null; a map as
the array of its entries; and a struct as an array of itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pandas as pd
import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import IntegralType, MapType, StructType

from mqreplay.bind.faces import as_pairs, distinct_answers
from mqreplay.bind.values import Answering


def pandas_face(answer: Answering, argument_types: Sequence[pa.DataType]) -> Callable[..., pd.DataFrame]:
    """Return the body of a pandas UDF over `pandas_columns`. Values stay objects: no integer becomes a float."""

    def face(*series: pd.Series) -> pd.DataFrame:
        answers, places = distinct_answers(answer, arrow_columns(series, argument_types))
        frame = pd.DataFrame(
            {
                "value": pd.Series([value for value, _ in answers], dtype=object),
                "error": pd.Series([error for _, error in answers], dtype=object),
            }
        )
        return frame if places is None else frame.take(places).reset_index(drop=True)

    return face


def pandas_columns(columns: Sequence[Column], types: StructType) -> list[Column]:
    """Return the columns to send for arguments of these types; those at the end may be left out."""
    sent = []
    for column, field in zip(columns, types, strict=False):
        if isinstance(field.dataType, IntegralType):
            sent += [F.coalesce(column, F.lit(0)), column.isNull()]
        elif isinstance(field.dataType, MapType):
            sent.append(F.map_entries(column.cast(field.dataType)))
        elif isinstance(field.dataType, StructType):
            sent.append(F.when(column.isNotNull(), F.array(column)))
        else:
            sent.append(column)
    return sent


def arrow_columns(series: Sequence[pd.Series], types: Sequence[pa.DataType]) -> list[pa.Array]:
    """Return the arguments as Arrow arrays again, from the columns of pandas_columns."""
    columns, rest = [], iter(series)
    for each, kind in zip(rest, types, strict=False):
        if pa.types.is_integer(kind):
            columns.append(pa.Array.from_pandas(each, mask=next(rest).to_numpy(dtype=bool)))
        elif pa.types.is_struct(kind):
            columns.append(pa.array([None if e is None else e[0] for e in each], type=kind))
        elif (as_map := as_pairs(kind)) is not None:
            columns.append(pa.array([as_map(e) for e in each], type=kind))
        else:
            columns.append(pa.Array.from_pandas(each, type=kind))
    return columns
