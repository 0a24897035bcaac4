"""The rows of the tables of a warehouse in a catalog of the Spark session. Spark reads and writes them, by name.

The credentials of the tables' files are the catalog's. So the rows go through Spark in both directions, and neither
polars nor delta-rs opens a table. Rows that wait for a commit are Parquet files in the temporary folder of this
process. They stay there (local_copies.py): each read of a table by Spark is two jobs, even of one row.
"""

from __future__ import annotations

import datetime as dt
import tempfile
import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pyarrow as pa
from polars.io.plugins import register_io_source

from mqreplay.lake.catalog_tables import CatalogTables
from mqreplay.lake.contract import Contract
from mqreplay.lake.files import joined
from mqreplay.lake.ipc_blobs import batches_of, blob_of, blob_tables, needed_columns, packing, selecting, unpacked_rows
from mqreplay.lake.lease import require_lease
from mqreplay.lake.local_copies import Between, Copy, LocalCopies, remove_files
from mqreplay.lake.registration import CatalogNames
from mqreplay.lake.row_filter import RowFilter
from mqreplay.lake.scratch import scratch
from mqreplay.lake.table_files import TableFile, TableFiles, file_batches, polars_schema, scan_files
from mqreplay.lake.table_writer import TableWriter, WrittenFile
from mqreplay.lake.warehouse import table_file

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


