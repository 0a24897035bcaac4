"""The columns of row functions, where tasks read rows from files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from mqreplay.engines.passes import Pass, RowFunction
from mqreplay.engines.rows import CountedRows, Wanted
from mqreplay.engines.shards import Counts
from mqreplay.lake.buckets import Key
from mqreplay.lake.row_filter import Days


def with_row_functions(step: Pass[Any, Any], source: CountedRows, inputs: Any) -> CountedRows:
    """Return the source; the rows of tables with a row function have its columns, too."""
    functions = {table.name: table.function for table in step.tables if table.function is not None}
    return _ComputedRows(source, functions, inputs) if functions else source


@dataclass(frozen=True)
class _ComputedRows:
    source: CountedRows
    functions: Mapping[str, RowFunction[Any, Any]]
    inputs: Any

    def read(
        self, table: str, days: Days, wanted: pl.Expr, of: Wanted = None, columns: Sequence[str] | None = None
    ) -> pl.DataFrame:
        """As RowSource.read."""
        rows, of_row = self.source.read(table, days, wanted, of, columns), self.functions.get(table)
        if of_row is None or columns is not None:
            return rows
        return rows.hstack(of_row.function(rows.select(of_row.reads), of_row.settings(self.inputs)))

    def counts(self, tables: Mapping[str, Key], days: Days) -> Counts:
        """As CountedRows.counts."""
        return self.source.counts(tables, days)
