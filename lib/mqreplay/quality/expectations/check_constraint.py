"""expect_check_constraint_to_hold: a CHECK of the contract, true in each row.

The condition is SQL, and Spark evaluates it, as it does when Delta enforces it: quality/frames.py adds its
truth to the rows as a column, so that it means the same whichever engine counts. As in Delta, a condition
that is NULL does not hold.
"""

from __future__ import annotations

from typing import Any

import pandas as pd
from great_expectations.execution_engine import PandasExecutionEngine, SparkDFExecutionEngine
from great_expectations.expectations.expectation import ColumnMapExpectation
from great_expectations.expectations.metrics.map_metric_provider import (
    ColumnMapMetricProvider,
    column_condition_partial,
)
from pyspark.sql import Column


def check_column(name: str) -> str:
    """The column that holds the truth of the CHECK ``name`` in each row."""
    return f"check_{name}"


class CheckHolds(ColumnMapMetricProvider):
    """True where the condition is."""

    condition_metric_name = "column_values.check_holds"

    @column_condition_partial(engine=PandasExecutionEngine)
    def _pandas(cls, column: pd.Series, **kwargs: Any) -> pd.Series:
        return column.astype(bool)

    @column_condition_partial(engine=SparkDFExecutionEngine)
    def _spark(cls, column: Column, **kwargs: Any) -> Column:
        return column


class ExpectCheckConstraintToHold(ColumnMapExpectation):
    """Expect a CHECK constraint of the table to hold; ``condition`` is its SQL, ``column`` its truth."""

    condition: str

    map_metric = "column_values.check_holds"
    args_keys = ("column", "condition")
