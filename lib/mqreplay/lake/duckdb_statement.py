"""What a statement of DuckDB's SQL would do, by DuckDB's own parser: the tables that it reads, or why it is refused.

The parsed statement is walked whole: subqueries, common table expressions, and whatever else a node holds. Table
functions are accepted only if they are known to read nothing but their arguments and the catalog. The database refuses
files, settings and extensions by itself (Database.lock).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import duckdb

from mqreplay.lake.duckdb_database import literal
from mqreplay.words.errors import InputError
from mqreplay.words.similar import unknown_table

READS = "mqreplay sql runs SELECT, VALUES, SHOW, DESCRIBE and EXPLAIN, and changes nothing"
# A function that takes a pointer, a file, or a statement as text is none of these.
TABLE_FUNCTIONS = frozenset(
    [
        *("range", "generate_series", "unnest", "repeat", "repeat_row", "json_each", "json_tree", "summary"),
        *("histogram", "histogram_values", "duckdb_columns", "duckdb_functions", "duckdb_keywords", "duckdb_schemas"),
        *("duckdb_settings", "duckdb_tables", "duckdb_types", "duckdb_views", "pragma_table_info", "pragma_version"),
        *("icu_calendar_names", "pg_timezone_names"),
    ]
)
FORBIDDEN = frozenset(["write_log", "sleep_ms", "setseed", "nextval", "currval", "setval", "getenv"])
ABOUT_TABLES = ("information_schema", "pg_catalog")
EXPLAIN = re.compile(r"\s*EXPLAIN\b(\s+ANALYZE\b)?\s*(\([^()]*\))?", re.IGNORECASE)
COMMENT = re.compile(r"\s*(--[^\n]*(\n|\Z)|/\*.*?\*/)", re.DOTALL)
SELECT, EXPLAINS = duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN


@dataclass
class DuckdbStatement:
    """What a statement names: tables as layer.table; and whether it asks which tables there are."""

    tables: set[str] = field(default_factory=set)
    asks_for_tables: bool = False


def read_duckdb_statement(connection: duckdb.DuckDBPyConnection, text: str, tables: Iterable[str]) -> DuckdbStatement:
    """Return what the statement reads. Raises InputError where it may do anything but read these ``tables``.

    DuckDB's errors about its syntax are passed on.
    """
    known = {name.lower(): name for name in tables}
    statement = DuckdbStatement()
    nodes = list(_nodes(_parsed(connection, _only_query(connection, text))))
    named_within = {name for node in nodes for name in _ctes(node)}
    for node in nodes:
        kind = node.get("type")
        if kind == "BASE_TABLE":
            _add_table(statement, node, known, named_within)
        elif kind == "TABLE_FUNCTION":
            _check_table_function(statement, node["function"]["function_name"].lower())
        elif kind == "SHOW_REF" and node.get("query") is None:
            statement.asks_for_tables = True
            if node["show_type"] in ("DESCRIBE", "SUMMARY") and node["table_name"]:
                _add_table(statement, node, known, named_within)
        elif kind == "FUNCTION" and node.get("function_name", "").lower() in FORBIDDEN:
            raise InputError(f"query refused: the function {node['function_name']} does more than read; {READS}")
    return statement


def _only_query(connection: duckdb.DuckDBPyConnection, text: str) -> str:
    """Return the query that a statement is or explains. Raises InputError where it is neither."""
    statements = connection.extract_statements(text)
    if len(statements) != 1:
        found = "no statement" if not statements else f"{len(statements)} statements"
        raise InputError(f"query refused: {found}; give one statement")
    [only] = statements
    if only.type == SELECT:
        return only.query
    if only.type != EXPLAINS:
        name = only.type.name.replace("MULTI", "PIVOT without IN (...)")
        raise InputError(f"query refused: {name} is not a query; {READS}")
    rest = only.query
    while comment := COMMENT.match(rest):
        rest = rest[comment.end() :]
    explain = EXPLAIN.match(rest)
    if explain is None:
        raise InputError(f"query refused: {READS}")
    return _only_query(connection, rest[explain.end() :])


def _parsed(connection: duckdb.DuckDBPyConnection, query: str) -> Any:
    # Not as a parameter: DuckDB would load pandas to find out what it is.
    row = connection.execute(f"SELECT CAST(json_serialize_sql({literal(query)}) AS VARCHAR)").fetchone()
    found = json.loads(row[0]) if row else {"error": True}
    if found["error"]:
        message = str(found.get("error_message", "it cannot be parsed")).splitlines()[0]
        raise InputError(f"query refused: {message}; {READS}")
    return found["statements"]


def _nodes(tree: Any) -> Iterator[dict[str, Any]]:
    """Yield every object of a parsed statement."""
    todo = [tree]
    while todo:
        each = todo.pop()
        if isinstance(each, dict):
            yield each
            todo += each.values()
        elif isinstance(each, list):
            todo += each


def _ctes(node: dict[str, Any]) -> Iterator[str]:
    """Yield the names that a node gives to queries within the statement."""
    entries = node.get("cte_map")
    if isinstance(entries, dict):
        yield from (entry["key"].lower() for entry in entries.get("map", []))
    if isinstance(node.get("cte_name"), str):
        yield node["cte_name"].lower()


def _add_table(statement: DuckdbStatement, node: dict[str, Any], known: dict[str, str], named_within: set[str]) -> None:
    parts = [part.strip('"').lower() for part in node["qualified_name"]["path"] if part]
    if len(parts) == 1 and parts[0] in named_within:
        return
    if len(parts) > 1 and parts[-2] in ABOUT_TABLES:
        statement.asks_for_tables = True
        return
    name = ".".join(parts)
    if name not in known:
        raise InputError(f"query refused: {unknown_table(name, known.values())}")
    if node.get("at_clause"):
        raise InputError("query refused: AT (VERSION ...) needs --engine spark, as table VERSION AS OF n")
    statement.tables.add(known[name])


def _check_table_function(statement: DuckdbStatement, name: str) -> None:
    if name not in TABLE_FUNCTIONS:
        raise InputError(f"query refused: the function {name} reaches outside the tables")
    statement.asks_for_tables |= name.startswith(("duckdb_", "pragma_"))
