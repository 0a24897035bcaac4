"""CHECK conditions of the contracts (Spark SQL) in DuckDB's SQL.

Only a part of the language with the same meaning in both is supported (a test compares them): comparisons, AND, OR,
NOT, IS [NOT] NULL, sums and differences of columns and integers, and CAST to TIMESTAMP.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from mqreplay.errors import ContractError

TOKEN = re.compile(r"\s*(\w+|<=>|<>|<=|>=|!=|[-+=<>(),])|\s*(\S)")
NULL_SAFE = "IS NOT DISTINCT FROM"
WORDS = frozenset({"AND", "OR", "NOT", "IS", "NULL", "CAST", "AS", "TIMESTAMP", "TRUE", "FALSE"})


def duckdb_condition(condition: str, columns: Collection[str]) -> str:
    """Return Spark's condition in DuckDB's SQL. Raises ContractError for unsupported syntax.

    >>> duckdb_condition("NOT (a <=> b)", {"a", "b"})
    'NOT ( "a" IS NOT DISTINCT FROM "b" )'
    """
    return " ".join(_word(found[1], found[2], condition, columns) for found in TOKEN.finditer(condition))


def _word(word: str | None, other: str | None, condition: str, columns: Collection[str]) -> str:
    if word in columns:
        return f'"{word}"'
    if word is None or (re.match(r"\w", word) and not word.isdigit() and word.upper() not in WORDS):
        raise ContractError(f"CHECK ({condition}) has {word or other!r}, which mqreplay does not evaluate")
    return NULL_SAFE if word == "<=>" else word
