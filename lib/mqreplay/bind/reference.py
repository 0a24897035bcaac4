"""The reference of the SQL functions: signature, description, Java method and example, for pages and the terminal."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from mqreplay.bind.function import ERROR_TYPE, BoundFunction
from mqreplay.bind.functions import FUNCTIONS
from mqreplay.bind.sql_types import fields, inner_types, kind_of, short_type

WORD = re.compile(r"\w+")


def signature(bound: BoundFunction) -> str:
    """Return the call with its types; arguments in brackets may be left out. QUEUE is a struct of a message queue."""
    shown = [f"{each.name} {short_type(each.type)}" for each in bound.argument_list]
    needed, optional = shown[: bound.fewest_arguments], shown[bound.fewest_arguments :]
    text = ", ".join(needed) + (f"[, {', '.join(optional)}]" if optional else "")
    return f"{bound.name}({text})"


def description_lines(bound: BoundFunction, engine: str) -> Iterator[str]:
    """Yield the lines of DESCRIBE FUNCTION."""
    yield f"Function: {bound.name}"
    yield f"Usage: {signature(bound)}"
    yield f"Answer: STRUCT<value: {short_type(bound.value_type)}, error: {ERROR_TYPE}>"
    if "QUEUE" in signature(bound):
        yield "QUEUE: STRUCT<topic: STRING, broker_name: STRING, queue_id: INT>; topic may be missing"
    yield bound.description
    yield f"RocketMQ: {bound.java}"
    yield f"Example: SELECT {example(bound, engine)}.value"


def example(bound: BoundFunction, engine: str) -> str:
    """Return a call in the SQL of an engine, duckdb or spark."""
    write = duckdb_value if engine == "duckdb" else spark_value
    kinds = [each.type for each in bound.argument_list]
    return f"{bound.name}({', '.join(write(value, kind) for value, kind in zip(bound.example, kinds, strict=False))})"


def duckdb_value(value: Any, kind: str) -> str:
    """Return a value of a type in DuckDB's SQL.

    >>> duckdb_value(("t", "b", 0), "STRUCT<topic: STRING, broker_name: STRING, queue_id: INT>")
    "{'topic': 't', 'broker_name': 'b', 'queue_id': 0}"
    """
    if kind_of(kind) == "ARRAY":
        return f"[{', '.join(duckdb_value(each, inner_types(kind)[0]) for each in value)}]"
    if kind_of(kind) == "MAP":
        key_kind, value_kind = inner_types(kind)
        pairs = [f"{duckdb_value(k, key_kind)}: {duckdb_value(v, value_kind)}" for k, v in value.items()]
        return f"MAP {{{', '.join(pairs)}}}"
    if kind_of(kind) == "STRUCT":
        named = zip(fields(kind).items(), value, strict=True)
        parts = [f"'{name}': {duckdb_value(each, of)}" for (name, of), each in named]
        return f"{{{', '.join(parts)}}}"
    return _plain(value)


def spark_value(value: Any, kind: str) -> str:
    """Return a value of a type in Spark SQL.

    >>> spark_value({"b": {0: "x"}}, "MAP<STRING, MAP<BIGINT, STRING>>")
    "map('b', map(0L, 'x'))"
    """
    if kind_of(kind) == "ARRAY":
        return f"array({', '.join(spark_value(each, inner_types(kind)[0]) for each in value)})"
    if kind_of(kind) == "MAP":
        key_kind, value_kind = inner_types(kind)
        pairs = [f"{spark_value(k, key_kind)}, {spark_value(v, value_kind)}" for k, v in value.items()]
        return f"map({', '.join(pairs)})"
    if kind_of(kind) == "STRUCT":
        named = zip(fields(kind).items(), value, strict=True)
        parts = [f"'{name}', {spark_value(each, of)}" for (name, of), each in named]
        return f"named_struct({', '.join(parts)})"
    return f"{_plain(value)}L" if kind_of(kind) == "BIGINT" else _plain(value)


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value)


def functions_in(text: str) -> list[str]:
    """Return the names of the catalogue that occur in a text as words.

    >>> functions_in("SELECT Memory_Threshold(1, 2).value")
    ['memory_threshold']
    """
    words = {word.lower() for word in WORD.findall(text)}
    return [name for name in FUNCTIONS if name in words]
