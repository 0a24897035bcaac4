"""A database of DuckDB in memory, over the Parquet files of Delta tables.

Nothing is loaded: each query reads the columns that it needs, a block of rows at a time, and what does not fit into
MEMORY goes to the scratch folder.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Self

import duckdb
import pyarrow as pa

from mqreplay.lake.copies import copied_if_small
from mqreplay.lake.files import is_remote
from mqreplay.lake.scratch import scratch

MEMORY = "1GB"
FETCHING = 8  # files at once
PATTERN = re.compile(r"[*?\[]")  # DuckDB takes a path with one of these for a pattern
ZONED = "TIMESTAMP WITH TIME ZONE"
PLAIN = {
    "string": "VARCHAR",
    "int64": "BIGINT",
    "int32": "INTEGER",
    "double": "DOUBLE",
    "bool": "BOOLEAN",
    "date32[day]": "DATE",
    "binary": "BLOB",
}


class Database:
    """``connection`` leads to a database that has the views that were made in it, and nothing else."""

    def __init__(self) -> None:
        """No table is read yet."""
        self._folder = tempfile.mkdtemp(dir=scratch().folder)
        self._paths: list[str] = []
        self._has_stores = False
        settings: dict[str, Any] = {
            "memory_limit": MEMORY,
            "temp_directory": self._folder,
            "autoinstall_known_extensions": False,  # nothing is fetched from a network
            "autoload_known_extensions": False,
            "python_enable_replacements": False,  # no variable of Python is a table
        }
        self.connection = duckdb.connect(config=settings)
        # Instants are compared and shown in UTC, whatever the zone of this machine.
        self.run("SET GLOBAL TimeZone = 'UTC'")
        self.run("SET enable_progress_bar = false")  # it would be printed among the rows

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()
        shutil.rmtree(self._folder)

    def run(self, statement: str) -> list[Any]:
        """Return the rows that a statement of DuckDB's SQL gives."""
        return self.connection.execute(statement).fetchall()

    def files(self, schema: pa.Schema, paths: Sequence[str]) -> str:
        """Return a query of all columns of Parquet files in the shape of ``schema``. There may be other columns, too.

        Columns that a file lacks are null.
        """
        nulls = [f"CAST(NULL AS {t}) AS {quoted(c)}" for c, t in _types(schema).items()]
        none = f"SELECT {', '.join(nulls)} WHERE false"
        if not paths:
            return none
        plain = [self._plain(path) for path in (self._local(paths) if is_remote(paths[0]) else paths)]
        self._paths += plain
        listed = ", ".join(map(literal, plain))
        read = f"read_parquet([{listed}], union_by_name = true, hive_partitioning = false)"
        return f"{none} UNION ALL BY NAME SELECT * FROM {read}"

    def _local(self, paths: Sequence[str]) -> list[str]:
        """Return paths of files in a store, with those of copies for small ones."""
        if not self._has_stores:
            from mqreplay.lake.duckdb_files import StoredFiles  # fsspec: only who needs it

            self.connection.register_filesystem(StoredFiles())
            self._has_stores = True
        with ThreadPoolExecutor(FETCHING) as pool:
            return list(pool.map(copied_if_small, paths))

    def view(self, name: str, query: str) -> None:
        """Name the rows of a query."""
        self.run(f"CREATE OR REPLACE VIEW {quoted(name)} AS {query}")

    def lock(self) -> None:
        """From now on, a statement can read the files of the queries made so far, no others, and change no setting."""
        self.run(f"SET allowed_paths = [{', '.join(map(literal, self._paths))}]")
        self.run("SET enable_external_access = false")
        self.run("SET lock_configuration = true")

    def _plain(self, path: str) -> str:
        """Return a path without characters of patterns, which leads to the same file."""
        if is_remote(path) or not PATTERN.search(path):
            return path
        link = os.path.join(self._folder, re.sub(r"\W", "-", os.path.basename(path)) + ".parquet")
        if not os.path.lexists(link):
            os.symlink(path, link)
        return link


def without_zone(schema: pa.Schema, columns: Iterable[str]) -> list[str]:
    """Return columns as expressions of DuckDB's SQL. Instants have no zone: they are of UTC."""
    types = _types(schema)
    return [
        f"CAST({quoted(c)} AS {types[c].replace(ZONED, 'TIMESTAMP')}) AS {quoted(c)}"
        if ZONED in types[c]
        else quoted(c)
        for c in columns
    ]


def _types(schema: pa.Schema) -> dict[str, str]:
    """Return the columns' types as DuckDB writes them."""
    return {field.name: duckdb_type(field.type) for field in schema}


def duckdb_type(kind: pa.DataType) -> str:
    """Return an Arrow type that contracts use as DuckDB writes it. (DuckDB itself would load pandas to tell.)

    >>> duckdb_type(pa.list_(pa.struct([("queue_id", pa.int32()), ("ts", pa.timestamp("us", "UTC"))])))
    'STRUCT("queue_id" INTEGER, "ts" TIMESTAMP WITH TIME ZONE)[]'
    """
    if pa.types.is_list(kind):
        return f"{duckdb_type(kind.value_type)}[]"
    if pa.types.is_map(kind):
        return f"MAP({duckdb_type(kind.key_type)}, {duckdb_type(kind.item_type)})"
    if pa.types.is_struct(kind):
        fields = (kind.field(at) for at in range(kind.num_fields))
        return f"STRUCT({', '.join(f'{quoted(field.name)} {duckdb_type(field.type)}' for field in fields)})"
    return ZONED if pa.types.is_timestamp(kind) else PLAIN[str(kind)]


def quoted(name: str) -> str:
    """Return a name as an identifier of DuckDB's SQL.

    >>> quoted('a"b')
    '"a""b"'
    """
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Return a text as an expression of DuckDB's SQL, which holds no NUL.

    >>> literal("it's")
    "'it''s'"
    """
    return " || chr(0) || ".join("'" + part.replace("'", "''") + "'" for part in text.split("\0"))
