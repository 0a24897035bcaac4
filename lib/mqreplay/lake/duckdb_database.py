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

from mqreplay.lake.files import is_remote
from mqreplay.lake.scratch import copied_if_small, scratch
from mqreplay.lake.table_files import TableFile
from mqreplay.lake.table_writer import partition_folder

MEMORY = "1GB"
FETCHING = 8  # files at once
ODD = re.compile(r"[*?\[=]")  # DuckDB takes these for a pattern, and NAME=VALUE in a folder for a partition
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
        self._has_stores, self._links = False, 0
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
        if self.run("SELECT current_setting('enable_progress_bar')") == [(True,)]:
            # It would be printed among the rows. In a notebook it is off, and to set it asks for ipywidgets.
            self.run("SET enable_progress_bar = false")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()
        shutil.rmtree(self._folder)

    def run(self, statement: str) -> list[Any]:
        """Return the rows that a statement of DuckDB's SQL gives."""
        return self.connection.execute(statement).fetchall()

    def files(self, schema: pa.Schema, files: Sequence[TableFile]) -> str:
        """Return a query of all columns of a table's files in the shape of ``schema``. There may be other columns, too.

        Columns that a file lacks are null.
        """
        types = _types(schema)
        nulls = [f"CAST(NULL AS {kind}) AS {quoted(name)}" for name, kind in types.items()]
        none = f"SELECT {', '.join(nulls)} WHERE false"
        if not files:
            return none
        paths = self._readable(files)
        self._paths += paths
        listed = ", ".join(map(literal, paths))
        of_partition = ["cluster"] + ["day"] * (files[0].day is not None)
        kinds = ", ".join(f"{quoted(name)}: {types[name]}" for name in of_partition)
        read = f"read_parquet([{listed}], union_by_name = true, hive_partitioning = true, hive_types = {{{kinds}}})"
        return f"{none} UNION ALL BY NAME SELECT * FROM {read}"

    def _readable(self, files: Sequence[TableFile]) -> list[str]:
        """Return a path of each file that ends in the folder of its partition: DuckDB takes the values from there."""
        if not is_remote(files[0].path):
            if not any(ODD.search(file.path[: -len(_in_partition(file))]) for file in files):
                return [file.path for file in files]
            return [self._linked(file, file.path) for file in files]
        if not self._has_stores:
            from mqreplay.lake.duckdb_files import StoredFiles  # fsspec: only who needs it

            self.connection.register_filesystem(StoredFiles())
            self._has_stores = True
        with ThreadPoolExecutor(FETCHING) as pool:
            copies = pool.map(copied_if_small, [file.path for file in files])
        return [path if is_remote(path) else self._linked(file, path) for file, path in zip(files, copies, strict=True)]

    def _linked(self, file: TableFile, target: str) -> str:
        """Return a path in this database's folder that leads to a file."""
        self._links += 1
        link = os.path.join(self._folder, str(self._links), _in_partition(file))
        os.makedirs(os.path.dirname(link))
        os.symlink(target, link)
        return link

    def view(self, name: str, query: str) -> None:
        """Name the rows of a query."""
        self.run(f"CREATE OR REPLACE VIEW {quoted(name)} AS {query}")

    def table(self, name: str, query: str) -> None:
        """Name the rows of a query, which runs once: for few rows that many queries need."""
        self.run(f"CREATE OR REPLACE TABLE {quoted(name)} AS {query}")

    def lock(self) -> None:
        """From now on, a statement can read the files of the queries made so far, no others, and change no setting."""
        self.run(f"SET allowed_paths = [{', '.join(map(literal, self._paths))}]")
        self.run("SET enable_external_access = false")
        self.run("SET lock_configuration = true")


def _in_partition(file: TableFile) -> str:
    """Return the end of a file's path as Hive and Spark write it: its partition, and its name."""
    values = [("cluster", file.cluster)] + ([] if file.day is None else [("day", str(file.day))])
    return f"{partition_folder(tuple(values))}/{file.path.rsplit('/', 1)[-1]}"


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
