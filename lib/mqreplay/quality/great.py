"""Great Expectations as mqreplay uses it: in memory, without a network, silent, and with Data Docs in a folder."""

from __future__ import annotations

import datetime as dt
import os
from typing import Any

import great_expectations as gx
from great_expectations.core import ExpectationSuiteValidationResult, RunIdentifier
from great_expectations.data_context import EphemeralDataContext
from great_expectations.data_context.types.base import ProgressBarsConfig
from great_expectations.data_context.types.resource_identifiers import (
    ExpectationSuiteIdentifier,
    ValidationResultIdentifier,
)
from great_expectations.datasource.fluent.interfaces import Batch

from mqreplay.quality.frames import Rows

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
        self.context = context
        self.run = RunIdentifier(run_name=run_id, run_time=run_time)
        self._pandas = context.data_sources.add_pandas("pandas")
        self._spark = context.data_sources.add_spark("spark", persist=False)

    def batch(self, name: str, rows: Rows) -> Batch:
        """A table's rows as a batch, on the engine that holds them."""
        source = self._spark if rows.on_spark else self._pandas
        whole = source.add_dataframe_asset(name).add_batch_definition_whole_dataframe("all")
        return whole.get_batch(batch_parameters={"dataframe": rows.frame})

    def keep(self, result: ExpectationSuiteValidationResult, batch: Batch, suite: gx.ExpectationSuite) -> None:
        """Puts a result and its suite among the pages to build."""
        result.meta |= {"run_id": self.run, "validation_time": self.run.run_time, "batch_markers": {}}
        self.context.suites.add(suite)
        name = ExpectationSuiteIdentifier(name=suite.name)
        self.context.validation_results_store.store_validation_results(
            suite_validation_result=result,
            suite_validation_result_identifier=ValidationResultIdentifier(name, self.run, batch.id),
            expectation_suite_identifier=name,
        )

    def build_docs(self) -> None:
        """Writes Data Docs afresh: pages of the tables kept, and their index."""
        self.context.clean_data_docs(SITE)
        self.context.build_data_docs([SITE])


def _site(docs_dir: str) -> dict[str, Any]:
    return {
        "class_name": "SiteBuilder",
        "show_how_to_buttons": False,
        "store_backend": {"class_name": "TupleFilesystemStoreBackend", "base_directory": docs_dir},
        "site_index_builder": {"class_name": "DefaultSiteIndexBuilder"},
    }
