"""The last step of a run with --catalog: names of the tables in a catalog of the Spark session."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from mqreplay.engines.engine import Engine
from mqreplay.errors import InputError
from mqreplay.lake.registration import CatalogNames
from mqreplay.lake.warehouse import Warehouse


@dataclass
class Catalog:
    """The catalog that a run registers its tables in, and the problems that this met: one line each."""

    name: str
    prefix: str = ""
    problems: list[str] = field(default_factory=list)

    def check_engine(self, engine: str) -> None:
        """Raise InputError for an engine without a catalog, or for names that Spark refuses. Nothing has run yet."""
        CatalogNames(self.name, self.prefix)
        if engine != "spark":
            raise InputError(
                f"--catalog needs Spark, which has the catalog; leave out --engine {engine}, or run the statements "
                "that `mqreplay register` prints in a Spark session"
            )

    def register(self, engine: Engine, warehouse: Warehouse, progress: Callable[[str], None]) -> None:
        """Register the tables. Problems are kept: what the run committed stays."""
        from mqreplay.engines.spark import SparkEngine
        from mqreplay.lake.catalog import missing_catalog, register_tables

        assert isinstance(engine, SparkEngine), "check_engine refuses others"
        if reason := missing_catalog(engine.session, self.name):
            self.problems.append(reason)
            return
        done = register_tables(engine.session, warehouse, CatalogNames(self.name, self.prefix))
        self.problems += done.problems
        tables = len(done.new) + done.known
        progress(f"catalog {self.name}: tables registered: {tables:,}, new among them: {len(done.new):,}")
