"""Arrow types of the Spark SQL types in a contract, for readers and writers without Java."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import pyarrow as pa

from mqreplay.errors import ContractError

PLAIN = {
    "STRING": pa.string(),
    "BIGINT": pa.int64(),
    "INT": pa.int32(),
    "DOUBLE": pa.float64(),
    "BOOLEAN": pa.bool_(),
    "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us", "UTC"),
    "BINARY": pa.binary(),
}
TOKEN = re.compile(r"\s*(\w+|[<>:,])")


def arrow_type(text: str) -> pa.DataType:
    """Return the Arrow type of a Spark SQL type. Raises ContractError for an unsupported type.

    >>> arrow_type("ARRAY<STRUCT<broker_name: STRING, queue_id: INT>>")
    ListType(list<element: struct<broker_name: string, queue_id: int32>>)
    """
    tokens = iter(TOKEN.findall(text))
    return _type(next(tokens, ""), tokens, text)


def arrow_schema(columns: Iterable[tuple[str, str]]) -> pa.Schema:
    """Return the schema of (name, Spark SQL type) pairs; every column may be null."""
    return pa.schema([pa.field(name, arrow_type(kind)) for name, kind in columns])


def _type(word: str, tokens: Iterator[str], text: str) -> pa.DataType:
    if word.upper() in PLAIN:
        return PLAIN[word.upper()]
    try:
        if word.upper() == "ARRAY":
            _skip("<", tokens, text)
            item = _type(next(tokens), tokens, text)
            _skip(">", tokens, text)
            return pa.list_(pa.field("element", item))  # as Spark calls the items of a list
        if word.upper() == "MAP":
            _skip("<", tokens, text)
            key = _type(next(tokens), tokens, text)
            _skip(",", tokens, text)
            value = _type(next(tokens), tokens, text)
            _skip(">", tokens, text)
            return pa.map_(key, value)
        if word.upper() == "STRUCT":
            _skip("<", tokens, text)
            return pa.struct(list(_fields(tokens, text)))
    except StopIteration:
        pass
    raise ContractError(f"column type {text!r} is none that mqreplay's tables use")


def _fields(tokens: Iterator[str], text: str) -> Iterator[pa.Field]:
    more = ","
    while more == ",":
        name = next(tokens)
        _skip(":", tokens, text)
        yield pa.field(name, _type(next(tokens), tokens, text))
        more = next(tokens)
    if more != ">":
        raise ContractError(f"column type {text!r} is none that mqreplay's tables use")


def _skip(wanted: str, tokens: Iterator[str], text: str) -> None:
    if next(tokens) != wanted:
        raise ContractError(f"column type {text!r} is none that mqreplay's tables use")
