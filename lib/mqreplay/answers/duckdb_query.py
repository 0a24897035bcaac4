"""The rows of a query over a warehouse's tables, by DuckDB. No table is changed."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import duckdb
import polars as pl

from mqreplay.answers.duckdb_error import MEMORY_SHORT, PYTHON_FAILED, duckdb_error
from mqreplay.bind.reference import functions_in
from mqreplay.bind.register_duckdb import register_duckdb
from mqreplay.lake.contract import Contract
from mqreplay.lake.duckdb_database import Database, quoted, without_zone
from mqreplay.lake.duckdb_statement import read_duckdb_statement
from mqreplay.lake.local_folder import LAYERS, require_warehouse
from mqreplay.lake.separate_process import limit_memory
from mqreplay.lake.sql import check_text
from mqreplay.lake.warehouse import Warehouse
from mqreplay.machine.crash import is_of_machine
from mqreplay.machine.stop_signals import handle_stops_again
from mqreplay.words.errors import InputError

Rows = tuple[list[str], Sequence[Sequence[Any]]]  # names of columns, rows
Head = list[tuple[str, str]]  # names and types of columns
ROWS_AT_ONCE = 512
WHOLE_NUMBERS = re.compile(r"\bU?(?:(?:TINY|SMALL|BIG|HUGE)INT|INTEGER)\b|\bINTERVAL\b")  # int, in rows of Python
DESCRIBE_FUNCTION = re.compile(r"\s*DESC(?:RIBE)?\s+FUNCTION\b", re.IGNORECASE)
SHOW_FUNCTIONS = re.compile(r"\s*SHOW\s+FUNCTIONS(?:\s+LIKE\s+'([^']*)')?\s*;?\s*", re.IGNORECASE)
SHOW_TABLES = re.compile(r"\s*SHOW\s+TABLES(?:\s+(?:IN|FROM)\s+(\w+))?\s*;?\s*", re.IGNORECASE)


def duckdb_rows(root: str, text: str) -> Rows:
    """Return what ``duckdb_stream`` gives, with all rows."""
    names, rows = duckdb_stream(root, text)
    return names, list(rows)


def duckdb_frame(root: str, text: str) -> pl.DataFrame:
    """Return what ``duckdb_stream`` gives as a frame. Columns without values have the types of the query, too."""
    head, rows = duckdb_typed_stream(root, text)
    names = [name for name, _ in head]
    frame = pl.DataFrame(list(rows), schema=names, orient="row", infer_schema_length=None, strict=False)
    unknown = [(name, kind) for name, kind in head if frame.schema[name] == pl.Null]
    return frame.with_columns(pl.col(name).cast(_polars_type(kind)) for name, kind in unknown)


def _polars_type(kind: str) -> pl.DataType:
    """Return the type of polars that rows of a type of DuckDB have.

    >>> _polars_type("INTEGER[]"), _polars_type("TIMESTAMP WITH TIME ZONE"), _polars_type("HUGEINT")
    (List(Int64), Datetime(time_unit='us', time_zone=None), Int64)
    """
    if kind == "INTERVAL":
        return pl.Duration("us")
    plain = (
        WHOLE_NUMBERS.sub("BIGINT", kind).replace("FLOAT", "DOUBLE").replace("TIMESTAMP WITH TIME ZONE", "TIMESTAMP")
    )
    with duckdb.connect() as connection:
        column: pl.DataType = connection.sql(f"SELECT NULL::{plain} AS a LIMIT 0").pl().dtypes[0]
    return column


def duckdb_stream(root: str, text: str, memory: int | None = None) -> tuple[list[str], Iterator[Sequence[Any]]]:
    """Return the names of the columns, and the rows, of ``duckdb_typed_stream``."""
    head, rows = duckdb_typed_stream(root, text, memory)
    return [name for name, _ in head], rows


def duckdb_typed_stream(root: str, text: str, memory: int | None = None) -> tuple[Head, Iterator[Sequence[Any]]]:
    """Run a query over the warehouse's tables, with RocketMQ's decisions as functions; return its rows as they come.

    Each query has a database of its own. A table that was never made has no rows. Raises InputError where the statement
    does anything but read these tables, or has a mistake; a mistake in a late row is raised when its turn comes.
    ``memory``: the bytes that this process may take beside those that it has now.
    """
    check_text(text)
    require_warehouse(root)
    warehouse = Warehouse(root)
    if shown := SHOW_TABLES.fullmatch(text):
        names, pairs = _show_tables(warehouse, shown[1])
        return _texts(names), iter(pairs)
    answer = _answer(warehouse, text, memory)
    return next(answer), answer


def _answer(warehouse: Warehouse, text: str, memory: int | None) -> Iterator[Any]:
    """Yield the names and types of the columns, then the rows."""
    with Database() as database:
        if memory is not None:
            limit_memory(memory)
        try:
            yield from _rows(database, warehouse, text)
        except duckdb.Error as error:
            if _is_defect(error):
                raise
            raise duckdb_error(error, _named_in(text, warehouse)) from None
        except RecursionError:
            raise InputError("query: the statement is nested too deeply") from None


def _named_in(text: str, warehouse: Warehouse) -> dict[str, Contract]:
    """Return the contracts of the tables that a query names."""
    lower = text.lower().replace('"', "")
    return {name: warehouse.contracts[name] for name in warehouse.contracts if name in lower}


def _is_defect(error: duckdb.Error) -> bool:
    """Return whether the machine or a program failed. Other errors may quote any text of the query."""
    if MEMORY_SHORT.search(str(error)):
        return False
    if isinstance(error, duckdb.FatalException | duckdb.InternalException):
        return True
    is_of_program = isinstance(error, duckdb.IOException) or str(error).startswith(PYTHON_FAILED)
    return is_of_program and is_of_machine(error)


def _rows(database: Database, warehouse: Warehouse, text: str) -> Iterator[Any]:
    connection = database.connection
    if (shown := SHOW_FUNCTIONS.fullmatch(text)) or DESCRIBE_FUNCTION.match(text):
        names, rows = _show_functions(connection, shown[1]) if shown else _describe_function(connection, text)
        yield _texts(names)
        yield from rows
        return
    statement = read_duckdb_statement(connection, text, warehouse.contracts)
    made = [name for name in warehouse.contracts if statement.asks_for_tables and warehouse.exists(name)]
    database.run("SET default_null_order = 'nulls_first_on_asc_last_on_desc'")  # as Spark sorts
    _make_views(database, warehouse, dict.fromkeys([*statement.tables, *made]))
    register_duckdb(connection, functions_in(text))
    database.lock()
    # In a thread: while a query runs, DuckDB lets no handler of a signal run in its own.
    with ThreadPoolExecutor(1) as pool:
        try:
            result = _wait(pool.submit(connection.execute, text))
            yield [(str(column[0]), str(column[1])) for column in result.description or ()]
            zoned = any("WITH TIME ZONE" in str(column[1]) for column in result.description or ())
            while rows := _wait(pool.submit(result.fetchmany, ROWS_AT_ONCE)):
                yield from ([tuple(map(_in_utc, row)) for row in rows] if zoned else rows)
        except KeyboardInterrupt:
            connection.interrupt()
            raise


def _texts(names: Iterable[str]) -> Head:
    return [(name, "VARCHAR") for name in names]


def _wait(running: Future[Any]) -> Any:
    handle_stops_again()  # polars may have taken Ctrl-C
    return running.result()


def _make_views(database: Database, warehouse: Warehouse, names: Iterable[str]) -> None:
    """Make tables known as layer.table, with the columns of their contracts."""
    for layer in LAYERS:
        database.run(f"CREATE SCHEMA {layer}")
    for name in names:
        schema, files = warehouse.contracts[name].arrow_schema, warehouse.listed_files(name)
        columns = ", ".join(without_zone(schema, schema.names))
        layer, _, table = name.partition(".")
        database.run(f"CREATE VIEW {layer}.{quoted(table)} AS SELECT {columns} FROM ({database.files(schema, files)})")


def _in_utc(value: Any) -> Any:
    """Return instants without their zone, as those of tables are."""
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        return value.astimezone(dt.UTC).replace(tzinfo=None)
    if isinstance(value, dict):
        return {_in_utc(key): _in_utc(each) for key, each in value.items()}
    return [_in_utc(each) for each in value] if isinstance(value, list) else value


def _show_tables(warehouse: Warehouse, layer: str | None) -> Rows:
    if layer is not None and layer.lower() not in LAYERS:
        raise InputError(f"query refused: there is no layer {layer}; the layers are {', '.join(LAYERS)}")
    pairs = [name.split(".") for name in warehouse.contracts if warehouse.exists(name)]
    return ["layer", "table"], [pair for pair in pairs if layer is None or pair[0] == layer.lower()]


def _show_functions(connection: duckdb.DuckDBPyConnection, like: str | None) -> Rows:
    register_duckdb(connection)
    pattern = (like or "*").replace("*", "%")
    found = connection.execute(
        "SELECT DISTINCT function_name AS function FROM duckdb_functions() "
        "WHERE function_name ILIKE ? AND NOT starts_with(function_name, '_') AND function_type <> 'pragma' "
        "ORDER BY ALL",
        [pattern],
    )
    return ["function"], found.fetchall()


def _describe_function(connection: duckdb.DuckDBPyConnection, text: str) -> Rows:
    """Describe a function of DuckDB itself."""
    name = re.sub(r"(?i)\s*DESC(RIBE)?\s+FUNCTION\s+(EXTENDED\s+)?", "", text).strip(' \n;"`').lower()
    found = connection.execute(
        "SELECT DISTINCT function_name, parameters, parameter_types, return_type, description FROM duckdb_functions() "
        "WHERE lower(function_name) = ? ORDER BY ALL",
        [name],
    ).fetchall()
    if not found:
        raise InputError(f"query: there is no function {name}; `SHOW FUNCTIONS` lists them")
    lines = [f"Function: {name}"]
    for _, parameters, types, answer, _ in found:
        usage = [f"{n} {t or 'ANY'}" for n, t in zip(parameters, types, strict=False)]
        lines.append(f"Usage: {name}({', '.join(usage)})" + (f" -> {answer}" if answer else ""))
    lines += dict.fromkeys(row[4] for row in found if row[4])
    return ["function_desc"], [(line,) for line in lines]
