"""expect_offset_continuity: the offset changes of one queue, group and source form a chain.

silver.offset_change has only changes. So in order of time each row must start with the offset of the row before
(previous_offset = new_offset of the row before; null if the entry was removed), and must not end before its start.
Otherwise a row was lost, duplicated or read out of order, which is an error of mqreplay's data. Nor may a row be a
rewind without a known cause by gold.offset_continuity: that is a fact about the cluster which nobody has explained.
"""

from __future__ import annotations

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
    """True for a row that continues the row before it in its chain."""

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
    def _sql(
        cls, column_list: list[sa.ColumnClause[Any]], _table: Any, _sqlalchemy_engine: sa.Engine, **kwargs: Any
    ) -> sa.ColumnElement[bool]:
        with _sqlalchemy_engine.connect() as connection:
            rewinds = sa.select(sa.literal(1)).select_from(sa.table(REWINDS)).limit(1)
            explained = sa.column(EXPLAINED_COLUMN) if connection.execute(rewinds).first() else sa.true()
            linked = sa.column(LINKED_COLUMN) if connection.execute(_suspect(_table)).first() else sa.true()
            return sa.and_(linked, explained)


def _suspect(table: Any) -> sa.Select[Any]:
    """Return a query for rows that may break their chain: empty if all chains are intact.

    Chains are sorted by a hash of their columns, which takes a third of the time. A second hash shows a row that
    follows one of another chain, which is suspect too.
    """
    chain: list[sa.ColumnElement[Any]] = [sa.column(name) for name in CHAIN]
    links: list[sa.ColumnElement[Any]] = [sa.column(name) for name in LINK]
    before, after, start, end = links
    second = sa.func.hash(*chain, 1)

    def earlier(column: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
        return sa.func.lag(column).over(partition_by=sa.func.hash(*chain), order_by=end)

    goes_on = sa.and_(earlier(second) == second, before.is_not_distinct_from(earlier(after)))
    linked = sa.or_(earlier(second).is_(None), goes_on)
    sound = sa.and_(linked, sa.or_(start.is_(None), start <= end))
    rows = sa.select(sound.label("is_sound")).select_from(table).subquery()
    return sa.select(sa.literal(1)).select_from(rows).where(rows.c.is_sound.is_not(sa.true())).limit(1)


class ExpectOffsetContinuity(MulticolumnMapExpectation):
    """Expect each offset change to begin where the change before it ended, and to be no rewind without a cause."""

    column_list: list[str] = CHAIN + LINK
    # A row with only null columns breaks the chain; it must not be ignored.
    ignore_row_if: Literal["all_values_are_missing", "any_value_is_missing", "never"] = "never"

    map_metric = "multicolumn_values.offset_continuity"
    args_keys = ("column_list",)