class CatalogWarehouse(CatalogTables):
    """The rows of tables by name."""

    def __init__(
        self, session: SparkSession, root: str, names: CatalogNames, contracts: Mapping[str, Contract] | None = None
    ) -> None:
        """Take the session and the names in its catalog. A table is made when it is first written.

        No other program may write the tables at the same time: the last commits are remembered.
        """
        super().__init__(session, root, names, contracts)
        self._folder = tempfile.mkdtemp(prefix="rows-", dir=scratch().folder)
        self._copies = LocalCopies()
        self._copying = threading.RLock()

    def layout(self, name: str) -> Contract:
        """As Warehouse.layout: of the files in the temporary folder. Spark partitions the table's own."""
        contract = self.contracts[name]
        return contract.partitioned_as(("cluster", "day") if contract.is_dated else ("cluster",))

    def written_folder(self, name: str) -> str:
        """As Warehouse.written_folder: a temporary folder."""
        return joined(self._folder, "written", name)

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

    def files(self, name: str, rows: RowFilter | None) -> TableFiles:
        """As Warehouse.files: copies of the rows in the temporary folder."""
        with self._copying:
            here = self._here(name, rows)
            return self._copy(name, rows) if here is None else here

    def known_rows(self, name: str, rows: RowFilter) -> int | None:
        """As Warehouse.known_rows: of rows that are here."""
        here = self._here(name, rows)
        return None if here is None else here.rows

    def copied(self, name: str, rows: RowFilter | None) -> TableFiles | None:
        """Return files with these rows; None if they are not here, and Spark would copy a large table."""
        return self._here(name, rows) if self._is_large(name) else self.files(name, rows)

    def _here(self, name: str, rows: RowFilter | None) -> TableFiles | None:
        """Return the copies of these rows; None without them."""
        files = self._copies.files(name, *self._bounds(name, rows)) if self.exists(name) else []
        if files is None:
            return None
        mine = [file for file in files if rows is None or rows.may_have(file.cluster, file.day, file.day)]
        return TableFiles(tuple(mine), self.contracts[name].arrow_schema)

    def _bounds(self, name: str, rows: RowFilter | None) -> tuple[str | None, Between | None]:
        """Return the cluster, and the first and last day, that may have such rows; None: any."""
        if rows is None:
            return None, None
        if rows.days is None or not self.contracts[name].is_dated:
            return rows.cluster, rows.between if self.contracts[name].is_dated else None
        return rows.cluster, (min(rows.days, default=dt.date.min), max(rows.days, default=dt.date.min))

    def is_here(self, name: str, rows: RowFilter) -> bool:
        """As Warehouse.is_here: of a small table, or of rows that were copied."""
        return self.copied(name, rows) is not None

    def file_bytes(self, name: str, rows: RowFilter) -> int:
        """As Warehouse.file_bytes: of the files that are here. To ask Spark for a size is two jobs."""
        here = self._here(name, rows)
        return 0 if here is None else sum(Path(file.path).stat().st_size for file in here.files)

    def _is_large(self, name: str) -> bool:
        """Return whether a night may have more rows of the table than the driver should copy."""
        return bool(self.contracts[name].shard_key) or self.contracts[name].is_judged

    def _copy(self, name: str, rows: RowFilter | None) -> TableFiles:
        """Copy the days from the first to the last one that may have such rows."""
        cluster, days = self._bounds(name, rows)
        folder = tempfile.mkdtemp(prefix=f"{name}-", dir=self._folder)
        schema, partitions = self.contracts[name].arrow_schema, self.layout(name).partitioned_by
        whole = None if cluster is None else RowFilter(cluster, between=days)
        written = TableWriter(folder, schema, partitions).write(self._batches(name, whole, schema.names))
        self._copies.keep(name, Copy(cluster, days, [table_file(folder, file) for file in written]))
        here = self._here(name, rows)
        assert here is not None, "the copy was kept"
        return here

    def day_counts(self, name: str, cluster: str) -> dict[dt.date, int]:
        """As Warehouse.day_counts."""
        if (here := self._here(name, RowFilter(cluster))) is None:
            found = self.spark_rows(name, RowFilter(cluster)).groupBy("day").count().collect()
            return {row["day"]: row["count"] for row in found}
        counts: dict[dt.date, int] = defaultdict(int)
        for file in here.files:
            assert file.day is not None, f"{name} is not partitioned by day"
            counts[file.day] += file.rows or 0
        return dict(counts)

    def spark_table(self, session: SparkSession, name: str) -> DataFrame:
        """As Warehouse.spark_table."""
        return session.table(self.table_name(name)) if self.exists(name) else super().spark_table(session, name)

    def commit_files(self, name: str, files: Sequence[WrittenFile], replaced: RowFilter | None) -> None:
        """As Warehouse.commit_files."""
        by_day = self.contracts[name].is_dated
        here = [self._table_file(name, file) for file in files]
        if replaced is None or replaced.has_whole_days(by_day):
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
        if replaced is not None and not replaced.has_whole_days(self.contracts[name].is_dated):
            self.commit_files(name, [], replaced)
            replaced = None
        self._write(name, rows, replaced)

    def _write(
        self, name: str, rows: DataFrame | None, replaced: RowFilter | None, files: Sequence[TableFile] | None = None
    ) -> None:
        """Replace whole partitions, if any, by rows, if any, in one commit. ``files`` have the same rows."""
        is_new = not self.exists(name)
        self._make_complete(name)
        if is_new:
            self._copies.keep(name, Copy(None, None, []))
        table = self.table_name(name)
        condition = None if replaced is None or is_new else self._condition(name, replaced)
        if rows is None:
            if replaced is None or self._is_empty(name, replaced):
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

    def _is_empty(self, name: str, rows: RowFilter) -> bool:
        """Return whether the partitions that may hold the rows have none."""
        copied = self.copied(name, rows)
        return bool(self.spark_rows(name, rows).isEmpty()) if copied is None else not copied.files

    def _days_with(self, name: str, rows: RowFilter, copied: TableFiles | None) -> set[dt.date | None] | None:
        """Return the days that have such rows (None: a table without days); None if there are no such rows."""
        column = "day" if self.contracts[name].is_dated else "cluster"
        if copied is not None:
            there = scan_files(copied.schema, copied.files).filter(rows.condition)
            found = there.select(column).unique().collect()[column].to_list()
        else:
            found = [row[0] for row in self._selected(name, rows, rows.condition, [column]).distinct().collect()]
        return {value if column == "day" else None for value in found} or None

    def _condition(self, name: str, rows: RowFilter) -> Column:
        """Return the condition of the partitions that may hold the rows."""
        from pyspark.sql import functions as F

        return F.expr(rows.days_sql(self.contracts[name].is_dated))

    def spark_rows(self, name: str, rows: RowFilter | None) -> DataFrame:
        """Return the partitions of an existing table that may hold the rows."""
        table = self._session.table(self.table_name(name))
        return table if rows is None else table.where(self._condition(name, rows))

    def _selected(self, name: str, rows: RowFilter, wanted: pl.Expr, columns: Sequence[str] | None = None) -> DataFrame:
        """Return those rows of the partitions for which the condition is true."""
        schema = self.contracts[name].arrow_schema
        needed, names = needed_columns(schema, wanted, columns)
        select = selecting(pa.schema([schema.field(each) for each in needed]), wanted, names)
        return self.spark_rows(name, rows).select(needed).mapInArrow(select, self.contracts[name].ddl(names))

    def _batches(self, name: str, rows: RowFilter | None, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield rows of the table, with these columns."""
        schema = self.contracts[name].arrow_schema
        is_whole = rows is None or rows.has_whole_days(self.contracts[name].is_dated)
        wanted = None if rows is None or is_whole else rows.condition
        needed, names = needed_columns(schema, wanted, columns)
        select = selecting(pa.schema([schema.field(each) for each in needed]), wanted, names)
        blobs = self.spark_rows(name, rows).select(needed).mapInArrow(packing(select), "data BINARY")
        # A partition at a time: the driver does not hold them all.
        for row in blobs.toLocalIterator(prefetchPartitions=True):
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

    def changed(self, name: str) -> None:
        """As Warehouse.changed."""
        super().changed(name)
        self._copies.forget(name)
