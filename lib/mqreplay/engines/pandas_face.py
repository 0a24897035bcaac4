"""The body of a pandas UDF. PySpark reads its type hints, so pandas is loaded with this file, where it is used."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd
import pyarrow as pa

from mqreplay.engines.spark_row_functions import computed


def pandas_face(data: bytes, taken: pa.Schema, made: pa.Schema) -> Callable[..., pd.DataFrame]:
    """Return the body of a pandas UDF: Series of the columns ``taken`` in, a frame with the columns ``made`` out."""

    def face(*columns: pd.Series) -> pd.DataFrame:
        arrays = [pa.Array.from_pandas(column, type=field.type) for column, field in zip(columns, taken, strict=True)]
        return computed(data, arrays, taken, made).to_pandas()

    return face
