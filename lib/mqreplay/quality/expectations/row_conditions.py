"""Expectations that are true or false for each row: known brokers, CHECK constraints, unique keys."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from great_expectations.core.suite_parameters import SuiteParameterDict
from great_expectations.execution_engine import SparkDFExecutionEngine, SqlAlchemyExecutionEngine
from great_expectations.expectations import core
from great_expectations.expectations.expectation import ColumnMapExpectation
from great_expectations.expectations.metrics.map_metric_provider import (
    ColumnMapMetricProvider,
    MulticolumnMapMetricProvider,
    column_condition_partial,
)
from great_expectations.expectations.metrics.map_metric_provider.multicolumn_condition_partial import (
    multicolumn_condition_partial,
)

from mqreplay.quality.conditions import UNIQUE_COLUMN

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


class KnownBroker(ColumnMapMetricProvider):
    """True for a broker name in ``known_brokers``, of silver.broker and answered routes; for every name if empty."""

    condition_metric_name = "column_values.known_broker"
    condition_value_keys = ("known_brokers",)

    @column_condition_partial(engine=SparkDFExecutionEngine)
    def _spark(cls, column: Column, known_brokers: list[str], **kwargs: Any) -> Column:
        from pyspark.sql import functions as F

        return column.isin(known_brokers) if known_brokers else F.lit(True)

    @column_condition_partial(engine=SqlAlchemyExecutionEngine)
    def _sql(cls, column: sa.ColumnClause[str], known_brokers: list[str], **kwargs: Any) -> sa.ColumnElement[bool]:
        return column.in_(known_brokers) if known_brokers else sa.true()


class ExpectKnownBrokers(ColumnMapExpectation):
    """Expect every broker name to be one that silver.broker or a route names."""

    known_brokers: list[str] | SuiteParameterDict[str, Any]

    map_metric = "column_values.known_broker"
    success_keys = ("known_brokers", "mostly")
    args_keys = ("column",)


class CheckHolds(ColumnMapMetricProvider):
    """True if the condition is true."""

    condition_metric_name = "column_values.check_holds"

    @column_condition_partial(engine=SparkDFExecutionEngine)
    def _spark(cls, column: Column, **kwargs: Any) -> Column:
        return column

    @column_condition_partial(engine=SqlAlchemyExecutionEngine)
    def _sql(cls, column: sa.ColumnClause[bool], **kwargs: Any) -> sa.ColumnElement[bool]:
        return column


class ExpectCheckConstraintToHold(ColumnMapExpectation):
    """Expect a CHECK constraint of the table to hold; ``condition`` is its SQL, ``column`` its truth.

    The view of the table has its value as a column (quality/suite.py, truths). As in Delta, NULL does not satisfy it.
    """

    condition: str

    map_metric = "column_values.check_holds"
    args_keys = ("column", "condition")


class UniqueRows(MulticolumnMapMetricProvider):
    """True for a row without an equal row in these columns."""

    condition_metric_name = "multicolumn_values.unique_rows"
    condition_domain_keys = ("batch_id", "table", "column_list", "row_condition", "condition_parser", "ignore_row_if")

    @multicolumn_condition_partial(engine=SparkDFExecutionEngine)  # type: ignore[untyped-decorator]
    def _spark(cls, column_list: DataFrame, **kwargs: Any) -> Column:
        from pyspark.sql import functions as F

        hashed = column_list.groupBy(F.xxhash64(*column_list.columns)).count()
        return F.lit(True) if hashed.where("count > 1").isEmpty() else F.col(UNIQUE_COLUMN)

    @multicolumn_condition_partial(engine=SqlAlchemyExecutionEngine)  # type: ignore[untyped-decorator]
    def _sql(
        cls, column_list: list[sa.ColumnClause[Any]], _table: Any, _sqlalchemy_engine: sa.Engine, **kwargs: Any
    ) -> sa.ColumnElement[bool]:
        hashed = sa.func.hash(*column_list)
        equal = sa.select(sa.literal(1)).select_from(_table).group_by(hashed).having(sa.func.count() > 1).limit(1)
        with _sqlalchemy_engine.connect() as connection:
            return sa.column(UNIQUE_COLUMN) if connection.execute(equal).first() else sa.true()


# Suppress its warning that its own expectation is replaced.
_registry = logging.getLogger("great_expectations.expectations.registry")
_level = _registry.level
_registry.setLevel(logging.ERROR)


class ExpectCompoundColumnsToBeUnique(core.ExpectCompoundColumnsToBeUnique):
    """Expect no two rows to be equal in these columns.

    Equal rows have equal hashes, so distinct hashes, the usual case, prove distinct rows. Otherwise a window function
    finds the equal rows. It treats nulls as equal, while Great Expectations' own metric drops them.
    """

    map_metric = "multicolumn_values.unique_rows"


_registry.setLevel(_level)
