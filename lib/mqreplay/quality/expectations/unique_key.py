"""expect_compound_columns_to_be_unique, as Great Expectations has it, but for how Spark is asked.

Rows that are equal have equal hashes: where no two hashes are equal, which is nearly always, no two rows are. Otherwise
a window says which they are. Great Expectations' own is partitioned by a struct of the columns, and Spark sorts structs
by comparing them field by field; with the hash before them columns are compared only where hashes are equal
(tools/bench/unique_key.py has the figures).
"""

from __future__ import annotations

import logging
from typing import Any

from great_expectations.core.metric_function_types import MetricPartialFunctionTypes
from great_expectations.execution_engine import SparkDFExecutionEngine
from great_expectations.expectations.metrics.map_metric_provider.multicolumn_condition_partial import (
    multicolumn_condition_partial,
)
from great_expectations.expectations.metrics.multicolumn_map_metrics.compound_columns_unique import (
    CompoundColumnsUnique,
)
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from mqreplay.quality.equal_hashes import equal_hashes

# It would warn that a metric of its own is replaced, which is the point.
_registry = logging.getLogger("great_expectations.expectations.registry")
_level = _registry.level
_registry.setLevel(logging.ERROR)


class UniqueByHash(CompoundColumnsUnique):
    """True of a row that no other row equals in these columns."""

    @multicolumn_condition_partial(
        engine=SparkDFExecutionEngine, partial_fn_type=MetricPartialFunctionTypes.WINDOW_CONDITION_FN
    )
    def _spark(cls, column_list: DataFrame, **kwargs: Any) -> Column:
        names = column_list.columns
        if not equal_hashes(column_list):
            return F.lit(True)
        return F.count(F.lit(1)).over(Window.partitionBy(F.xxhash64(*names), *names)) <= 1


_registry.setLevel(_level)
