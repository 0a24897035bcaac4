"""Types of columns in DuckDB."""

from __future__ import annotations

import duckdb

from mqreplay.lake.contract import load_contracts
from mqreplay.lake.duckdb_database import duckdb_type


def test_types_are_those_that_duckdb_gives() -> None:
    for contract in load_contracts().values():
        schema = contract.arrow_schema
        own = [duckdb.sqltypes.DuckDBPyType(duckdb_type(field.type)) for field in schema]
        assert own == duckdb.from_arrow(schema.empty_table()).types, contract.name
