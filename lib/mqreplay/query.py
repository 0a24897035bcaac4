"""A warehouse read by hand: the rows of a query, and the story of a finding. Neither changes a table."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from mqreplay.bind.register import register
from mqreplay.errors import InputError
from mqreplay.lake.confinement import confine_writes
from mqreplay.lake.local_folder import local_folder
from mqreplay.lake.scratch import scratch
from mqreplay.lake.session import build_session, fit_to
from mqreplay.lake.sql import check_text, quoted
from mqreplay.lake.statement import check_analyzed, read_statement
from mqreplay.lake.warehouse import LAYERS, Warehouse
from mqreplay.log_folder import temporary_logs
from mqreplay.night_size import recorded_bytes
from mqreplay.settings import Settings
from mqreplay.stop_signals import handle_stops_again
from mqreplay.story import Story, tell

# In the session of a query: no file is a table by its path, and no text is replaced by a setting or a variable.
READ_ONLY = {"spark.sql.runSQLOnFiles": "false", "spark.sql.variable.substitute": "false"}


def explain(root: str, finding_id: str, cluster: str | None, settings: Settings) -> Story:
    """Return the story of a finding: its rule, its evidence in time order, its cause and what follows from it."""
    check_text(finding_id, cluster)
    require_warehouse(root)
    return tell(Warehouse(_reader("mqreplay explain", root, settings), root), finding_id, cluster)


def query(root: str, text: str, settings: Settings) -> DataFrame:
    """Return the rows of a query over the warehouse's tables, with RocketMQ's decisions as functions.

    Raises InputError where the statement does anything but read these tables: by its parsed plan before anything is
    run, and again by its analyzed plan.
    """
    check_text(text)
    require_warehouse(root)
    # A session of its own: what is set in it is nobody else's.
    spark = _fitted(_reader("mqreplay sql", root, settings).newSession(), root, settings)
    register(spark)
    for name, value in READ_ONLY.items():
        spark.conf.set(name, value)
    warehouse = Warehouse(spark, root)
    try:
        statement = read_statement(spark, text, warehouse.contracts)
        _register_tables(warehouse, warehouse.contracts if statement.asks_for_tables else statement.tables)
        rows = spark.sql(text)
    except PySparkException as error:
        raise query_error(error) from None
    if statement.is_query:
        check_analyzed(rows)
    return rows


def query_error(error: PySparkException) -> InputError:
    """Return what Spark finds wrong with a query, in its first line that says something."""
    said = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    return InputError(f"query: {said}")


def keep_from_writing(settings: Settings) -> bool:
    """Take from this process, for good, the right to write files other than temporary ones. Call it before Java starts.

    False where Linux cannot do that; then what is refused of a query is the only protection.
    """
    if SparkContext._gateway is not None or not (settings.spark.master or "local").startswith("local"):
        return False  # Java runs already, or elsewhere
    return confine_writes([scratch().folder, *temporary_logs()])


def require_warehouse(root: str) -> None:
    """Raise InputError where there is no warehouse, before Spark is started for it."""
    folder = local_folder(root, "warehouse")
    if not folder.is_dir():
        raise InputError(f"warehouse {root} does not exist; run nightly with a recording first")
    if not any((folder / layer).is_dir() for layer in LAYERS):
        raise InputError(f"{root} is no warehouse: it has no folder {', '.join(LAYERS)}; run nightly with it first")


def _register_tables(warehouse: Warehouse, names: Iterable[str]) -> None:
    """Make tables known to SQL as layer.table, but those never made. Only Spark's memory changes."""
    spark = warehouse.spark
    for layer in LAYERS:
        spark.sql(f"CREATE DATABASE IF NOT EXISTS {layer}")
    for name in names:
        # Another warehouse may have had the name in this process. Its files stay, as it was made with a LOCATION.
        spark.sql(f"DROP TABLE IF EXISTS {name}")
        if warehouse.exists(name):
            spark.sql(f"CREATE TABLE {name} USING delta LOCATION {quoted(warehouse.location(name))}")


def _reader(name: str, root: str, settings: Settings) -> SparkSession:
    spark = build_session(name, settings.spark, recorded_bytes(root))
    handle_stops_again()
    return _fitted(spark, root, settings)


def _fitted(spark: SparkSession, root: str, settings: Settings) -> SparkSession:
    """Return the session, fitted to read the warehouse once: planning takes most of the time for a small one."""
    fit_to(spark, recorded_bytes(root), settings.spark.shuffle_partitions)
    return spark
