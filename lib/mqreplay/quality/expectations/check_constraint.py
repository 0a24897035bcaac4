"""expect_check_constraint_to_hold: a CHECK of the contract is true in each row.

The condition is SQL. The view of the table has its value as a column (quality/suite.py, truths). As in Delta, NULL does
not satisfy a condition.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from great_expectations.execution_engine import SqlAlchemyExecutionEngine
from great_expectations.expectations.expectation import ColumnMapExpectation
from great_expectations.expectations.metrics.map_metric_provider import (
    ColumnMapMetricProvider,
    column_condition_partial,
)


def check_column(name: str) -> str:
    """Return the column with the value of the CHECK ``name``."""
    return f"check_{name}"


class CheckHolds(ColumnMapMetricProvider):
    """True if the condition is true."""

    condition_metric_name = "column_values.check_holds"

    @column_condition_partial(engine=SqlAlchemyExecutionEngine)
    def _sql(cls, column: sa.ColumnClause[bool], **kwargs: Any) -> sa.ColumnElement[bool]:
        return column


class ExpectCheckConstraintToHold(ColumnMapExpectation):
    """Expect a CHECK constraint of the table to hold; ``condition`` is its SQL, ``column`` its truth."""

    condition: str

    map_metric = "column_values.check_holds"
    args_keys = ("column", "condition")
