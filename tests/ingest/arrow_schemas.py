"""The Arrow schema that a silver table's rows are given in, without a Spark session."""

from __future__ import annotations

import re

import pyarrow as pa

from mqreplay.ingest.recording import RECORD_TABLES
from mqreplay.lake.contract import load_contracts

_PLAIN = {
    "STRING": pa.string(),
    "BOOLEAN": pa.bool_(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "TIMESTAMP": pa.timestamp("us", "UTC"),
    "DATE": pa.date32(),
}


def schema_of(kind: str) -> pa.Schema:
    """The columns of a kind's silver table."""
    columns = load_contracts()[RECORD_TABLES[kind]].columns
    return pa.schema([(column.name, arrow_type(column.type)) for column in columns])


def arrow_type(text: str) -> pa.DataType:
    """A Spark type as Arrow has it."""
    found, rest = _read(re.findall(r"\w+|[<>,:]", text))
    assert not rest, text
    return found


def _read(words: list[str]) -> tuple[pa.DataType, list[str]]:
    name, rest = words[0].upper(), words[1:]
    if name in _PLAIN:
        return _PLAIN[name], rest
    inner: list[pa.DataType] = []
    names: list[str] = []
    while rest[0] != ">":
        rest = rest[1:]  # the bracket or the comma before
        if name == "STRUCT":
            names.append(rest[0])
            rest = rest[2:]
        one, rest = _read(rest)
        inner.append(one)
    rest = rest[1:]
    if name == "ARRAY":
        return pa.list_(inner[0]), rest
    if name == "MAP":
        return pa.map_(*inner), rest
    return pa.struct(list(zip(names, inner, strict=True))), rest
