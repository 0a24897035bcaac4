"""Register the tables of a warehouse in a catalog of the running Spark session. No table is read or changed.

A registered table is a name and a location: later commits are visible under the name without another registration.
Spark reads the comments of tables and columns from the tables themselves.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import unquote

from mqreplay.lake.existing import LAYERS
from mqreplay.lake.registration import (
    S3_SCHEMES,
    CatalogNames,
    create_database,
    create_table,
    table_locations,
)
from mqreplay.lake.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SESSION_CATALOG = "spark_catalog"
NAMED = 2  # tables that a problem lists by name
LOCATION = re.compile(r"^Location: (.*)$", re.MULTILINE)
SAME_STORE = re.compile(r"^s3[an]?://")  # three names of one store
OF_FILES = re.compile(r"^file:/*(?=/)")


@dataclass
class Registered:
    """The result of a registration: new names, the number of known ones, and one line for each problem."""

    new: list[str] = field(default_factory=list)
    known: int = 0
    problems: list[str] = field(default_factory=list)


def register_tables(spark: SparkSession, warehouse: Warehouse, names: CatalogNames) -> Registered:
    """Register each table of the warehouse that the catalog does not have under its name.

    Problems do not end the registration of other tables. A name that is in use for another location is a problem.
    """
    done, failed = Registered(), defaultdict[str, list[str]](list)
    for layer, locations in table_locations(warehouse, s3_scheme(spark)).items():
        database = names.database(layer)
        if reason := _refused(spark, create_database(database)):
            failed[reason] += [f"{database}.{table}" for table in locations]
            continue
        known = _known_locations(spark, database)
        for table, location in locations.items():
            name = f"{database}.{table}"
            if table not in known:
                reason = _refused(spark, create_table(name, location))
                if reason:
                    failed[reason].append(name)
                else:
                    done.new.append(name)
            elif (other := known[table]) is None or plain_location(other) != plain_location(location):
                failed[_in_use(other)].append(name)
            else:
                done.known += 1
    done.problems = [f"{_listed(tables)} not registered: {reason}" for reason, tables in failed.items()]
    return done


def missing_catalog(spark: SparkSession, name: str) -> str | None:
    """Return why the session cannot keep names in this catalog; None if it can."""
    own = str(spark.conf.get(f"spark.sql.catalog.{SESSION_CATALOG}", None)).endswith(".DeltaCatalog")
    if name == SESSION_CATALOG and own and spark.conf.get("spark.sql.catalogImplementation") == "in-memory":
        return (
            f"{name} of this session has no metastore, so its names would end with the session; set "
            "spark.sql.catalogImplementation = hive and the address of the metastore"
        )
    before = spark.catalog.currentCatalog()
    try:
        spark.catalog.setCurrentCatalog(name)
    except Exception as error:  # whatever the catalog's own code raises
        return f"the session has no catalog {name}; set spark.sql.catalog.{name} ({_line(error)})"
    spark.catalog.setCurrentCatalog(before)
    return None


def s3_scheme(spark: SparkSession) -> str:
    """Return the scheme of S3 for which the session has a file system: s3 on EMR and Databricks, else s3a."""
    context = spark.sparkContext
    stock, other = S3_SCHEMES
    try:
        assert context._jvm is not None
        context._jvm.org.apache.hadoop.fs.FileSystem.getFileSystemClass(other, context._jsc.sc().hadoopConfiguration())
    except Exception:  # Java's UnsupportedFileSystemException
        return stock
    return other


def plain_location(location: str) -> str:
    """Return a location in one spelling, to compare it with another.

    >>> plain_location("file:/w/gold/finding/"), plain_location("s3a://b/w"), plain_location("s3://b/w")
    ('/w/gold/finding', 's3://b/w', 's3://b/w')
    """
    plain = SAME_STORE.sub("s3://", OF_FILES.sub("", location))
    return unquote(plain).rstrip("/")


def _known_locations(spark: SparkSession, database: str) -> dict[str, str | None]:
    """Return the location of each table in the database; None for a view, which has none."""
    rows = spark.sql(f"SHOW TABLE EXTENDED IN {database} LIKE '*'").collect()
    found = {row.tableName: LOCATION.search(row.information) for row in rows if not row.isTemporary}
    return {name: None if location is None else location[1] for name, location in found.items()}


def _in_use(location: str | None) -> str:
    if location is None:
        return "the name is in use for a view; drop it, or use another --prefix"
    root = re.sub(rf"/({'|'.join(LAYERS)})/\w+/?$", "", location)
    return f"the name belongs to a table of {root}; drop it, or use another --prefix"


def _refused(spark: SparkSession, statement: str) -> str | None:
    """Run the statement; return why Spark refuses it, or None."""
    try:
        spark.sql(statement)
    except Exception as error:  # a catalog, its server and a file system raise what they like
        return _line(error)
    return None


def _line(error: Exception) -> str:
    """Return the first line of the innermost Java exception, or of the error itself."""
    cause = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    while cause is not None and cause.getCause() is not None:
        cause = cause.getCause()
    text = str(error) if cause is None else str(cause.toString())
    return next((line.strip() for line in text.splitlines() if line.strip()), type(error).__name__)


def _listed(tables: list[str]) -> str:
    more = len(tables) - NAMED
    shown = ", ".join(tables[:NAMED]) + (f" and {more} more" if more > 0 else "")
    return f"{shown} {'is' if len(tables) == 1 else 'are'}"
