"""Row functions as UDFs of Spark: Arrow UDFs, and pandas UDFs before PySpark 4.1, which brought Arrow UDFs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa

from mqreplay.engines.packing import packed, unpacked
from mqreplay.engines.passes import CaseRule, RowBefore, RowFunction
from mqreplay.lake.contract import Contract

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame


COMPUTED = "_computed"


def with_computed(
    rows: DataFrame, of_row: RowFunction[Any, Any], inputs: Any, read: Contract, answers: Contract
) -> DataFrame:
    """Return the rows with the columns of a row function. ``read`` and ``answers`` type what it reads and gives."""
    fields = {field.name: field for field in read.arrow_schema}
    if (before := of_row.before) is not None:
        rows = with_before(rows, before, inputs)
        fields[before.name] = answers.arrow_schema.field(before.name)
    taken = pa.schema([fields[name] for name in of_row.reads])
    made = pa.schema([answers.arrow_schema.field(name) for name in of_row.gives])
    udf = as_udf(of_row.function, of_row.settings(inputs), taken, made, is_pandas=of_row.is_pandas)
    return rows.withColumn(COMPUTED, udf(*of_row.reads)).select(*rows.columns, f"{COMPUTED}.*")


def with_answers(asked: DataFrame, rules: Sequence[CaseRule[Any, Any]], inputs: Any) -> DataFrame:
    """Return the rows; the column of each rule, by its name, has the answers in place of the cases."""
    answers = {}
    for rule in rules:
        udf = as_udf(rule.function, rule.settings(inputs), rule.reads, rule.gives)
        answers[rule.name] = udf(*(f"{rule.name}.{field}" for field in rule.reads.names))
    return asked.withColumns(answers)


def as_udf(
    function: Callable[[pl.DataFrame, Any], pl.DataFrame],
    settings: Any,
    taken: pa.Schema,
    made: pa.Schema,
    *,
    is_pandas: bool = False,
) -> Any:
    """Return a function of columns ``taken`` as a UDF of Spark, whose answers are structs of ``made``."""
    from pyspark.sql import functions as F
    from pyspark.sql.pandas.types import from_arrow_schema

    is_arrow = hasattr(F, "arrow_udf") and not is_pandas
    udf, face = (F.arrow_udf, arrow_face) if is_arrow else (F.pandas_udf, pandas_face)  # type: ignore[attr-defined]
    body = face(packed((function, settings)), taken, made)
    body.__name__ = function.__name__  # plans and Spark's UI show it
    return udf(body, from_arrow_schema(made))


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
    """Return the columns ``made`` by a packed function and its settings, of arrays of the columns ``taken``.

    Rows that have no value are no cases: their answers are null.
    """
    function, settings = _function(data)
    rows = pl.DataFrame(pl.from_arrow(pa.Table.from_arrays(list(columns), names=taken.names)))
    is_case = rows.select(pl.any_horizontal(pl.all().is_not_null())).to_series()
    answers = function(rows.filter(is_case), settings)
    if not is_case.all():
        answers = answers[pl.select(pl.when(is_case).then(is_case.cum_sum() - 1)).to_series()]
    return answers.to_arrow().select(made.names).cast(made)


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
