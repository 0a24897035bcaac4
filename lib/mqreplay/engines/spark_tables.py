"""The Delta tables of a warehouse as DataFrames of Spark, by path or by their names in a catalog.

Errors of Spark that a user can mend are raised as mqreplay's own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from mqreplay.engines.packing import packed, unpacked
from mqreplay.lake.buckets import BUCKETS, SEPARATOR, Key
from mqreplay.lake.files import is_remote
from mqreplay.lake.ipc_blobs import unpacked_rows
from mqreplay.lake.row_filter import Days, RowFilter
from mqreplay.lake.storage import storage, use_storage
from mqreplay.lake.table_writer import TableWriter, WrittenFile
from mqreplay.lake.warehouse import Warehouse
from mqreplay.words.errors import InputError, MqreplayError, StoreError, StoreUnavailable

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


# The driver commits what so few rows give: a write by Spark takes 2 CPU seconds, also for a few rows.
FEW_ROWS = 100_000
FILE = pa.schema([("file", pa.binary())])
# In the text of Spark's errors; a worker's Python that cannot start leaves nothing else.
MISSING_MODULE = re.compile(r"No module named '?(\w+)")
MISSING_PROGRAM = re.compile(r'Cannot run program "([^"]+)"')
OTHER_VERSION = re.compile(r"Python in worker has different version: ([\d.]+) than that in driver: ([\d.]+)")
MISSING_CLIENT = re.compile(r"Class (org\.apache\.hadoop\.fs\.[\w.]+) not found|No FileSystem for scheme \"?(\w+)")
STORE_ERROR = re.compile(r"mqreplay\.words\.errors\.(StoreError|StoreUnavailable): (.+)")


@dataclass(frozen=True)
class SparkTables:
    """The tables of a warehouse, which Spark reads and writes by path or by name."""

    session: SparkSession
    warehouse: Warehouse

    @property
    def by_name(self) -> bool:
        """Return whether the tables have names in a catalog: then only Spark reads and writes them."""
        return self.warehouse.names is not None

    def may_write(self, cluster: str) -> bool:
        """Return whether Spark may write rows of the cluster.

        Spark writes the letters of a partition's path into Delta's log as they are, delta-rs escapes those that are not
        ASCII, and a file that one of them added is not the one that the other removes.
        """
        return self.by_name or cluster.isascii()

    def commit(self, table: str, blobs: DataFrame, writer: TableWriter, replaced: RowFilter | None) -> None:
        """As Warehouse.commit_files: ``blobs`` have the rows that ``writer`` asks for, packed (ipc_blobs.py).

        In a store tasks write files, and the driver commits them: Delta's log store of S3 would replace a version that
        exists, and Spark does not know the warehouse's lock, which may be lost before it commits. Raises InputError if
        Spark cannot open the table's folder.
        """
        cluster = f" of {replaced.cluster}" if replaced is not None else ""
        with described(self.session, f"write {table}{cluster}"), known_errors():
            if not self.by_name and is_remote(self.warehouse.root):
                self.warehouse.commit_files(table, _written(writer, blobs), replaced)
                return
            # Delta hands Parquet no options of a write, but all settings of the session: by column, without its table.
            for name in writer.schema.names:
                if name not in writer.repeating:
                    self.session.conf.set(f"parquet.enable.dictionary#{name}", "false")
            self.warehouse.commit_frame(table, self._rows(table, blobs, writer), replaced)

    def _rows(self, table: str, blobs: DataFrame, writer: TableWriter) -> DataFrame:
        """Return packed rows with all columns of the table."""
        from pyspark.sql import functions as F

        contract = self.warehouse.contracts[table]
        rows = blobs.mapInArrow(unpacked_rows, contract.ddl(writer.asked.names))
        beside = {name: F.lit(value) for name, value in writer.same}
        beside |= {} if writer.day_of is None else {"day": F.to_date(writer.day_of)}
        return rows.withColumns(beside).select(*[column.name for column in contract.columns])

    def of_cluster(self, table: str, cluster: str, days: Days, columns: Sequence[str]) -> DataFrame:
        """Return columns of the rows of a cluster and some days.

        Raises InputError if Spark cannot open the table's folder.
        """
        wanted = days.of_cluster(cluster).days_sql(self.warehouse.contracts[table].is_dated)
        with known_errors():
            return self.warehouse.spark_table(self.session, table).where(wanted).select(*columns)

    def columns(self, table: str) -> list[str]:
        """Return the columns of a table without the cluster, in order."""
        return [column.name for column in self.warehouse.contracts[table].columns if column.name != "cluster"]


def _written(writer: TableWriter, blobs: DataFrame) -> list[WrittenFile]:
    """Let tasks write packed rows into files, which no version has yet."""
    task = packed((writer, storage()))

    def write(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        writer, how = unpacked(task)
        use_storage(how)
        files = writer.write(unpacked_rows(batches))
        yield pa.RecordBatch.from_pylist([{"file": packed(file)} for file in files], FILE)

    write.__name__ = "write_files"  # in plans and Spark's UI
    return [unpacked(bytes(row.file)) for row in blobs.mapInArrow(write, "file BINARY").collect()]


def bucket(key: Key) -> Column:
    """Return the bucket of a row by its key, as lake/buckets.py computes it."""
    from pyspark.sql import functions as F

    parts = [F.coalesce(*[F.col(name).cast("string") for name in names], F.lit("")) for names in key]
    return F.pmod(F.crc32(F.concat_ws(SEPARATOR, *parts).cast("binary")), F.lit(BUCKETS))


@contextmanager
def described(session: SparkSession, what: str) -> Iterator[None]:
    """Show ``what`` in Spark's UI and event log as the description of this thread's jobs. Spark Connect has none."""
    from pyspark.sql import SparkSession as ClassicSession

    context = session.sparkContext if isinstance(session, ClassicSession) else None
    if context is not None:
        context.setJobDescription(what)
    try:
        yield
    finally:
        if context is not None:
            context.setJobDescription(None)  # type: ignore[arg-type]


@contextmanager
def known_errors() -> Iterator[None]:
    """Raise errors that are about a store or the workers' Python in one line that says what to do."""
    try:
        yield
    except MqreplayError:
        raise
    except Exception as error:
        known = _of_store(error) or _of_store_client(error) or _of_workers(error)
        if known is not None:
            raise known from None
        raise


