"""The tables of one cluster as DuckDB views over the Parquet files of their last versions.

Tables are not loaded: each query reads the columns that it needs block by block, and spills data above MEMORY to the
scratch folder.
"""

from __future__ import annotations

import datetime as dt
import os
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self

import duckdb

from mqreplay.lake.contract import Contract
from mqreplay.lake.delta_files import table_files
from mqreplay.lake.scratch import scratch

MEMORY = "1GB"
PATTERN = re.compile(r"[*?\[]")  # DuckDB treats a path with one of these as a pattern


class Located(Protocol):
    """A warehouse: contracts by table name, and the folder of each table."""

    contracts: dict[str, Contract]

    def location(self, name: str) -> str:
        """Return the folder of a table."""


@dataclass(frozen=True)
class Days:
    """Days from ``first`` to ``last``; None: no bound."""

    first: dt.date | None = None
    last: dt.date | None = None


EVERY = Days()


class Tables:
    """The tables of one cluster. A table that does not exist has no rows.

    ``connection`` is a database in memory that has only the views.
    """

    def __init__(self, warehouse: Located, cluster: str) -> None:
        """Connect; no table is read yet."""
        self.contracts: Mapping[str, Contract] = warehouse.contracts
        self._location, self._cluster = warehouse.location, cluster
        self._folder = tempfile.mkdtemp(dir=scratch().folder)
        settings: dict[str, Any] = {
            "memory_limit": MEMORY,
            "temp_directory": self._folder,
            "autoinstall_known_extensions": False,  # no network access
        }
        self.connection = duckdb.connect(config=settings)
        # Instants are compared and shown in UTC, regardless of this machine's zone.
        self.run("SET GLOBAL TimeZone = 'UTC'")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()
        shutil.rmtree(self._folder)

    def run(self, statement: str) -> list[Any]:
        """Return the rows that a statement of DuckDB's SQL gives."""
        return self.connection.execute(statement).fetchall()

    def rows(self, name: str, columns: Sequence[str], days: Days = EVERY, *, lost: bool = False) -> str:
        """Return a query for the cluster's rows on some days. Instants have no zone: they are in UTC.

        ``lost``: include rows without a cluster or day, which no other query would find.
        """
        contract = self.contracts[name]
        types = {c.name: c.type.upper() for c in contract.columns}
        shown = [
            f"CAST({quoted(c)} AS TIMESTAMP) AS {quoted(c)}" if types[c] == "TIMESTAMP" else quoted(c) for c in columns
        ]
        wanted = {"cluster": [f"cluster = {literal(self._cluster)}"], "day": []}
        wanted["day"] += [f"day >= {literal(str(days.first))}"] if days.first else []
        wanted["day"] += [f"day <= {literal(str(days.last))}"] if days.last else []
        found = [
            f"({' AND '.join(conditions)}{f' OR {column} IS NULL' if lost else ''})"
            for column, conditions in wanted.items()
            if conditions
        ]
        return f"SELECT {', '.join(shown)} FROM ({self._files(contract, days)}) WHERE {' AND '.join(found)}"

    def view(self, name: str, query: str) -> None:
        """Create a view of a query."""
        self.run(f"CREATE OR REPLACE VIEW {quoted(name)} AS {query}")

    def count(self, query: str, column: str | None = None) -> int:
        """Return the number of rows of a query, or of non-null values of its column."""
        counted = "count(*)" if column is None else f"count(DISTINCT {quoted(column)})"
        return int(self.run(f"SELECT {counted} FROM ({query})")[0][0])

    def _files(self, contract: Contract, days: Days) -> str:
        """Return a query for all columns of the files that may hold the rows."""
        schema = contract.arrow_schema
        between = (days.first or dt.date.min, days.last or dt.date.max) if days != EVERY else None
        files = table_files(self._location(contract.name), schema, self._cluster, between)
        # Columns that older files lack are null.
        types = map(str, duckdb.from_arrow(schema.empty_table()).types)
        nulls = [f"CAST(NULL AS {t}) AS {quoted(c)}" for c, t in zip(schema.names, types, strict=True)]
        none = f"SELECT {', '.join(nulls)} WHERE false"
        if not files.paths:
            return none
        paths = ", ".join(literal(self._plain(path)) for path in files.paths)
        read = f"read_parquet([{paths}], union_by_name = true, hive_partitioning = false)"
        return f"{none} UNION ALL BY NAME SELECT * FROM {read}"

    def _plain(self, path: str) -> str:
        """Return a path to the same file without pattern characters."""
        if not PATTERN.search(path):
            return path
        link = os.path.join(self._folder, re.sub(r"\W", "-", os.path.basename(path)) + ".parquet")
        if not os.path.lexists(link):
            os.symlink(path, link)
        return link


def quoted(name: str) -> str:
    """Return a name as a DuckDB identifier.

    >>> quoted('a"b')
    '"a""b"'
    """
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Return a text without NUL as a DuckDB expression.

    >>> literal("it's")
    "'it''s'"
    """
    return " || chr(0) || ".join("'" + part.replace("'", "''") + "'" for part in text.split("\0"))
