"""The rows of a query over a warehouse's tables, by Spark SQL. No table is changed."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from py4j.protocol import Py4JJavaError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from mqreplay.bind.register import register
from mqreplay.lake.confinement import confine_writes
from mqreplay.lake.contract import load_contracts
from mqreplay.lake.executor_wait import say_while_no_executor
from mqreplay.lake.files import files_of, joined
from mqreplay.lake.local_folder import LAYERS, require_warehouse
from mqreplay.lake.scratch import scratch
from mqreplay.lake.session import build_session, fit_plans
from mqreplay.lake.sql import check_text, literal
from mqreplay.lake.statement import check_analyzed, read_statement
from mqreplay.lake.storage import spark_location
from mqreplay.lake.warehouse import Warehouse
from mqreplay.machine.crash import is_of_machine, java_exceptions
from mqreplay.machine.log_folder import temporary_logs
from mqreplay.machine.stop_signals import handle_stops_again
from mqreplay.settings import Settings
from mqreplay.words.errors import InputError
from mqreplay.words.printable import printable
from mqreplay.words.similar import unknown_table

# In the session of a query: no file is a table by its path, and no text is replaced by a setting or a variable.
READ_ONLY = {"spark.sql.runSQLOnFiles": "false", "spark.sql.variable.substitute": "false"}
SMALL_SILVER = 16_000_000  # bytes of the silver tables: planning takes most of the time for less
PYTHON_ERROR = re.compile(r"^(?:\w+\.)*\w*(?:Error|Exception): (.+)", re.MULTILINE)
NO_TABLE = re.compile(r"^\[TABLE_OR_VIEW_NOT_FOUND\] The table or view (\S+) cannot be found")
# Classes of SQLSTATE by which Spark names a mistake of a query. Its message may quote any text of the query.
MISTAKES = ("0A", "21", "22", "23", "42", "54", "P0")


def query(root: str, text: str, settings: Settings) -> DataFrame:
    """Return the rows of a query over the warehouse's tables, with RocketMQ's decisions as functions.

    Raises InputError where the statement does anything but read these tables: by its parsed plan before anything is
    run, and again by its analyzed plan.
    """
    check_text(text)
    require_warehouse(root)
    spark = _session(root, settings)
    register(spark)
    for name, value in READ_ONLY.items():
        spark.conf.set(name, value)
    warehouse = Warehouse(root)
    with _mistakes_named():
        statement = read_statement(spark, text, warehouse.contracts)
        _register_tables(spark, warehouse, warehouse.contracts if statement.asks_for_tables else statement.tables)
        with _empty_views(spark, warehouse, statement.tables):
            rows = spark.sql(text)
        if statement.is_query:
            check_analyzed(rows)
    return rows


def fetch(rows: DataFrame) -> tuple[list[str], list[Row]]:
    """Run a query; return the names of its columns and its rows.

    Raises InputError where a mistake in the query ends it, or a value is none that Python can hold.
    """
    try:
        with _mistakes_named():
            return rows.columns, _with_keys_for_python(rows).collect()
    except (ValueError, OverflowError) as error:
        if is_of_machine(error):
            raise
        raise InputError(
            f"query: a value cannot be printed ({error}); dates and timestamps must be in the years 1 to 9999, "
            "or CAST AS STRING"
        ) from None


@contextmanager
def _mistakes_named() -> Iterator[None]:
    """Within, an error that Spark reports becomes InputError, unless the machine failed."""
    try:
        yield
    except (PySparkException, Py4JJavaError, RecursionError) as error:
        if not _is_mistake(error) and is_of_machine(error):
            raise
        raise query_error(error) from None


def query_error(error: Exception) -> InputError:
    """Return the error of a query with the first line of Spark's message that is not empty."""
    # The text of Py4JJavaError begins with a name that Python gave to an object of Java.
    text = str(error.java_exception.toString()) if isinstance(error, Py4JJavaError) else str(error)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if found := PYTHON_ERROR.findall(text):  # of a worker: the first line names no reason
        return InputError(f"query: {found[-1]}")
    message = lines[0] if lines else type(error).__name__
    if found := NO_TABLE.findall(message):
        return InputError(f"query: {unknown_table(found[0].replace('`', ''), load_contracts())}")
    if isinstance(error, RecursionError) or "StackOverflowError" in message:
        return InputError(f"query: the statement is nested too deeply ({message})")
    return InputError(f"query: {message}")