def _of_store(error: Exception) -> StoreError | None:
    """Return the error of a store that made a task fail; Spark hands on its text alone."""
    found = STORE_ERROR.search(str(error))
    if found is None:
        return None
    return StoreUnavailable(found[2]) if found[1] == "StoreUnavailable" else StoreError(found[2])


def _of_store_client(error: Exception) -> InputError | None:
    """Return which class of Hadoop Spark lacks to open the tables; None if that is not the reason."""
    found = MISSING_CLIENT.search(str(error))
    if found is None:
        return None
    return InputError(
        f"Spark cannot open the tables: it has no Hadoop client for them ({found[1] or found[2]}); give spark-submit "
        "--packages with the client in the version of Spark's Hadoop (docs/stores.md), or use --engine local, which "
        "needs none"
    )


def _of_workers(error: Exception) -> MqreplayError | None:
    """Return what is wrong with the Python of the workers; None if that is not the reason."""
    text = str(error)
    if found := MISSING_MODULE.search(text):
        problem = f"the Python of the workers has no module {found[1]}"
    elif found := MISSING_PROGRAM.search(text):
        problem = f"the workers have no program {found[1]}"
    elif found := OTHER_VERSION.search(text):
        problem = f"the workers have Python {found[1]}, the driver has {found[2]}"
    else:
        return None
    return InputError(
        f"{problem}; install the same Python and mqreplay on all machines, or give spark-submit --archives "
        "environment.tar.gz#environment and PYSPARK_PYTHON=./environment/bin/python"
    )
