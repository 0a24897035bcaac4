"""The catalog of a running Spark session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqreplay.lake.files import files_of, joined, read_json, write_json
from mqreplay.lake.local_folder import LAYERS
from mqreplay.lake.registration import S3_SCHEMES, CatalogNames
from mqreplay.lake.storage import spark_location
from mqreplay.words.errors import InputError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


SESSION_CATALOG = "spark_catalog"
MARK = ".mqreplay.catalog"


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
        return f"the session has no catalog {name}; set spark.sql.catalog.{name} ({first_line(error)})"
    spark.catalog.setCurrentCatalog(before)
    return None


def s3_scheme(spark: SparkSession, root: str) -> str:
    """Return the session's scheme for S3: s3 on EMR and Databricks, else s3a."""
    stock, other = S3_SCHEMES
    if not root.startswith("s3://"):
        return stock
    try:
        spark.read.text(spark_location(joined(root, MARK), other)).schema  # noqa: B018 - finds the file
    except Exception:  # a session without a file system of this scheme
        return stock
    return other


def first_line(error: Exception) -> str:
    """Return the first line of the innermost Java exception, or of the error itself."""
    cause = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    while cause is not None and cause.getCause() is not None:
        cause = cause.getCause()
    text = str(error) if cause is None else str(cause.toString())
    return next((line.strip() for line in text.splitlines() if line.strip()), type(error).__name__)


def require_names(root: str, names: CatalogNames | None) -> None:
    """Note that the tables of a new warehouse have these names, or none. Raises InputError if it began otherwise."""
    begun = _begun_with(root)
    if begun is None and names is not None:
        if set(LAYERS) & set(files_of(root).names(root)):
            raise InputError(
                f"warehouse {root} was begun without --catalog, so its tables are read by path: leave out --catalog "
                "(mqreplay tables --sql gives them names), or give a new --warehouse"
            )
        write_json(joined(root, MARK), {"catalog": names.catalog, "prefix": names.prefix})
    elif begun is not None and begun != names:
        raise InputError(
            f"warehouse {root} was begun with {_options(begun)}, so its tables are written by these names: "
            "give the same, or a new --warehouse"
        )


def _begun_with(root: str) -> CatalogNames | None:
    path = joined(root, MARK)
    if files_of(path).info(path) is None:
        return None
    try:
        found = read_json(path)
        return CatalogNames(found["catalog"], found["prefix"])
    except (ValueError, KeyError, TypeError):
        raise InputError(f"{path} is damaged; give a new --warehouse and run the recordings again") from None


def _options(names: CatalogNames) -> str:
    return f"--catalog {names.catalog}" + (f" --prefix {names.prefix}" if names.prefix else "")