def _is_mistake(error: Exception) -> bool:
    """Return whether Spark reports a mistake in the query."""
    for cause in java_exceptions(error):
        with suppress(Exception):  # only Spark's own errors have a SQLSTATE
            if state := cause.getSqlState():
                return str(state).startswith(MISTAKES)
    return False


def _with_keys_for_python(rows: DataFrame) -> DataFrame:
    """Return the rows with maps as Python can hold them: it takes no key with an array in it."""
    kinds = [each.dataType for each in rows.schema]
    if not any(map(_has_array_key, kinds)):
        return rows
    numbered = rows.toDF(*map(str, range(len(kinds))))  # several columns may have one name
    return numbered.select([_with_text_keys(F.col(str(at)), kind) for at, kind in enumerate(kinds)])


def _with_text_keys(column: Column, kind: DataType) -> Column:
    if not _has_array_key(kind):
        return column
    if isinstance(kind, MapType) and not _has_array_key(kind.valueType):
        return F.transform_keys(column, lambda key, _: key.cast("string"))
    return column.cast("string")


def _has_array_key(kind: DataType) -> bool:
    if isinstance(kind, MapType):
        return _has_array(kind.keyType) or _has_array_key(kind.valueType)
    return any(map(_has_array_key, _parts(kind)))


def _has_array(kind: DataType) -> bool:
    return isinstance(kind, ArrayType) or any(map(_has_array, _parts(kind)))


def _parts(kind: DataType) -> list[DataType]:
    if isinstance(kind, StructType):
        return [each.dataType for each in kind]
    return [kind.elementType] if isinstance(kind, ArrayType) else []


def keep_from_writing(settings: Settings, folders: Iterable[Path] = ()) -> bool:
    """Take from this process, for good, the right to write but for temporary files and in ``folders``.

    Call it before Java starts.
    False where Linux cannot do that; then what is refused of a query is the only protection.
    """
    if SparkContext._gateway is not None or not (settings.spark.master or "local").startswith("local"):
        return False  # Java runs already, or elsewhere
    return confine_writes([scratch().folder, *temporary_logs(), *folders])


def _register_tables(spark: SparkSession, warehouse: Warehouse, names: Iterable[str]) -> None:
    """Make tables known to SQL as layer.table, but those never made. Only Spark's memory changes."""
    for layer in LAYERS:
        spark.sql(f"CREATE DATABASE IF NOT EXISTS {layer}")
    for name in names:
        # Another warehouse may have had the name in this process. Its files stay, as it was made with a LOCATION.
        spark.sql(f"DROP TABLE IF EXISTS {name}")
        if warehouse.exists(name):
            spark.sql(f"CREATE TABLE {name} USING delta LOCATION {literal(spark_location(warehouse.location(name)))}")


@contextmanager
def _empty_views(spark: SparkSession, warehouse: Warehouse, names: Iterable[str]) -> Iterator[None]:
    """Within, tables that were never made are views without rows."""
    missing = [name for name in names if not warehouse.exists(name)]
    try:
        for name in missing:
            columns = warehouse.contracts[name].columns
            nulls = ", ".join(f"CAST(NULL AS {column.type}) AS `{column.name}`" for column in columns)
            spark.sql(f"CREATE OR REPLACE VIEW {name} AS SELECT {nulls} WHERE false")
        yield
    finally:
        for name in missing:
            spark.sql(f"DROP VIEW IF EXISTS {name}")


def _session(root: str, settings: Settings) -> SparkSession:
    """Return a new session for one query. Its settings do not affect others."""
    small = _silver_bytes(root) < SMALL_SILVER
    spark = build_session("mqreplay sql", settings.spark, small=small).newSession()
    say_while_no_executor(spark, settings.spark.extra, _note)
    handle_stops_again()
    fit_plans(spark, small=small)
    return spark


def _note(text: str) -> None:
    print(f"mqreplay: {printable(text)}", file=sys.stderr, flush=True)


def _silver_bytes(root: str) -> int:
    """Return the size of the files of the silver tables in bytes. No table is read."""
    silver = joined(root, "silver")
    return sum(file.bytes for file in files_of(silver).walk(silver) if file.name.endswith(".parquet"))
