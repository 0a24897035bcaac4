"""Row functions as UDFs of Spark: Arrow UDFs, and pandas UDFs before PySpark 4.1, which brought Arrow UDFs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa

from mqreplay.engines.packing import packed, unpacked
from mqreplay.engines.passes import RowFunction
from mqreplay.lake.contract import Contract

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

COMPUTED = "_computed"


def with_computed(
    rows: DataFrame, of_row: RowFunction[Any, Any], inputs: Any, read: Contract, answers: Contract
) -> DataFrame:
    """Return the rows with the columns of a row function. ``read`` and ``answers`` type what it reads and gives."""
    from pyspark.sql import functions as F

    data = packed((of_row.function, of_row.settings(inputs)))
    taken = pa.schema([read.arrow_schema.field(name) for name in of_row.reads])
    made = pa.schema([answers.arrow_schema.field(name) for name in of_row.gives])
    if hasattr(F, "arrow_udf"):
        udf = F.arrow_udf(arrow_face(data, taken, made), answers.ddl(of_row.gives))
    else:
        from mqreplay.engines.pandas_face import pandas_face

        udf = F.pandas_udf(pandas_face(data, taken, made), answers.ddl(of_row.gives))  # type: ignore[attr-defined]
    return rows.withColumn(COMPUTED, udf(*of_row.reads)).select(*rows.columns, f"{COMPUTED}.*")


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
