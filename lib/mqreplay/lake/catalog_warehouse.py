"""The tables of a warehouse in a catalog of the Spark session. Spark reads and writes them, by name.

The credentials of the tables' files are the catalog's. So the rows go through Spark in both directions, and neither
polars nor delta-rs opens a table. Rows that wait for a commit are Parquet files in the temporary folder of this
process. They stay there (local_copies.py): each read of a table by Spark is two jobs, even of one row.
"""

from __future__ import annotations

import datetime as dt
import tempfile
import threading
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa
from polars.io.plugins import register_io_source

from mqreplay.lake.catalog import first_line, s3_scheme
from mqreplay.lake.contract import Contract
from mqreplay.lake.files import joined
from mqreplay.lake.ipc_blobs import batches_of, blob_of, blob_tables, needed_columns, packing, selecting, unpacked_rows
from mqreplay.lake.lease import require_lease
from mqreplay.lake.local_copies import Between, Copy, LocalCopies, remove_files
from mqreplay.lake.registration import CatalogNames, create_database
from mqreplay.lake.row_filter import RowFilter
from mqreplay.lake.scratch import scratch
from mqreplay.lake.sql import literal
from mqreplay.lake.storage import spark_location
from mqreplay.lake.table_files import TableFile, TableFiles, polars_schema, scan_files
from mqreplay.lake.table_writer import TableWriter, WrittenFile
from mqreplay.lake.warehouse import Warehouse, file_batches, table_file
from mqreplay.words.errors import ContractError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

CHECK = "delta.constraints."  # begins the property of a CHECK constraint


