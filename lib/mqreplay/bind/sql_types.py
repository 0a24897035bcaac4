"""Types of the catalogue (Spark SQL's): their parts, and their names in DuckDB. No PySpark is needed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

TYPE = re.compile(r"(\w+)\s*(?:<(.*)>)?", re.DOTALL)
INTEGERS = ("TINYINT", "SMALLINT", "INT", "BIGINT")
QUEUE_TYPE = "STRUCT<topic: STRING, broker_name: STRING, queue_id: INT>"
DUCKDB = {"STRING": "VARCHAR", "INT": "INTEGER"}


class Argument(NamedTuple):
    """An argument of a function; one that is not ``nullable`` answers NULL with an error value."""

    name: str
    type: str
    nullable: bool


def arguments_of(ddl: str) -> tuple[Argument, ...]:
    """Return the arguments of a declaration.

    >>> arguments_of("group STRING NOT NULL, offset_table MAP<STRING, MAP<INT, BIGINT>>")[1]
    Argument(name='offset_table', type='MAP<STRING, MAP<INT, BIGINT>>', nullable=True)
    """
    arguments = []
    for part in _parts(ddl):
        name, kind = part.split(maxsplit=1)
        arguments.append(Argument(name, kind.removesuffix("NOT NULL").strip(), not kind.endswith("NOT NULL")))
    return tuple(arguments)


def kind_of(text: str) -> str:
    """Return the outermost word of a type.

    >>> kind_of("ARRAY<STRING>")
    'ARRAY'
    """
    return text.partition("<")[0].strip().upper()


def inner_types(text: str) -> list[str]:
    """Return the types that an ARRAY or a MAP is made of."""
    matched = TYPE.fullmatch(text.strip())
    return list(_parts(matched[2])) if matched and matched[2] else []


def fields(text: str) -> dict[str, str]:
    """Return the types of a STRUCT's fields by name; none for another type.

    >>> fields("STRUCT<broker_name: STRING, queue_id: INT>")
    {'broker_name': 'STRING', 'queue_id': 'INT'}
    """
    if kind_of(text) != "STRUCT":
        return {}
    pairs = (part.partition(":") for part in inner_types(text))
    return {name.strip(): kind.strip() for name, _, kind in pairs}


def is_queue(text: str) -> bool:
    """Return whether a type is the struct of a message queue."""
    return {"broker_name", "queue_id"} <= fields(text).keys() <= {"topic", "broker_name", "queue_id"}


def has_queue(text: str) -> bool:
    """Return whether a type is or holds a message queue."""
    return is_queue(text) or any(map(has_queue, inner_types(text) if kind_of(text) in ("ARRAY", "MAP") else []))


def short_type(text: str) -> str:
    """Return a type with QUEUE in place of the struct of a message queue.

    >>> short_type("ARRAY<STRUCT<topic: STRING, broker_name: STRING, queue_id: INT>>")
    'ARRAY<QUEUE>'
    """
    if is_queue(text):
        return "QUEUE"
    if kind_of(text) in ("ARRAY", "MAP"):
        return f"{kind_of(text)}<{', '.join(map(short_type, inner_types(text)))}>"
    return text


def duckdb_type(text: str) -> str:
    """Return a type of Spark SQL as DuckDB writes it.

    >>> duckdb_type("MAP<STRING, ARRAY<STRUCT<broker_name: STRING, queue_id: INT>>>")
    'MAP(VARCHAR, STRUCT("broker_name" VARCHAR, "queue_id" INTEGER)[])'
    """
    kind = kind_of(text)
    if kind == "ARRAY":
        return f"{duckdb_type(inner_types(text)[0])}[]"
    if kind == "MAP":
        return f"MAP({', '.join(map(duckdb_type, inner_types(text)))})"
    if kind == "STRUCT":
        of_fields = [f'"{name}" {duckdb_type(each)}' for name, each in fields(text).items()]
        return f"STRUCT({', '.join(of_fields)})"
    return DUCKDB.get(kind, kind)


def _parts(text: str) -> Iterator[str]:
    """Yield the parts between commas, except commas within <>."""
    depth, start = 0, 0
    for at, character in enumerate(text):
        depth += (character == "<") - (character == ">")
        if character == "," and depth == 0:
            yield text[start:at].strip()
            start = at + 1
    yield text[start:].strip()
