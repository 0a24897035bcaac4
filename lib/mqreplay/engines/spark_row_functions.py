"""Row functions as UDFs of Spark: Arrow UDFs, and pandas UDFs before PySpark 4.1, which brought Arrow UDFs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa

from mqreplay.engines.packing import packed, unpacked
from mqreplay.engines.passes import RowBefore, RowFunction
from mqreplay.lake.contract import Contract

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame


COMPUTED = "_computed"


def with_computed(
    rows: DataFrame, of_row: RowFunction[Any, Any], inputs: Any, read: Contract, answers: Contract
) -> DataFrame:
    """Return the rows with the columns of a row function. ``read`` and ``answers`` type what it reads and gives."""
    from pyspark.sql import functions as F

    data = packed((of_row.function, of_row.settings(inputs)))
    fields = {field.name: field for field in read.arrow_schema}
    if (before := of_row.before) is not None:
        rows = with_before(rows, before, inputs)
        fields[before.name] = answers.arrow_schema.field(before.name)
    taken = pa.schema([fields[name] for name in of_row.reads])
    made = pa.schema([answers.arrow_schema.field(name) for name in of_row.gives])
    is_arrow = hasattr(F, "arrow_udf") and not of_row.is_pandas
    as_udf, face = (F.arrow_udf, arrow_face) if is_arrow else (F.pandas_udf, pandas_face)  # type: ignore[attr-defined]
    body = face(data, taken, made)
    body.__name__ = of_row.function.__name__  # plans and Spark's UI show it
    udf = as_udf(body, answers.ddl(of_row.gives))
    return rows.withColumn(COMPUTED, udf(*of_row.reads)).select(*rows.columns, f"{COMPUTED}.*")


def with_before(rows: DataFrame, before: RowBefore[Any], inputs: Any) -> DataFrame:
    """Return the rows of the span with the column of the row before."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    begin, end = before.span(inputs)
    value, at = F.expr(before.value), F.expr(before.at)
    earlier = Window.partitionBy(*map(F.expr, before.by)).orderBy(at, value).rowsBetween(Window.unboundedPreceding, -1)
    last = F.last(value, ignorenulls=True).over(earlier)
    return rows.where((F.col(before.ts) >= begin) & (F.col(before.ts) < end)).withColumn(before.name, last)


def arrow_face(data: bytes, taken: pa.Schema, made: pa.Schema) -> Callable[..., pa.Array]:
    """Return the body of an Arrow UDF: arrays of the columns ``taken`` in, an array of structs of ``made`` out."""

    def face(*columns: pa.Array) -> pa.Array:
        answer = computed(data, columns, taken, made)
        return pa.StructArray.from_arrays([column.combine_chunks() for column in answer.columns], fields=list(made))

    return face


def computed(data: bytes, columns: Sequence[pa.Array], taken: pa.Schema, made: pa.Schema) -> pa.Table:
    """Return the columns ``made`` by a packed function and its settings, of arrays of the columns ``taken``."""
    function, settings = _function(data)
    rows = pl.DataFrame(pl.from_arrow(pa.Table.from_arrays(list(columns), names=taken.names)))
    return function(rows, settings).to_arrow().select(made.names).cast(made)


@lru_cache(maxsize=1)
def _function(data: bytes) -> tuple[Callable[[pl.DataFrame, Any], pl.DataFrame], Any]:
    function, settings = unpacked(data)
    return function, settings


def pandas_face(data: bytes, taken: pa.Schema, made: pa.Schema) -> Callable[..., pd.DataFrame]:
    """Return the body of a pandas UDF: Series of the columns ``taken`` in, a frame with the columns ``made`` out."""

    import pandas as pd

    def face(*columns: pd.Series) -> pd.DataFrame:
        arrays = [pa.Array.from_pandas(column, type=field.type) for column, field in zip(columns, taken, strict=True)]
        return computed(data, arrays, taken, made).to_pandas()

    face.__annotations__ = {"columns": pd.Series, "return": pd.DataFrame}  # PySpark reads them
    return face
