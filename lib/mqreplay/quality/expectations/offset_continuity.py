"""expect_offset_continuity: the offset changes of one queue, group and source form a chain.

silver.offset_change holds only what changed. So in order of time each row must begin where the row before
it ended (previous_offset = new_offset of the row before; null where the entry is gone), and end no earlier
than it began. A row that does not was lost, doubled or read out of order: an error of our data. That an
offset moved backwards is not: a rewind is a fact about the cluster, and gold.offset_continuity tells of it.
"""

from __future__ import annotations

from typing import Any

import pandas as pd
from great_expectations.core.metric_function_types import MetricPartialFunctionTypes
from great_expectations.execution_engine import PandasExecutionEngine, SparkDFExecutionEngine
from great_expectations.expectations.expectation import MulticolumnMapExpectation
from great_expectations.expectations.metrics.map_metric_provider import MulticolumnMapMetricProvider
from great_expectations.expectations.metrics.map_metric_provider.multicolumn_condition_partial import (
    multicolumn_condition_partial,
)
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from mqreplay.standing import CHAIN

LINK = ["previous_offset", "new_offset", "from_ts", "to_ts"]


class OffsetContinuity(MulticolumnMapMetricProvider):
    """True of a row that goes on where the row before it, in its chain, ended."""

    condition_metric_name = "multicolumn_values.offset_continuity"
    condition_domain_keys = (
        "batch_id",
        "table",
        "column_list",
        "row_condition",
        "condition_parser",
        "ignore_row_if",
    )

    @multicolumn_condition_partial(engine=PandasExecutionEngine)
    def _pandas(cls, column_list: pd.DataFrame, **kwargs: Any) -> pd.Series:
        rows = column_list.sort_values("to_ts", kind="stable")
        chain = rows.groupby(CHAIN, dropna=False, sort=False)
        before = chain["new_offset"].shift()
        same = (rows["previous_offset"] == before).fillna(False).astype(bool)
        linked = same | (rows["previous_offset"].isna() & before.isna()) | (chain.cumcount() == 0)
        forwards = rows["from_ts"].isna() | (rows["from_ts"] <= rows["to_ts"])
        return (linked & forwards).reindex(column_list.index).astype(bool)

    @multicolumn_condition_partial(
        engine=SparkDFExecutionEngine, partial_fn_type=MetricPartialFunctionTypes.WINDOW_CONDITION_FN
    )
    def _spark(cls, column_list: DataFrame, **kwargs: Any) -> Column:
        # The hash first: sorts then compare the columns only where hashes are equal.
        chain = Window.partitionBy(F.xxhash64(*CHAIN), *CHAIN).orderBy("to_ts")
        before = F.lag("new_offset").over(chain)
        linked = F.col("previous_offset").eqNullSafe(before) | (F.row_number().over(chain) == 1)
        return linked & (F.col("from_ts").isNull() | (F.col("from_ts") <= F.col("to_ts")))


class ExpectOffsetContinuity(MulticolumnMapExpectation):
    """Expect each offset change to begin where the change before it ended."""

    column_list: list[str] = CHAIN + LINK
    # A row whose columns are all null would be out of the chain, not outside of it.
    ignore_row_if: str = "never"

    map_metric = "multicolumn_values.offset_continuity"
    args_keys = ("column_list",)
