"""What is wrong with a query, in one line, from an error of DuckDB."""

from __future__ import annotations

import re
from collections.abc import Mapping

import duckdb

from mqreplay.answers.query_bounds import TOO_LARGE
from mqreplay.bind.functions import FUNCTIONS
from mqreplay.bind.reference import signature
from mqreplay.bind.register_duckdb import TYPED
from mqreplay.lake.contract import Contract
from mqreplay.words.errors import InputError
from mqreplay.words.similar import did_you_mean

COLUMN = re.compile(r'(?:Referenced column|does not have a column named) "([^"]+)"')
CANDIDATES = re.compile(r"Candidate bindings: (.*)")
NO_FUNCTION = re.compile(r"(?:Scalar|Aggregate|Table) Function with name \"?(\w+)\"? ")
ARGUMENTS = re.compile(r"No function matches the given name and argument types '(\w+)\((.*)\)'", re.DOTALL)
MACRO = re.compile(r"Macro (\w+)\(\) does not support the supplied arguments")
TYPED_NAME = re.compile(rf"{TYPED}(\w+)_\d+")
MEMORY_SHORT = re.compile(r"MemoryError|bad_alloc|Cannot allocate memory")
PYTHON = "Python exception occurred while executing the UDF: "
PYTHON_FAILED = f"Invalid Input Error: {PYTHON}"
SPARK_SQL = "this is DuckDB's SQL, see docs/sql.md; --engine spark runs Spark SQL"
TYPE_NAMES = {"INTEGER_LITERAL": "INTEGER", "STRING_LITERAL": "VARCHAR", '"NULL"': "NULL"}


def duckdb_error(error: duckdb.Error, contracts: Mapping[str, Contract]) -> InputError:
    """Return what is wrong with the query. ``contracts`` are those of its tables."""
    text = str(error)
    kind, _, message = text.partition(": ")
    first = next((line.strip() for line in message.splitlines() if line.strip()), kind or type(error).__name__)
    if isinstance(error, duckdb.OutOfMemoryException) or MEMORY_SHORT.search(text):
        return InputError(f"{TOO_LARGE} ({first})")
    if isinstance(error, duckdb.PermissionException):
        return InputError(f"query refused: it reaches outside the tables ({first})")
    if isinstance(error, duckdb.IOException):
        return InputError(f"query: a file of a table cannot be read; run it again if a night runs ({first})")
    if first.startswith("Max expression depth"):
        return InputError("query: the statement is nested too deeply")
    if isinstance(error, duckdb.ParserException):
        return InputError(f"query: {first}{_place(text)}; {SPARK_SQL}")
    if found := COLUMN.search(text):
        return InputError(f"query: there is no column {found[1]}; {_column_hint(found[1], text, contracts)}")
    if (found := ARGUMENTS.search(text)) or (found := MACRO.search(text)):
        return InputError(f"query: {_arguments_hint(found)}")
    if found := NO_FUNCTION.search(text):
        return InputError(f"query: there is no function {found[1]}{_function_hint(found[1], text)}; {SPARK_SQL}")
    plain = TYPED_NAME.sub(r"\1", first).replace(PYTHON, "")
    return InputError(f"query: {plain}")


def _place(text: str) -> str:
    line = re.search(r"^LINE (\d+):", text, re.MULTILINE)
    return f" in line {line[1]}" if line and int(line[1]) > 1 else ""


def _column_hint(name: str, text: str, contracts: Mapping[str, Contract]) -> str:
    listed = CANDIDATES.search(text)
    candidates = re.findall(r'"([^"]+)"', listed[1]) if listed else []
    columns = [column.name for contract in contracts.values() for column in contract.columns]
    others = [each for each in [*candidates, *columns] if each.lower() != name.lower()]
    meant = did_you_mean(name, others) or next((each for each in others if name.lower() in each.split("_")), None)
    return f"did you mean {meant}?" if meant else "`mqreplay tables TABLE` lists them"


def _function_hint(name: str, text: str) -> str:
    listed = re.search(r'Did you mean "([^"]+)"', text)
    meant = did_you_mean(name, [*FUNCTIONS, *([listed[1]] if listed else [])])
    return f", did you mean {meant}?" if meant else ""


def _arguments_hint(found: re.Match[str]) -> str:
    name = found[1]
    if typed := TYPED_NAME.fullmatch(name):
        name = typed[1]
    types = f"({_types(found[2])})" if found.re is ARGUMENTS else ""
    if name in FUNCTIONS:
        return f"{name} does not take these arguments{' ' if types else ''}{types}; write {signature(FUNCTIONS[name])}"
    return f"the function {name} does not take the arguments {types}; DESCRIBE FUNCTION {name} shows them"


def _types(text: str) -> str:
    for literal, name in TYPE_NAMES.items():
        text = text.replace(literal, name)
    return text
