"""expect_rows_conserved: no row is lost between a recording's files and silver.

On each row of bronze.source_file: rows_in = rows_out + rows_quarantined + rows_duplicate. And for each
silver table: it holds as many rows as the files that were read say they gave it. A breach is a bug of
mqreplay, or of someone who wrote to the warehouse by hand.
"""

from __future__ import annotations

from typing import Any

import pandas as pd
from great_expectations.core.metric_domain_types import MetricDomainTypes
from great_expectations.execution_engine import ExecutionEngine, PandasExecutionEngine, SparkDFExecutionEngine
from great_expectations.expectations.expectation import BatchExpectation
from great_expectations.expectations.metrics.metric_provider import metric_value
from great_expectations.expectations.metrics.table_metric_provider import TableMetricProvider
from great_expectations.render import LegacyDiagnosticRendererType, RenderedTableContent
from great_expectations.render.renderer.renderer import renderer
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

# Which kinds of file give rows to a silver table.
KINDS_OF_TABLE = {
    "silver.assignment": ("assignments",),
    "silver.broker": ("brokers",),
    "silver.broker_runtime": ("broker_runtime",),
    "silver.cluster_info": ("cluster_info",),
    "silver.consume": ("consume_log",),
    "silver.consumer_list": ("consumer_lists",),
    "silver.heartbeat": ("heartbeats",),
    "silver.lock": ("lock_requests",),
    "silver.offset_change": ("client_offsets", "consumer_offset"),
    "silver.offset_commit": ("offset_commits",),
    "silver.produce": ("produce_log",),
    "silver.pull": ("pull_log",),
    "silver.rebalance": ("rebalance_log",),
    "silver.route": ("routes",),
    "silver.server_request": ("server_requests",),
    "silver.subscription_group": ("subscription_groups",),
    "silver.topic_config": ("topics",),
    "silver.topic_stats": ("topic_stats",),
}
# A line of topic_stats gives many rows, so its records are counted.
COUNTED_BY_RECORD = frozenset({"silver.topic_stats"})
COUNTS = ["rows_in", "rows_out", "rows_quarantined", "rows_duplicate"]
FILES = "table.files_not_adding_up"
GIVEN = "table.rows_given_by_kind"
SAMPLE = 20


def _rows(engine: ExecutionEngine, domain: dict[str, Any]) -> Any:
    return engine.get_compute_domain(domain, domain_type=MetricDomainTypes.TABLE)[0]


class FilesNotAddingUp(TableMetricProvider):
    """How many files' counts do not add up, and the first of them."""

    metric_name = FILES

    @metric_value(engine=PandasExecutionEngine)
    def _pandas(
        cls, execution_engine: PandasExecutionEngine, metric_domain_kwargs: dict[str, Any], **_: Any
    ) -> tuple[int, list[dict[str, Any]]]:
        rows: pd.DataFrame = _rows(execution_engine, metric_domain_kwargs)
        broken = rows[rows["rows_in"] != rows["rows_out"] + rows["rows_quarantined"] + rows["rows_duplicate"]]
        first = broken.sort_values("path").head(SAMPLE)
        return len(broken), [_file(**row) for row in first[["path", *COUNTS]].to_dict("records")]

    @metric_value(engine=SparkDFExecutionEngine)
    def _spark(
        cls, execution_engine: SparkDFExecutionEngine, metric_domain_kwargs: dict[str, Any], **_: Any
    ) -> tuple[int, list[dict[str, Any]]]:
        rows: DataFrame = _rows(execution_engine, metric_domain_kwargs)
        broken = rows.where("rows_in <> rows_out + rows_quarantined + rows_duplicate").select("path", *COUNTS)
        first = broken.orderBy("path").limit(SAMPLE).collect()
        return (broken.count() if first else 0), [_file(**row.asDict()) for row in first]


class RowsGivenByKind(TableMetricProvider):
    """Rows that the files read gave to silver, by kind of file."""

    metric_name = GIVEN

    @metric_value(engine=PandasExecutionEngine)
    def _pandas(
        cls, execution_engine: PandasExecutionEngine, metric_domain_kwargs: dict[str, Any], **_: Any
    ) -> dict[str, int]:
        rows: pd.DataFrame = _rows(execution_engine, metric_domain_kwargs)
        given = rows[rows["status"] == "read"].groupby("kind")["rows_out"].sum()
        return {str(kind): int(count) for kind, count in given.items()}

    @metric_value(engine=SparkDFExecutionEngine)
    def _spark(
        cls, execution_engine: SparkDFExecutionEngine, metric_domain_kwargs: dict[str, Any], **_: Any
    ) -> dict[str, int]:
        rows: DataFrame = _rows(execution_engine, metric_domain_kwargs)
        given = rows.where("status = 'read'").groupBy("kind").agg(F.sum("rows_out").alias("rows_out"))
        return {row.kind: int(row.rows_out) for row in given.collect()}


class ExpectRowsConserved(BatchExpectation):
    """Expect every row of the files read to be in silver, in quarantine, or a duplicate."""

    silver_rows: dict[str, Any]  # rows that each silver table holds, by its name; or a suite parameter

    metric_dependencies = ("table.row_count", FILES, GIVEN)
    success_keys = ("silver_rows",)
    args_keys = ()

    def _validate(
        self,
        metrics: dict[str, Any],
        runtime_configuration: dict[str, Any] | None = None,
        execution_engine: ExecutionEngine | None = None,
    ) -> dict[str, Any]:
        files, first = metrics[FILES]
        tables = _tables_not_adding_up(metrics[GIVEN], self._get_success_kwarg("silver_rows"))
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
    def _diagnostic_unexpected_table_renderer(cls, result: Any = None, **_: Any) -> list[RenderedTableContent] | None:
        unexpected = (result.result or {}).get("partial_unexpected_list") if result is not None else None
        if not unexpected:
            return None
        rows = [[row["where"], row["problem"]] for row in unexpected]
        return [RenderedTableContent(content_block_type="table", table=rows, header_row=["Where", "What"])]


def _tables_not_adding_up(given: dict[str, int], held: dict[str, int]) -> list[dict[str, Any]]:
    broken = []
    for table, kinds in KINDS_OF_TABLE.items():
        expected, actual = sum(given.get(kind, 0) for kind in kinds), held.get(table, 0)
        if expected != actual:
            problem = f"its files ({', '.join(kinds)}) gave {expected} rows, it holds {actual}"
            broken.append({"where": table, "problem": problem})
    return broken


def _file(path: str, rows_in: int, rows_out: int, rows_quarantined: int, rows_duplicate: int) -> dict[str, Any]:
    known = f"{rows_out} out, {rows_quarantined} quarantined and {rows_duplicate} duplicate"
    return {"where": path, "problem": f"{rows_in} rows in, but {known}"}
