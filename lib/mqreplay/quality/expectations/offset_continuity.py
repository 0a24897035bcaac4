"""expect_offset_continuity: the offset changes of one queue, group and source form a chain.

silver.offset_change has only changes. So in order of time each row must start with the offset of the row before
(previous_offset = new_offset of the row before; null if the entry was removed), and must not end before its start.
Otherwise a row was lost, duplicated or read out of order, which is an error of mqreplay's data. Nor may a row be a
rewind without a known cause by gold.offset_continuity: that is a fact about the cluster which nobody has explained.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import sqlalchemy as sa
from great_expectations.execution_engine import SparkDFExecutionEngine, SqlAlchemyExecutionEngine
from great_expectations.expectations.expectation import MulticolumnMapExpectation
from great_expectations.expectations.metrics.map_metric_provider import MulticolumnMapMetricProvider
from great_expectations.expectations.metrics.map_metric_provider.multicolumn_condition_partial import (
    multicolumn_condition_partial,
)

from mqreplay.ingest.offset_checkpoint import CHAIN
from mqreplay.quality.conditions import EXPLAINED_COLUMN, LINK, LINKED_COLUMN

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


class OffsetContinuity(MulticolumnMapMetricProvider):
    """True for a row that continues the row before it in its chain, and is no rewind without a cause."""

    condition_metric_name = "multicolumn_values.offset_continuity"
    condition_domain_keys = (
        "batch_id",
        "table",
        "column_list",
        "row_condition",
        "condition_parser",
        "ignore_row_if",
    )

    @multicolumn_condition_partial(engine=SparkDFExecutionEngine)  # type: ignore[untyped-decorator]
    def _spark(cls, column_list: DataFrame, **kwargs: Any) -> Column:
        from pyspark.sql import functions as F

        return F.col(LINKED_COLUMN) & F.col(EXPLAINED_COLUMN)

    @multicolumn_condition_partial(engine=SqlAlchemyExecutionEngine)  # type: ignore[untyped-decorator]
    def _sql(cls, column_list: list[sa.ColumnClause[Any]], **kwargs: Any) -> sa.ColumnElement[bool]:
        return sa.and_(sa.column(LINKED_COLUMN), sa.column(EXPLAINED_COLUMN))


class ExpectOffsetContinuity(MulticolumnMapExpectation):
    """Expect each offset change to begin where the change before it ended, and to be no rewind without a cause."""

    column_list: list[str] = CHAIN + LINK
    # A row with only null columns breaks the chain; it must not be ignored.
    ignore_row_if: Literal["all_values_are_missing", "any_value_is_missing", "never"] = "never"

    map_metric = "multicolumn_values.offset_continuity"
    args_keys = ("column_list",)
