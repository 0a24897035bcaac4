"""The option --catalog: the tables of a run have names in a catalog of the Spark session."""

from __future__ import annotations

from dataclasses import dataclass

from mqreplay.engines.engine import Engine
from mqreplay.lake.catalog import require_names
from mqreplay.lake.registration import CatalogNames
from mqreplay.lake.warehouse import Warehouse
from mqreplay.words.errors import InputError


@dataclass(frozen=True)
class Catalog:
    """The catalog of a run's tables, and the prefix of its databases."""

    name: str
    prefix: str = ""

    def check_engine(self, engine: str) -> None:
        """Raise InputError for an engine without a catalog, or for names that Spark refuses. Nothing has run yet."""
        CatalogNames(self.name, self.prefix)
        if engine != "spark":
            raise InputError(
                f"--catalog needs Spark, which has the catalog; leave out --engine {engine}, or run the statements "
                "that `mqreplay tables --sql` prints in a Spark session"
            )


def opened_warehouse(root: str, engine: Engine, catalog: Catalog | None) -> Warehouse:
    """Return the tables of a run: by path, or by name if there is a catalog. Raises InputError.

    A warehouse stays of the kind that it began with. Hold the warehouse's lock.
    """
    if catalog is None:
        require_names(root, None)
        return Warehouse(root)
    from mqreplay.engines.spark import SparkEngine
    from mqreplay.lake.catalog import missing_catalog
    from mqreplay.lake.catalog_warehouse import CatalogWarehouse

    assert isinstance(engine, SparkEngine), "check_engine refuses others"
    names = CatalogNames(catalog.name, catalog.prefix)
    if reason := missing_catalog(engine.session, catalog.name):
        raise InputError(reason)
    require_names(root, names)
    return CatalogWarehouse(engine.session, root, names)
