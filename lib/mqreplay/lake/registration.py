"""SQL that registers the tables of a warehouse in a catalog: a Hive metastore, Unity Catalog, Databricks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from mqreplay.lake.local_folder import LAYERS
from mqreplay.lake.sql import literal
from mqreplay.lake.storage import spark_location
from mqreplay.lake.warehouse import Warehouse
from mqreplay.words.errors import InputError

S3_SCHEMES = ("s3a", "s3")


@dataclass(frozen=True)
class CatalogNames:
    """Names of a warehouse's tables in a catalog: ``catalog.prefixlayer.table``.

    ``catalog`` None: the session's own, so that names have two parts. ``prefix`` begins the name of each database, so
    that the tables of several warehouses fit into one catalog. Raises InputError for names that Spark refuses.
    """

    catalog: str | None = None
    prefix: str = ""

    def __post_init__(self) -> None:
        for layer in LAYERS:
            self.database(layer)

    def database(self, layer: str) -> str:
        """Return the name of the database for the tables of a layer."""
        return ".".join(map(identifier, [*([] if self.catalog is None else [self.catalog]), self.prefix + layer]))


def registration(warehouse: Warehouse, names: CatalogNames, s3_scheme: str = S3_SCHEMES[0]) -> Iterator[str]:
    """Yield the statements that register each table of the warehouse by its location. No table is read or changed."""
    for layer, locations in table_locations(warehouse, s3_scheme).items():
        database = names.database(layer)
        yield f"{create_database(database)};"
        for table, location in locations.items():
            yield f"{create_table(f'{database}.{table}', location)};"


def table_locations(warehouse: Warehouse, s3_scheme: str) -> Mapping[str, dict[str, str]]:
    """Return the location of each table that exists, by layer and name; layers without tables are left out.

    ``s3_scheme`` is Spark's scheme for S3: s3a for Spark as Apache ships it, s3 for EMR and Databricks.
    """
    found: dict[str, dict[str, str]] = {layer: {} for layer in LAYERS}
    for name in warehouse.contracts:
        if warehouse.exists(name):
            layer, _, table = name.partition(".")
            found[layer][table] = spark_location(warehouse.location(name), s3_scheme)
    return {layer: tables for layer, tables in found.items() if tables}


def create_database(name: str) -> str:
    """Return the statement that makes the database unless it exists."""
    return f"CREATE DATABASE IF NOT EXISTS {name}"


def create_table(name: str, location: str) -> str:
    """Return the statement that registers the Delta table at ``location`` unless the name is in use."""
    return f"CREATE TABLE IF NOT EXISTS {name} USING delta LOCATION {literal(location)}"


def identifier(name: str) -> str:
    """Return ``name`` if it can name a catalog or database of Spark. Raises InputError otherwise.

    >>> identifier("orders_gold")
    'orders_gold'
    """
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise InputError(f"{name!r} cannot name a catalog or database: use letters, digits and _, and no digit first")
    return name
