"""expect_table_to_be_fresh: a table has rows up to the end of the recording.

If a recorder dies in the night, its table ends early. So the newest instant of the column may be at most
``max_age_minutes`` older than the newest instant of the cluster's recordings. The system clock is not used, so the
result does not change with time. A table without rows, and a day without rows, pass: such evidence was not recorded
(gold.replay_gap reports that). A table with fewer rows than ``min_rows`` passes too: the output of a few commands is
not a series.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from great_expectations.core.suite_parameters import SuiteParameterDict
from great_expectations.execution_engine import ExecutionEngine, SparkDFExecutionEngine, SqlAlchemyExecutionEngine
from great_expectations.expectations.expectation import ColumnAggregateExpectation
from great_expectations.expectations.metrics.column_aggregate_metric_provider import (
    ColumnAggregateMetricProvider,
    column_aggregate_partial,
)

if TYPE_CHECKING:
    from pyspark.sql import Column

METRIC, ROWS = "column.newest_instant", "table.row_count"


class NewestInstant(ColumnAggregateMetricProvider):
    """Epoch milliseconds of the newest instant, or null."""

    metric_name = METRIC

    @column_aggregate_partial(engine=SparkDFExecutionEngine)
    def _spark(cls, column: Column, **kwargs: Any) -> Column:
        from pyspark.sql import functions as F

        return F.unix_millis(F.max(column))

    @column_aggregate_partial(engine=SqlAlchemyExecutionEngine)
    def _sql(cls, column: sa.ColumnClause[dt.datetime], **kwargs: Any) -> sa.ColumnElement[int]:
        return sa.func.epoch_ms(sa.func.max(column))


class ExpectTableToBeFresh(ColumnAggregateExpectation):
    """Expect the newest instant of a column to be near the end of the recording (epoch milliseconds)."""

    max_age_minutes: float
    recording_end_ms: int | SuiteParameterDict[str, Any] | None
    min_rows: int = 0

    metric_dependencies = (METRIC, ROWS)
    success_keys = ("max_age_minutes", "recording_end_ms", "min_rows")
    args_keys = ("column", "max_age_minutes")

    def _validate(
        self,
        metrics: dict[str, Any],
        runtime_configuration: dict[str, Any] | None = None,
        execution_engine: ExecutionEngine[Any] | None = None,
    ) -> dict[str, Any]:
        newest, end = metrics[METRIC], self._get_success_kwarg("recording_end_ms")
        if 0 < metrics[ROWS] < self._get_success_kwarg("min_rows"):
            return {"success": True, "result": {"observed_value": "too few rows for a series"}}
        if newest is None or end is None:
            return {"success": True, "result": {"observed_value": "no such evidence recorded"}}
        age_minutes = round(max(0, end - newest) / 60_000, 3)
        observed = {"newest": _utc(newest), "recording_end": _utc(end), "age_minutes": age_minutes}
        fresh = age_minutes <= self._get_success_kwarg("max_age_minutes")
        text = f"newest {observed['newest']}, {age_minutes:g} minutes before the end of the recording"
        return {"success": fresh, "result": {"observed_value": text, "details": observed}}


def _utc(epoch_ms: int) -> str:
    instant = dt.datetime.fromtimestamp(epoch_ms / 1000, tz=dt.UTC)
    return instant.isoformat(timespec="milliseconds").replace("+00:00", "Z")
