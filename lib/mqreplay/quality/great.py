"""Great Expectations as mqreplay uses it: in memory, without a network, silent, and with Data Docs in a folder."""

from __future__ import annotations

import datetime as dt
import os
from copy import copy
from typing import Any

import great_expectations as gx
from great_expectations.core import (
    ExpectationSuiteValidationResult,
    ExpectationValidationResult,
    RunIdentifier,
)
from great_expectations.data_context import EphemeralDataContext
from great_expectations.data_context.types.base import ProgressBarsConfig
from great_expectations.data_context.types.resource_identifiers import (
    ExpectationSuiteIdentifier,
    ValidationResultIdentifier,
)
from great_expectations.datasource.fluent.interfaces import Batch

from mqreplay.quality.dialect import NAME, engine_options
from mqreplay.quality.pages import escaped, make_safe
from mqreplay.quality.result import plain
from mqreplay.quality.tables import Tables

SITE = "data_docs"


class Great:
    """A context for one run. Validations are kept in it until ``build_docs`` writes them out as pages."""

    def __init__(self, run_id: str, run_time: dt.datetime, docs_dir: str) -> None:
        """``run_time`` is what the pages show; it comes from the data, so that the same data give the same pages."""
        os.environ["GX_ANALYTICS_ENABLED"] = "false"
        context = gx.get_context(mode="ephemeral")
        assert isinstance(context, EphemeralDataContext)
        context.enable_analytics(False)
        context.variables.progress_bars = ProgressBarsConfig(globally=False)
        context.variables.data_docs_sites = {SITE: _site(docs_dir)}
        self.context, self._docs_dir = context, docs_dir
        self.run = RunIdentifier(run_name=run_id, run_time=run_time)

    def read(self, tables: Tables) -> None:
        """Make batches of the tables' views from now on."""
        options = engine_options(tables.connection)
        add: Any = self.context.data_sources.add_sql  # its stub lacks kwargs
        self._source = add(NAME, connection_string=f"{NAME}://", kwargs=options)

    def batch(self, name: str, view: str) -> Batch:
        """The rows of a view as a batch, under the name that its page is to have."""
        asset = self._source.add_table_asset(name, table_name=view)
        batch: Batch = asset.add_batch_definition_whole_table("all").get_batch()
        return batch

    def keep(self, result: ExpectationSuiteValidationResult, batch: Batch, suite: gx.ExpectationSuite) -> None:
        """Puts a result and its suite among the pages to build."""
        shown = copy(result)
        shown.results = [_shown(found) for found in result.results]
        shown.meta = result.meta | {"run_id": self.run, "validation_time": self.run.run_time, "batch_markers": {}}
        self.context.suites.add(suite)
        name = ExpectationSuiteIdentifier(name=suite.name)
        self.context.validation_results_store.store_validation_results(
            suite_validation_result=shown,
            suite_validation_result_identifier=ValidationResultIdentifier(name, self.run, batch.id),
            expectation_suite_identifier=name,
        )

    def build_docs(self) -> None:
        """Writes Data Docs afresh: the pages of the tables kept."""
        self.context.clean_data_docs(SITE)
        self.context.build_data_docs([SITE], build_index=False)
        make_safe(self._docs_dir)


def _shown(found: ExpectationValidationResult) -> ExpectationValidationResult:
    """The result as its page shows it: rows by their key, where Great Expectations would show values out of place."""
    shown = copy(found)
    rows = found.result.get("partial_unexpected_index_list")
    named = [", ".join(f"{name} {value}" for name, value in plain(row).items()) for row in rows or []]
    instead = {"partial_unexpected_list": named, "partial_unexpected_counts": []} if rows else {}
    shown.result, shown.exception_info = escaped(found.result | instead), escaped(found.exception_info)
    return shown


def _site(docs_dir: str) -> dict[str, Any]:
    # Great Expectations replaces $NAME and ${NAME} by variables of the environment.
    folder = docs_dir.replace("$", r"\$")
    return {
        "class_name": "SiteBuilder",
        "show_how_to_buttons": False,
        "store_backend": {"class_name": "TupleFilesystemStoreBackend", "base_directory": folder},
        "site_index_builder": {"class_name": "DefaultSiteIndexBuilder"},
    }