class CatalogWarehouse(Warehouse):
    """Tables by name. ``root`` has the lock, the journal and the pages, and the tables are located below it."""

    def __init__(
        self, session: SparkSession, root: str, names: CatalogNames, contracts: Mapping[str, Contract] | None = None
    ) -> None:
        """Take the session and the names in its catalog. A table is made when it is first written.

        No other program may write the tables at the same time: the last commits are remembered.
        """
        super().__init__(root, contracts)
        self._session, self.names = session, names
        self._folder = tempfile.mkdtemp(prefix="rows-", dir=scratch().folder)
        self._existing: dict[str, bool] = {}
        self._commits: dict[str, tuple[Any, ...]] = {}
        self._changes = 0
        self._complete: set[str] = set()  # tables with all columns and constraints of their contract
        self._copies = LocalCopies()
        self._lock = threading.RLock()

    def table_name(self, name: str) -> str:
        """Return the table's name in Spark."""
        contract = self.contracts[name]
        return f"{self._database(contract.layer)}.`{contract.table}`"

    def _database(self, layer: str) -> str:
        assert self.names is not None, "__init__ sets them"
        return self.names.database(layer)

    def written_folder(self, name: str) -> str:
        """As Warehouse.written_folder: a temporary folder."""
        return joined(self._folder, "written", name)

    def exists(self, name: str) -> bool:
        """As Warehouse.exists."""
        if name not in self._existing:
            self._existing[name] = self._session.catalog.tableExists(self.table_name(name))
        return self._existing[name]

    def version(self, name: str) -> int | None:
        """As Warehouse.version."""
        commit = self._last_commit(name)
        return None if commit is None else int(commit[0])

    def _last_commit(self, name: str) -> tuple[Any, ...] | None:
        if not self.exists(name):
            return None
        if name not in self._commits:
            row = self._sql(name, f"DESCRIBE HISTORY {self.table_name(name)} LIMIT 1").collect()[0]
            self._commits[name] = row.version, row.timestamp.isoformat()
        return self._commits[name]

    def state(self) -> str:
        """As Warehouse.state. Once this run has changed a table, it is a state that no other run knows."""
        return f"{self._folder} {self._changes}" if self._changes else super().state()

    def read(self, name: str, rows: RowFilter | None = None) -> pl.LazyFrame:
        """As Warehouse.read. Of a large table, each use of the frame reads it by Spark, only the columns it needs."""
        schema = self.contracts[name].arrow_schema
        if (copied := self.copied(name, rows)) is not None:
            found = scan_files(schema, copied.files)
            return found if rows is None else found.filter(rows.condition)

        def frames(
            columns: list[str] | None, predicate: pl.Expr | None, limit: int | None, _batch_rows: int | None
        ) -> Iterator[pl.DataFrame]:
            left = limit
            for batch in self._batches(name, rows, columns or schema.names):
                frame = pl.DataFrame(pl.from_arrow(batch))
                frame = frame if left is None else frame.head(left)
                left = None if left is None else left - frame.height
                yield frame if predicate is None else frame.filter(predicate)
                if left == 0:
                    return

        return register_io_source(frames, schema=polars_schema(schema))

    def files(self, name: str, rows: RowFilter) -> TableFiles:
        """As Warehouse.files: copies of the rows in the temporary folder."""
        return self.copied(name, rows, even_large=True)  # type: ignore[return-value]

    def known_rows(self, name: str, rows: RowFilter) -> int | None:
        """As Warehouse.known_rows: of rows that are here."""
        days = _bounds(rows) if self.contracts[name].is_partitioned_by_day else None
        files = self._copies.files(name, rows.cluster, days) if self.exists(name) else []
        return None if files is None else sum(f.rows or 0 for f in files if rows.has_partition(f.cluster, f.day))

    def copied(self, name: str, rows: RowFilter | None, *, even_large: bool = False) -> TableFiles | None:
        """Return files with these rows that are here; None if they are not, and Spark would copy a large table."""
        schema = self.contracts[name].arrow_schema
        if not self.exists(name):
            return TableFiles((), schema)
        cluster = None if rows is None else rows.cluster
        days = _bounds(rows) if self.contracts[name].is_partitioned_by_day else None
        with self._lock:
            found = self._copies.files(name, cluster, days)
            if found is None and (even_large or not self._is_large(name)):
                found = self._copy(name, None if rows is None else RowFilter(rows.cluster, between=days))
                self._copies.keep(name, Copy(cluster, days, found))
        if found is None:
            return None
        mine = [file for file in found if rows is None or rows.has_partition(file.cluster, file.day)]
        return TableFiles(tuple(mine), schema)

    def file_bytes(self, name: str, rows: RowFilter) -> int:
        """As Warehouse.file_bytes: of the files that are here. To ask Spark for a size is two jobs."""
        files = self._copies.files(name, rows.cluster, None) or []
        return sum(Path(file.path).stat().st_size for file in files)

    def _is_large(self, name: str) -> bool:
        """Return whether a night may have more rows of the table than the driver should copy."""
        return bool(self.contracts[name].shard_key) or self.contracts[name].is_judged

    def _copy(self, name: str, rows: RowFilter | None) -> list[TableFile]:
        folder = tempfile.mkdtemp(prefix=f"{name}-", dir=self._folder)
        contract, schema = self.contracts[name], self.contracts[name].arrow_schema
        written = TableWriter(folder, schema, contract.partitioned_by).write(self._batches(name, rows, schema.names))
        return [table_file(folder, file) for file in written]

    def day_counts(self, name: str, cluster: str) -> dict[dt.date, int]:
        """As Warehouse.day_counts."""
        if (copied := self.copied(name, RowFilter(cluster))) is not None:
            counts: dict[dt.date, int] = defaultdict(int)
            for file in copied.files:
                counts[file.day] += file.rows  # type: ignore[index,operator]
            return dict(counts)
        found = self._rows(name, RowFilter(cluster)).groupBy("day").count().collect()
        return {row["day"]: row["count"] for row in found}

    def spark_table(self, session: SparkSession, name: str) -> DataFrame:
        """As Warehouse.spark_table."""
        return session.table(self.table_name(name)) if self.exists(name) else super().spark_table(session, name)

    def commit_files(self, name: str, files: Sequence[WrittenFile], replaced: RowFilter | None) -> None:
        """As Warehouse.commit_files."""
        by_day = self.contracts[name].is_partitioned_by_day
        here = [self._table_file(name, file) for file in files]
        if replaced is None or replaced.has_whole_partitions(by_day):
            self._write(name, self._frame(name, here), replaced, here)
            return
        # Partitions are replaced whole: by their other rows, and the new ones.
        copied = self.copied(name, replaced)
        days = self._days_with(name, replaced, copied)
        if days is None:
            self._write(name, self._frame(name, here), None, here)
            return
        days |= {file.day for file in here}
        touched = RowFilter(replaced.cluster, frozenset(filter(None, days)) if by_day else None)
        if copied is None:
            new, others = self._frame(name, here), self._selected(name, touched, ~replaced.condition)
            self._write(name, others if new is None else others.unionByName(new), touched)
            remove_files(file.path for file in here)
            return
        there = scan_files(copied.schema, self.files(name, touched).files)
        kept = self.writer(name).write_rows(there.filter(~replaced.condition).collect())
        together = [*here, *(self._table_file(name, file) for file in kept)]
        self._write(name, self._frame(name, together), touched, together)

    def commit_frame(self, name: str, rows: DataFrame, replaced: RowFilter | None) -> None:
        """As Warehouse.commit_frame, in one commit if whole partitions are replaced."""
        if replaced is not None and not replaced.has_whole_partitions(self.contracts[name].is_partitioned_by_day):
            self.commit_files(name, [], replaced)
            replaced = None
        self._write(name, rows, replaced)

    def _write(
        self, name: str, rows: DataFrame | None, replaced: RowFilter | None, files: Sequence[TableFile] | None = None
    ) -> None:
        """Replace whole partitions, if any, by rows, if any, in one commit. ``files`` have the same rows."""
        is_new = not self.exists(name)
        self._make_complete(name)
        table = self.table_name(name)
        condition = None if replaced is None or is_new else self._condition(name, replaced)
        if rows is None:
            if condition is None or self._is_empty(name, replaced, condition):
                return
            rows = self._session.table(table).limit(0)
        try:
            require_lease(self.location(name))
            if condition is None:
                rows.writeTo(table).append()
            else:
                rows.writeTo(table).overwrite(condition)
            if files is not None:
                self._copies.replace(name, replaced, files)
        except BaseException:
            self._copies.forget(name)
            raise
        finally:
            self._committed(name)
        if files is None:
            self._copies.forget(name, None if replaced is None else replaced.cluster)

    def _is_empty(self, name: str, replaced: RowFilter | None, condition: Column) -> bool:
        copied = self.copied(name, replaced)
        if copied is not None:
            return not copied.files
        return bool(self._session.table(self.table_name(name)).where(condition).isEmpty())

    def _days_with(self, name: str, rows: RowFilter, copied: TableFiles | None) -> set[dt.date | None] | None:
        """Return the days that have such rows (None: a table without days); None if there are no such rows."""
        column = "day" if self.contracts[name].is_partitioned_by_day else "cluster"
        if copied is not None:
            there = scan_files(copied.schema, copied.files).filter(rows.condition)
            found = there.select(column).unique().collect()[column].to_list()
        else:
            found = [row[0] for row in self._selected(name, rows, rows.condition, [column]).distinct().collect()]
        return {value if column == "day" else None for value in found} or None

    def _condition(self, name: str, rows: RowFilter) -> Column:
        """Return the condition of the partitions that may hold the rows."""
        from pyspark.sql import functions as F

        return F.expr(rows.partitions_sql(self.contracts[name].is_partitioned_by_day))

    def _rows(self, name: str, rows: RowFilter | None) -> DataFrame:
        """Return the partitions that may hold the rows."""
        table = self._session.table(self.table_name(name))
        return table if rows is None else table.where(self._condition(name, rows))

    def _selected(self, name: str, rows: RowFilter, wanted: pl.Expr, columns: Sequence[str] | None = None) -> DataFrame:
        """Return those rows of the partitions for which the condition is true."""
        schema = self.contracts[name].arrow_schema
        needed, names = needed_columns(schema, wanted, columns)
        select = selecting(pa.schema([schema.field(each) for each in needed]), wanted, names)
        return self._rows(name, rows).select(needed).mapInArrow(select, self.contracts[name].ddl(names))

    def _batches(self, name: str, rows: RowFilter | None, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield rows of the table, with these columns."""
        schema = self.contracts[name].arrow_schema
        is_whole = rows is None or rows.has_whole_partitions(self.contracts[name].is_partitioned_by_day)
        wanted = None if rows is None or is_whole else rows.condition
        needed, names = needed_columns(schema, wanted, columns)
        select = selecting(pa.schema([schema.field(each) for each in needed]), wanted, names)
        blobs = self._rows(name, rows).select(needed).mapInArrow(packing(select), "data BINARY")
        # A partition at a time is a job each; the driver does not hold all rows of a large table.
        found = blobs.toLocalIterator(prefetchPartitions=True) if self._is_large(name) else blobs.collect()
        for row in found:
            yield from batches_of(bytes(row.data))

    def _frame(self, name: str, files: Sequence[TableFile]) -> DataFrame | None:
        """Return the rows in files as a DataFrame, without the files; None if there are none."""
        if not files:
            return None
        schema = self.contracts[name].arrow_schema
        batches = (batch for file in files for batch in file_batches(file, schema))
        blobs = [(blob_of(table),) for table in blob_tables(batches)]
        frame = self._session.createDataFrame(blobs, "data BINARY").coalesce(max(1, len(blobs) // 10))
        return frame.mapInArrow(unpacked_rows, self.contracts[name].ddl())

    def _make_complete(self, name: str) -> None:
        """Create the table, or add what an older version of mqreplay did not know: columns and constraints."""
        if name in self._complete:
            return
        require_lease(self.location(name))
        contract, table = self.contracts[name], self.table_name(name)
        if not self.exists(name):
            self._create(contract)
            self._complete.add(name)
            return
        self.version(name)  # raises for the name of something else
        fields = self._fields(name)
        for column in self._needless_not_null(name, fields):
            self._sql(name, f"ALTER TABLE {table} ALTER COLUMN `{column}` DROP NOT NULL")
        if missing := self._missing_fields(name, fields):
            names = [field["name"] for field in missing]
            added = [f"`{c.name}` {c.type} COMMENT {literal(c.comment)}" for c in contract.columns if c.name in names]
            self._sql(name, f"ALTER TABLE {table} ADD COLUMNS ({', '.join(added)})")
        has = {row.key.lower() for row in self._sql(name, f"SHOW TBLPROPERTIES {table}").collect()}
        for check, condition in contract.checks.items():
            if f"{CHECK}{check}".lower() not in has:
                self._sql(name, f"ALTER TABLE {table} ADD CONSTRAINT {check} CHECK ({condition})")
        if unset := {key: value for key, value in contract.properties.items() if key.lower() not in has}:
            self._sql(name, f"ALTER TABLE {table} SET TBLPROPERTIES ({_listed(unset)})")
        self._committed(name)
        self._complete.add(name)

    def _create(self, contract: Contract) -> None:
        columns = [
            f"`{c.name}` {c.type}{'' if c.nullable else ' NOT NULL'} COMMENT {literal(c.comment)}"
            for c in contract.columns
        ]
        location = spark_location(self.location(contract.name), s3_scheme(self._session, self.root))
        checks = {f"{CHECK}{check}": condition for check, condition in contract.checks.items()}
        with self._lock:
            self._sql(contract.name, create_database(self._database(contract.layer)))
        self._sql(
            contract.name,
            f"CREATE TABLE {self.table_name(contract.name)} ({', '.join(columns)}) USING delta"
            f" PARTITIONED BY ({', '.join(contract.partitioned_by)}) LOCATION {literal(location)}"
            f" COMMENT {literal(contract.description)} TBLPROPERTIES ({_listed({**contract.properties, **checks})})",
        )
        self._existing[contract.name] = True
        self._committed(contract.name)
        self._copies.keep(contract.name, Copy(None, None, []))

    def _fields(self, name: str) -> list[dict[str, Any]]:
        """Return the columns of the table as in the schema of Delta's log."""
        fields = self._session.table(self.table_name(name)).schema.jsonValue()["fields"]
        return [dict(field) for field in fields]

    def _sql(self, name: str, statement: str) -> DataFrame:
        """Run a statement on the table. Raises ContractError with the reason if Spark refuses it."""
        try:
            return self._session.sql(statement)
        except Exception as error:  # a catalog, its server and a file system raise what they like
            raise ContractError(f"table {self.table_name(name)} cannot be used: {first_line(error)}") from None

    def _committed(self, name: str) -> None:
        self._commits.pop(name, None)
        self._changes += 1

    def changed(self, name: str) -> None:
        """As Warehouse.changed."""
        self._committed(name)
        self._copies.forget(name)

    def note_versions(self, names: Iterable[str] = ()) -> None:
        """Do nothing: the tables need not be in this folder."""

    def check(self, name: str, *, checksums: bool) -> None:
        """Do nothing: the files are not this program's to read."""

    def mend_log(self, name: str) -> None:
        """Do nothing: the log is not this program's to open."""

    def remove_torn_commits(self, name: str, since: int) -> None:
        """Do nothing: the log is not this program's to open. Spark writes a commit whole, or not."""

    def restore(self, name: str, version: int) -> None:
        """As Warehouse.restore."""
        require_lease(self.location(name))
        self._sql(name, f"RESTORE TABLE {self.table_name(name)} TO VERSION AS OF {version}")
        self._complete.discard(name)
        self.changed(name)

    def drop(self, name: str) -> None:
        """Remove the table's rows. Its name stays: files of an external table would outlive the name."""
        if self.exists(name):
            require_lease(self.location(name))
            self._sql(name, f"DELETE FROM {self.table_name(name)}")
            self.changed(name)


def _listed(properties: Mapping[str, str]) -> str:
    """Return properties of a table as SQL lists them."""
    return ", ".join(f"{literal(key)} = {literal(value)}" for key, value in properties.items())


def _bounds(rows: RowFilter | None) -> Between | None:
    """Return the first and the last day that may have such rows; None: any day."""
    if rows is None or rows.days is None:
        return None if rows is None else rows.between
    return min(rows.days, default=dt.date.min), max(rows.days, default=dt.date.min)
