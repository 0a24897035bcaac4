"""expect_known_brokers: every broker name is known in the recording.

Known brokers are those of silver.broker and of answered routes. If the recording has neither, the expectation passes.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from great_expectations.core.suite_parameters import SuiteParameterDict
from great_expectations.execution_engine import SqlAlchemyExecutionEngine
from great_expectations.expectations.expectation import ColumnMapExpectation
from great_expectations.expectations.metrics.map_metric_provider import (
    ColumnMapMetricProvider,
    column_condition_partial,
)


class KnownBroker(ColumnMapMetricProvider):
    """True for a broker name in ``known_brokers``; for every name if that is empty."""

    condition_metric_name = "column_values.known_broker"
    condition_value_keys = ("known_brokers",)

    @column_condition_partial(engine=SqlAlchemyExecutionEngine)
    def _sql(cls, column: sa.ColumnClause[str], known_brokers: list[str], **kwargs: Any) -> sa.ColumnElement[bool]:
        return column.in_(known_brokers) if known_brokers else sa.true()


class ExpectKnownBrokers(ColumnMapExpectation):
    """Expect every broker name to be one that silver.broker or a route names."""

    known_brokers: list[str] | SuiteParameterDict[str, Any]

    map_metric = "column_values.known_broker"
    success_keys = ("known_brokers", "mostly")
    args_keys = ("column",)
