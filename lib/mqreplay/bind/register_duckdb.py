"""The catalogue as SQL functions of a connection of DuckDB, with the names and arguments that they have in Spark."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence

import duckdb
import pyarrow as pa

from mqreplay.bind.faces import arrow_face
from mqreplay.bind.function import ERROR_TYPE, BoundFunction
from mqreplay.bind.functions import FUNCTIONS
from mqreplay.bind.sql_types import Argument, duckdb_type, has_queue

TYPED = "_mqreplay_"  # begins the name of a function that takes its arguments in their exact types


def register_duckdb(connection: duckdb.DuckDBPyConnection, names: Sequence[str] = tuple(FUNCTIONS)) -> None:
    """Make functions of the catalogue SQL functions of the connection, as macros.

    DuckDB has no overloads of Python functions, but of macros: one for each number of arguments. A macro also gives
    arguments their names, and casts queues, which may come without a topic.
    """
    for name in names:
        bound = FUNCTIONS[name]
        macros = [_macro(connection, bound, arity) for arity in _arities(bound)]
        connection.execute(f"CREATE MACRO {name} {', '.join(macros)}")


def _arities(bound: BoundFunction) -> range:
    return range(bound.fewest_arguments, len(bound.argument_list) + 1)


def _macro(connection: duckdb.DuckDBPyConnection, bound: BoundFunction, arity: int) -> str:
    """Register the function with this number of arguments; return its part of the macro."""
    arguments = bound.argument_list[:arity]
    typed = f"{TYPED}{bound.name}_{arity}"
    answer_type = duckdb_type(f"STRUCT<value: {bound.value_type}, error: {ERROR_TYPE}>")
    connection.create_function(  # type: ignore[call-overload]  # its types name classes that the module does not have
        typed,
        _face(bound, arguments, _arrow_type(connection, answer_type)),
        [duckdb_type(argument.type) for argument in arguments],
        answer_type,
        type="arrow",
        null_handling="special",
    )
    names = [f'"{argument.name}"' for argument in arguments]
    passed = [_passed(argument) for argument in arguments]
    return f"({', '.join(names)}) AS {typed}({', '.join(passed)})"


def _passed(argument: Argument) -> str:
    name = f'"{argument.name}"'
    return f"CAST({name} AS {duckdb_type(argument.type)})" if has_queue(argument.type) else name


def _face(bound: BoundFunction, arguments: Sequence[Argument], answer: pa.StructType) -> Callable[..., pa.Array]:
    whole = arrow_face(bound.answering, answer)

    def face(*columns: pa.ChunkedArray) -> pa.Array:
        return whole(*(column.combine_chunks() for column in columns))

    # DuckDB counts the parameters.
    parameters = [inspect.Parameter(each.name, inspect.Parameter.POSITIONAL_ONLY) for each in arguments]
    face.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return face


def _arrow_type(connection: duckdb.DuckDBPyConnection, kind: str) -> pa.StructType:
    return connection.sql(f"SELECT CAST(NULL AS {kind}) AS answer").to_arrow_table().schema.field("answer").type
