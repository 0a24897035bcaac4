"""Tables whose rows stay in Spark: the frame of each that its rules judge, as the views of run.py are for DuckDB."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from mqreplay.ingest.offset_checkpoint import CHAIN, OFFSET_CHANGES, OFFSET_SOURCE
from mqreplay.ingest.offset_checkpoint import CHECKPOINT as KEPT
from mqreplay.lake.contract import Contract
from mqreplay.lake.row_filter import Days
from mqreplay.quality import Scope
from mqreplay.quality.conditions import (
    EXPLAINED_COLUMN,
    LINK,
    LINKED_COLUMN,
    LINKED_CONDITION,
    REWIND_KEY,
    UNIQUE_COLUMN,
    check_column,
)
from mqreplay.quality.evidence import BREAKS, is_chained
from mqreplay.quality.suite import UNIQUE, columns_needed, rules
from mqreplay.quality.tables import TableSource
from mqreplay.words.time_span import ONE_DAY


class SparkFrames:
    """The frames of one cluster."""

    def __init__(self, warehouse: TableSource, cluster: str) -> None:
        """No table is read yet."""
        self._warehouse, self._cluster = warehouse, cluster

    def rows(self, contract: Contract, scope: Scope) -> tuple[DataFrame, DataFrame]:
        """Return the rows of a scope with the columns that tell valid ones, and the same in the order of their key."""
        rows = self._judged(contract, scope)
        return rows, rows.orderBy(*[F.col(name).asc_nulls_last() for name in contract.key])

    def count(self, name: str, days: Days) -> int:
        """Return the number of rows on some days."""
        return self._rows(name, days).count()

    def newest_ms(self, name: str, column: str, days: Days) -> int | None:
        """Return the newest instant (epoch ms) of a column on some days; None without rows."""
        newest = self._rows(name, days).select(F.unix_millis(F.max(column))).collect()[0][0]
        return None if newest is None else int(newest)

    def _judged(self, contract: Contract, scope: Scope) -> DataFrame:
        """Return the rows of a scope, and of the start of its chains, with the columns that tell valid rows."""
        needed = columns_needed(contract)
        days = Days(scope.day, scope.day) if contract.is_dated else Days()
        rows = self._rows(contract.name, days).select(*needed)
        if scope.day is not None and scope.goes_on and is_chained(contract):
            rows = rows.unionByName(self._before_in_chain(needed, scope.day))
        for rule in rules(contract):
            if rule.type == UNIQUE:
                equal = Window.partitionBy(*rule.arguments["column_list"])
                rows = rows.withColumn(UNIQUE_COLUMN, F.count(F.lit(1)).over(equal) == 1)
        for name, condition in contract.checks.items():
            rows = rows.withColumn(check_column(name), F.coalesce(F.expr(condition), F.lit(False)))
        if is_chained(contract):
            rows = rows.withColumn(LINKED_COLUMN, F.expr(LINKED_CONDITION))
            rows = self._explained(rows, days)
        return rows

    def _explained(self, rows: DataFrame, days: Days) -> DataFrame:
        """Add whether each row is no rewind whose cause the replay does not know."""
        if not self._warehouse.exists(BREAKS):
            return rows.withColumn(EXPLAINED_COLUMN, F.lit(True))
        source = F.concat_ws("-", "broker_name", F.col("broker_id").cast("string")).alias("source_name")
        breaks = self._rows(BREAKS, days).where("kind = 'rewind' AND cause = 'unknown'")
        rewinds = breaks.select(source, *REWIND_KEY[1:]).distinct()
        marked = rewinds.select(*[F.col(name).alias(f"rewind_{name}") for name in REWIND_KEY])
        same = [F.col(f"rewind_{name}").eqNullSafe(F.col(name)) for name in REWIND_KEY]
        joined = rows.join(F.broadcast(marked), same, "left")
        explained = joined.withColumn(EXPLAINED_COLUMN, F.col("rewind_to_ts").isNull())
        return explained.drop(*marked.columns)

    def _before_in_chain(self, columns: Sequence[str], day: dt.date) -> DataFrame:
        """Return the start of the day's chains: the last row of each before the day."""
        key = [*CHAIN, *OFFSET_SOURCE]
        kept = None
        if self._warehouse.exists(KEPT):
            kept = self._rows(KEPT, Days(last=day)).agg(F.max("day")).collect()[0][0]
        before = self._rows(OFFSET_CHANGES, Days(kept, day - ONE_DAY)).select(*key, *LINK)
        if kept is not None:
            before = before.unionByName(self._rows(KEPT, Days(kept, kept)).select(*key, *LINK))
        last = before.groupBy(*key).agg(F.max_by(F.struct(*LINK), F.col("to_ts")).alias("last")).select(*key, "last.*")
        today = self._rows(OFFSET_CHANGES, Days(day, day)).select(*CHAIN)
        # The file of a row is not needed.
        of_today = last.join(today, CHAIN, "left_semi")
        return of_today.withColumns({"day": F.to_date("to_ts"), "source_digest": F.lit("")}).select(*columns)

    def _rows(self, name: str, days: Days) -> DataFrame:
        return self._warehouse.spark_rows(name, days.of_cluster(self._cluster))
