"""The Delta tables of one warehouse folder, each as its contract says."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterable, Sequence
from functools import reduce
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema

from mqreplay import __version__
from mqreplay.errors import ContractError
from mqreplay.lake.buckets import key_of
from mqreplay.lake.commit import commit_append
from mqreplay.lake.contract import KEPT_LOG, Contract, load_contracts
from mqreplay.lake.java_process import check_java_names
from mqreplay.lake.landing import Landing, land, repeating
from mqreplay.lake.orphans import last_commit, last_version, remove_table, remove_unborn
from mqreplay.lake.sql import delta_table, holds, quoted
from mqreplay.lake.table_files import few_files, read_files

LAYERS = ("bronze", "silver", "gold")


class Warehouse:
    """Reads and replaces rows of the tables under ``root``. Safe for threads that write different tables."""

    def __init__(self, spark: SparkSession, root: str, contracts: dict[str, Contract] | None = None) -> None:
        """``root`` need not exist; a table is made when it is first written."""
        self.spark = spark
        self.root = str(Path(root).resolve())
        check_java_names(self.root)
        self.contracts = contracts if contracts is not None else load_contracts()
        self._made: set[str] = set()
        self._lock = threading.Lock()

    def location(self, name: str) -> str:
        """Where the table lies."""
        return f"{self.root}/{name.replace('.', '/')}"

    def version(self, name: str) -> int | None:
        """Return the last version of the table; None where there is no table. No table is read."""
        return last_version(self.location(name))

    def exists(self, name: str) -> bool:
        """Whether the table has a version. A folder whose maker died before version 0 is no table."""
        return self.version(name) is not None

    def file_bytes(self, name: str) -> int:
        """How much its Parquet files take, those of versions before among them. No table is read."""
        return sum(path.stat().st_size for path in Path(self.location(name)).glob("*.parquet"))

    def state(self) -> str:
        """A digest of mqreplay's version and of what all tables are: each commit changes it. No table is read.

        Versions alone do not tell a table from another that took its place.
        """
        commits = {name: last_commit(self.location(name)) for name in sorted(self.contracts)}
        last = {name: (path.name, path.stat().st_mtime_ns) for name, path in commits.items() if path is not None}
        return hashlib.sha256(json.dumps([__version__, last]).encode()).hexdigest()[:32]

    def frame(self, name: str, rows: Iterable[Any]) -> DataFrame:
        """Rows, given in the contract's column order, as a frame of the table's schema."""
        listed = list(rows)
        # One file for rows that came from the driver: they are few.
        made = self.spark.createDataFrame(listed, self.contracts[name].struct_type(), verifySchema=False)
        return made.coalesce(1)

    def read(self, name: str) -> DataFrame:
        """The table, in the contract's column order; empty if it was never made."""
        files = few_files(self.spark, self.location(name)) if self.exists(name) else []
        if files is not None:
            return self._of_files(name, files)
        columns = [c.name for c in self.contracts[name].columns]
        return self.spark.read.format("delta").load(self.location(name)).select(columns)

    def _of_files(self, name: str, paths: Sequence[str]) -> DataFrame:
        if not paths:
            return self.frame(name, [])
        return read_files(self.spark, paths, self.contracts[name].struct_type())

    def ensure(self, name: str) -> bool:
        """Makes the table if it is not there, and adds columns that an older version lacked. True if it was made."""
        if name in self._made:
            return False
        fresh = not self.exists(name)
        if fresh:
            remove_unborn(self.location(name))
            self.spark.sql(self.contracts[name].ddl(self.location(name)))
        else:
            self._mend(name)
        self._now_made(name)
        return fresh

    def _now_made(self, name: str) -> None:
        with self._lock:
            self._made.add(name)

    def _mend(self, name: str) -> None:
        table = delta_table(self.location(name))
        self._keep_log(table, self.location(name))
        fields = self.spark.read.format("delta").load(self.location(name)).schema.fields
        has = {f.name: f.dataType for f in fields}
        required = {f.name for f in fields if not f.nullable}
        for field, column in zip(self.contracts[name].struct_type().fields, self.contracts[name].columns, strict=True):
            if field.name not in has:
                if not column.nullable:
                    raise ContractError(
                        f"table {name} in {self.root} was made by another version and lacks {field.name}; "
                        "use a new --warehouse and run the recordings again"
                    )
                added = f"`{column.name}` {column.type} COMMENT {quoted(column.description)}"
                self.spark.sql(f"ALTER TABLE {table} ADD COLUMNS ({added})")
            elif _shape(has[field.name]) != _shape(field.dataType):
                raise ContractError(
                    f"table {name} in {self.root} was made by another version: {field.name} is "
                    f"{has[field.name].simpleString()}, should be {field.dataType.simpleString()}; "
                    "use a new --warehouse and run the recordings again"
                )
            elif column.nullable and field.name in required:
                self.spark.sql(f"ALTER TABLE {table} ALTER COLUMN `{column.name}` DROP NOT NULL")

    def _keep_log(self, table: str, location: str) -> None:
        """Tables of an older version have their old versions deleted: from now on they keep them, too."""
        delta_log = self.spark.sparkContext._jvm.org.apache.spark.sql.delta.DeltaLog  # type: ignore[union-attr]
        log: Any = delta_log.forTable(self.spark._jsparkSession, location)  # type: ignore[attr-defined]
        for key, value in KEPT_LOG.items():
            if not log.unsafeVolatileSnapshot().metadata().configuration().contains(key):
                self.spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ({quoted(key)} = {quoted(value)})")

    def replace(self, name: str, rows: DataFrame, predicate: str, *, nothing_there: bool = False) -> None:
        """In one commit: the rows that match ``predicate`` go, ``rows`` come. Both must lie within the predicate.

        ``nothing_there`` is the caller's word that no row matches: an append costs a fifth of a replacement.
        Raises ContractError where a column is missing.
        """
        contract = self.contracts[name]
        missing = [c.name for c in contract.columns if c.name not in rows.columns]
        if missing:
            raise ContractError(f"rows for {name} lack {', '.join(missing)}; a bug in mqreplay")
        fresh = self.ensure(name)
        cast = rows.select([F.col(c.name).cast(c.type).alias(c.name) for c in contract.columns])
        writer = cast.write.format("delta")
        writer = (
            writer.mode("append")
            if fresh or nothing_there
            else writer.mode("overwrite").option("replaceWhere", predicate)
        )
        writer.save(self.location(name))

    def landing(self, name: str, same: dict[str, str] | None = None, day_of: str | None = None) -> Landing:
        """Where tasks may write rows of the table as Parquet files. No reader sees one before ``take`` commits it.

        The journal removes those that no ``take`` commits: only then has every thread ended that might.
        ``same`` are columns of one value; ``day_of`` is the instant whose date is the row's day. Rows bring the rest.
        """
        place = self.location(name)
        if self.exists(name):
            self.ensure(name)
        else:
            remove_unborn(place)
            Path(place).mkdir(parents=True, exist_ok=True)  # the commit of the rows makes the table
        contract = self.contracts[name]
        schema = to_arrow_schema(contract.struct_type(), timestamp_utc=True)
        required = tuple(c.name for c in contract.columns if not c.nullable)
        nullable = pa.schema([f.with_nullable(True) for f in schema])  # as Spark writes them
        return Landing(
            place,
            nullable,
            tuple((same or {}).items()),
            day_of,
            required,
            contract.looked_for,
            repeating(nullable, contract.alone),
            key_of(contract.shard_key),
        )

    def put(self, name: str, rows: Sequence[Sequence[Any]], predicate: str, *, nothing_there: bool) -> None:
        """As ``replace``, of few rows that the driver has, in the contract's column order."""
        if not nothing_there:
            self.replace(name, self.frame(name, rows), predicate)
            return
        place = self.landing(name)
        columns = zip(*rows, strict=True) if rows else ([] for _ in place.schema)
        arrays = [_array(column, f.type) for column, f in zip(columns, place.schema, strict=True)]
        told = land(iter([pa.RecordBatch.from_arrays(arrays, schema=place.schema)]), place)
        landed = [Row(**file) for batch in told for file in batch.to_pylist()]
        self.take(name, landed, predicate, nothing_there=True)

    def take(self, name: str, landed: Sequence[Row], predicate: str, *, nothing_there: bool) -> None:
        """As ``replace``, of rows that lie in files of a landing (rows of shape LANDED)."""
        new = None if self.exists(name) else self.contracts[name]
        if new is None and not nothing_there:
            self.replace(name, self.landed_rows(name, landed), predicate)
            return
        # As Delta's own writer asks of each row, and takes null for broken; landings have asked for nulls in columns.
        checks = list(self.contracts[name].checks.values()) if landed else []
        rows = self.landed_rows(name, landed) if checks else None
        if rows is not None and not rows.where(~reduce(Column.__and__, map(holds, checks))).isEmpty():
            broken = next(check for check in checks if not rows.where(~holds(check)).isEmpty())
            raise ContractError(f"rows for {name} break CHECK ({broken}); a bug in mqreplay")
        commit_append(self.spark, self.location(name), landed, new)
        if new is not None:
            self._now_made(name)

    def live_files(self, name: str) -> list[str]:
        """Return the names of the files of the table's last version."""
        paths = self.spark.read.format("delta").load(self.location(name)).inputFiles()
        return [unquote(urlsplit(path).path).rsplit("/", 1)[-1] for path in paths]

    def restore(self, name: str, version: int) -> None:
        """Make the rows and columns of an earlier version the table's newest."""
        self.spark.sql(f"RESTORE TABLE {delta_table(self.location(name))} TO VERSION AS OF {version}")
        with self._lock:
            self._made.discard(name)

    def drop(self, name: str) -> None:
        """Remove the table, for readers at once. What else lies in its folder stays."""
        remove_table(self.location(name))
        self.spark.sparkContext._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()  # type: ignore[union-attr]
        with self._lock:
            self._made.discard(name)

    def landed_rows(self, name: str, landed: Sequence[Row]) -> DataFrame:
        """Return the rows that lie in files of a landing (rows of shape LANDED), before they are committed."""
        return self._of_files(name, [f"{self.location(name)}/{file.name}" for file in landed])

    def maintain(self, keep_hours: int = 168) -> None:
        """Compacts and clusters every table, and removes files that no version of the last ``keep_hours`` needs."""
        for name in self.contracts:
            if self.exists(name):
                table = delta_table(self.location(name))
                self.spark.sql(f"OPTIMIZE {table}")
                self.spark.sql(f"VACUUM {table} RETAIN {keep_hours} HOURS")


def _array(column: Iterable[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_map(kind):
        column = [None if value is None else list(value.items()) for value in column]
    return pa.array(list(column), kind)


def _shape(kind: Any) -> str:
    """A type without what Delta does not keep the same: nullability inside of it."""
    return str(kind.simpleString())
