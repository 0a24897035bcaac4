"""expect_offset_continuity: the offset changes of one queue, group and source form a chain.

silver.offset_change has only changes. So in order of time each row must start with the offset of the row before
(previous_offset = new_offset of the row before; null if the entry was removed), and must not end before its start.
Otherwise a row was lost, duplicated or read out of order, which is an error of mqreplay's data. Nor may a row be a
rewind without a known cause by gold.offset_continuity: that is a fact about the cluster which nobody has explained.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import sqlalchemy as sa
from great_expectations.execution_engine import SqlAlchemyExecutionEngine
from great_expectations.expectations.expectation import MulticolumnMapExpectation
from great_expectations.expectations.metrics.map_metric_provider import MulticolumnMapMetricProvider
from great_expectations.expectations.metrics.map_metric_provider.multicolumn_condition_partial import (
    multicolumn_condition_partial,
)

from mqreplay.ingest.offset_checkpoint import CHAIN

LINK = ["previous_offset", "new_offset", "from_ts", "to_ts"]
LINKED_COLUMN = "is_linked"  # column of the table's view: whether the row continues the row before it
REWINDS = "rewinds_without_cause"  # view of REWIND_KEY
REWIND_KEY = ["source_name", "topic", "consumer_group", "queue_id", "to_ts"]
ROW = "judged_row"  # the name of a row in the table's view
_IS_REWIND = " AND ".join(f"{REWINDS}.{name} IS NOT DISTINCT FROM {ROW}.{name}" for name in REWIND_KEY)
_WINDOW = "(PARTITION BY {} ORDER BY to_ts)".format(", ".join(CHAIN))
LINKED_CONDITION = (
    f"(previous_offset IS NOT DISTINCT FROM lag(new_offset) OVER {_WINDOW} OR row_number() OVER {_WINDOW} = 1)"
    " AND (from_ts IS NULL OR from_ts <= to_ts)"
)
EXPLAINED_COLUMN = "is_explained"  # whether the row is no rewind without a cause
EXPLAINED_CONDITION = f"NOT EXISTS (SELECT 1 FROM {REWINDS} WHERE {_IS_REWIND})"


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

    @multicolumn_condition_partial(engine=SqlAlchemyExecutionEngine)  # type: ignore[untyped-decorator]
    def _sql(cls, column_list: list[sa.ColumnClause[Any]], **kwargs: Any) -> sa.ColumnElement[bool]:
        return sa.and_(sa.column(LINKED_COLUMN), sa.column(EXPLAINED_COLUMN))


def true_of_all(run: Callable[[str], list[Any]], rows: str) -> dict[str, str]:
    """Return those of the two columns that are true of all ``rows`` (a query), so that no other query computes them.

    ``run`` returns the rows of a query.
    """
    found = {LINKED_COLUMN: _suspects(rows), EXPLAINED_COLUMN: f"SELECT 1 FROM {REWINDS}"}
    return {column: "true" for column, others in found.items() if not run(f"{others} LIMIT 1")}


def _suspects(rows: str) -> str:
    """Return a query for the rows that may break their chain: none if all chains are intact.

    Chains are sorted by a hash of their columns, which takes a third of the time. A second hash shows a row that
    follows one of another chain, which is suspect too.
    """
    chain = ", ".join(CHAIN)
    return f"""SELECT 1 FROM (SELECT *, hash({chain}, 1) AS second FROM ({rows}))
        WINDOW chain AS (PARTITION BY hash({chain}) ORDER BY to_ts)
        QUALIFY NOT coalesce((lag(second) OVER chain IS NULL OR (lag(second) OVER chain = second
                AND previous_offset IS NOT DISTINCT FROM lag(new_offset) OVER chain))
            AND (from_ts IS NULL OR from_ts <= to_ts), false)"""


class ExpectOffsetContinuity(MulticolumnMapExpectation):
    """Expect each offset change to begin where the change before it ended, and to be no rewind without a cause."""

    column_list: list[str] = CHAIN + LINK
    # A row with only null columns breaks the chain; it must not be ignored.
    ignore_row_if: Literal["all_values_are_missing", "any_value_is_missing", "never"] = "never"

    map_metric = "multicolumn_values.offset_continuity"
    args_keys = ("column_list",)
