"""expect_rows_conserved: no row is lost between a recording's files and silver.

On each row of bronze.source_file: rows_in = rows_out + rows_quarantined + rows_duplicate. And for each
silver table: its number of rows equals the sum of rows_out of its files, less the rows that `mqreplay maintain` removed
because of their day (rows_expired). A violation is a bug of mqreplay, or somebody wrote to the warehouse.
"""

from __future__ import annotations

from typing import Any, cast

import sqlalchemy as sa
from great_expectations.core.metric_domain_types import MetricDomainTypes
from great_expectations.execution_engine import ExecutionEngine, SqlAlchemyExecutionEngine
from great_expectations.expectations.expectation import BatchExpectation
from great_expectations.expectations.metrics.metric_provider import metric_value
from great_expectations.expectations.metrics.table_metric_provider import TableMetricProvider
from great_expectations.render import LegacyDiagnosticRendererType, RenderedTableContent
from great_expectations.render.renderer.renderer import renderer

from mqreplay.quality.conditions import KINDS_OF_TABLE, ROW_COUNTS, ROWS_EXPIRED

FILE_FIGURE = "table.files_not_adding_up"
ROWS_OF_FILES = "table.rows_given_by_kind"
SAMPLE = 20


def _selected(engine: SqlAlchemyExecutionEngine, domain: dict[str, Any], query: sa.Select[Any]) -> list[Any]:
    """Return the rows of a query of the table."""
    table, _, _ = engine.get_compute_domain(domain, domain_type=MetricDomainTypes.TABLE)
    return list(engine.execute_query(query.select_from(cast("sa.FromClause", table))).fetchall())


class FilesNotAddingUp(TableMetricProvider):
    """The number of files with inconsistent counts, and the first of them."""

    metric_name = FILE_FIGURE

    @metric_value(engine=SqlAlchemyExecutionEngine)
    def _sql(
        cls, execution_engine: SqlAlchemyExecutionEngine, metric_domain_kwargs: dict[str, Any], **_: Any
    ) -> tuple[int, list[dict[str, Any]]]:
        counts: list[sa.ColumnElement[Any]] = [sa.column(name) for name in ROW_COUNTS]
        rows_in, *parts = counts
        broken = rows_in != sum(parts[1:], parts[0])
        counted = sa.select(sa.func.count()).where(broken)
        first = sa.select(sa.column("path"), *counts).where(broken).order_by("path").limit(SAMPLE)
        shown = [_file(**row._asdict()) for row in _selected(execution_engine, metric_domain_kwargs, first)]
        return _selected(execution_engine, metric_domain_kwargs, counted)[0][0], shown


class RowsByKind(TableMetricProvider):
    """Rows of the read files in silver, by kind of file."""

    metric_name = ROWS_OF_FILES

    @metric_value(engine=SqlAlchemyExecutionEngine)
    def _sql(
        cls, execution_engine: SqlAlchemyExecutionEngine, metric_domain_kwargs: dict[str, Any], **_: Any
    ) -> dict[str, int]:
        kind: sa.ColumnElement[str] = sa.column("kind")
        left: sa.ColumnElement[int] = sa.column("rows_out") - sa.func.coalesce(sa.column(ROWS_EXPIRED), 0)
        query: sa.Select[Any] = sa.select(kind, sa.func.sum(left)).where(sa.column("status") == "read").group_by(kind)
        return {name: int(rows or 0) for name, rows in _selected(execution_engine, metric_domain_kwargs, query)}


class ExpectRowsConserved(BatchExpectation):
    """Expect every row of the read files to be in silver, in quarantine, or a duplicate."""

    silver_rows: dict[str, Any]  # number of rows by silver table; or a suite parameter

    metric_dependencies = ("table.row_count", FILE_FIGURE, ROWS_OF_FILES)
    success_keys = ("silver_rows",)
    args_keys = ()

    def _validate(
        self,
        metrics: dict[str, Any],
        runtime_configuration: dict[str, Any] | None = None,
        execution_engine: ExecutionEngine[Any] | None = None,
    ) -> dict[str, Any]:
        files, first = metrics[FILE_FIGURE]
        tables = _tables_not_adding_up(metrics[ROWS_OF_FILES], self._get_success_kwarg("silver_rows"))
        unexpected = (tables + first)[:SAMPLE]
        judged, broken = metrics["table.row_count"] + len(KINDS_OF_TABLE), files + len(tables)
        result = {
            "element_count": judged,
            "unexpected_count": broken,
            "unexpected_percent": 100 * broken / judged,
            "partial_unexpected_list": unexpected,
        }
        return {"success": not unexpected, "result": result}

    @classmethod
    @renderer(renderer_type=LegacyDiagnosticRendererType.UNEXPECTED_TABLE)
    def _diagnostic_unexpected_table_renderer(  # type: ignore[override]
        cls, result: Any = None, **_: Any
    ) -> list[RenderedTableContent] | None:
        unexpected = (result.result or {}).get("partial_unexpected_list") if result is not None else None
        if not unexpected:
            return None
        rows = [[row["where"], row["problem"]] for row in unexpected]
        return [RenderedTableContent(content_block_type="table", table=rows, header_row=["Where", "What"])]


def _tables_not_adding_up(gave: dict[str, int], held: dict[str, int]) -> list[dict[str, Any]]:
    broken = []
    for table, kinds in KINDS_OF_TABLE.items():
        expected, actual = sum(gave.get(kind, 0) for kind in kinds), held.get(table, 0)
        if expected != actual:
            problem = f"its files ({', '.join(kinds)}) gave {expected} rows, it holds {actual}"
            broken.append({"where": table, "problem": problem})
    return broken


def _file(path: str, rows_in: int, rows_out: int, rows_quarantined: int, rows_duplicate: int) -> dict[str, Any]:
    known = f"{rows_out} out, {rows_quarantined} quarantined and {rows_duplicate} duplicate"
    return {"where": path, "problem": f"{rows_in} rows in, but {known}"}
