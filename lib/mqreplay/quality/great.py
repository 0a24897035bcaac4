"""Great Expectations as mqreplay uses it: in memory, without a network, and silent."""

from __future__ import annotations

import os
from typing import Any

import great_expectations as gx
from great_expectations.core import ExpectationValidationResult
from great_expectations.data_context import EphemeralDataContext
from great_expectations.data_context.types.base import ProgressBarsConfig
from great_expectations.datasource.fluent.interfaces import Batch

from mqreplay.quality.dialect import NAME, engine_options
from mqreplay.quality.tables import Tables


class Great:
    """A context for one run. It makes batches of tables and keeps the results as JSON."""

    def __init__(self) -> None:
        """Disable analytics and progress bars."""
        os.environ["GX_ANALYTICS_ENABLED"] = "false"
        context = gx.get_context(mode="ephemeral")
        assert isinstance(context, EphemeralDataContext)
        context.enable_analytics(False)
        context.variables.progress_bars = ProgressBarsConfig(globally=False)
        self.context = context
        self.results: dict[str, list[dict[str, Any]]] = {}  # by table, as Great Expectations writes them

    def read(self, tables: Tables) -> None:
        """Use the tables' views for batches from now on."""
        options = engine_options(tables.connection)
        add: Any = self.context.data_sources.add_sql  # its stub lacks kwargs
        self._source = add(NAME, connection_string=f"{NAME}://", kwargs=options)

    def batch(self, name: str, view: str) -> Batch:
        """Return the rows of a view as a batch."""
        asset = self._source.add_table_asset(name, table_name=view)
        batch: Batch = asset.add_batch_definition_whole_table("all").get_batch()
        return batch

    def keep(self, table: str, results: list[ExpectationValidationResult]) -> None:
        """Keep the results of a table as plain values, without values that differ between runs."""
        self.results[table] = [_plain(result.to_json_dict()) for result in results]


def _plain(result: dict[str, Any]) -> dict[str, Any]:
    config = result["expectation_config"]
    kwargs = {name: value for name, value in config["kwargs"].items() if name != "batch_id"}
    # Tracebacks name folders of the machine; gold.validation_result has the error message.
    return {
        "success": result["success"],
        "expectation_config": {"type": config["type"], "kwargs": kwargs},
        "result": result["result"],
    }
