"""The Delta tables of one warehouse folder, as their contracts define them; read and written without Java."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa
from deltalake import DeltaTable

from mqreplay import __version__
from mqreplay.lake.buckets import key_of
from mqreplay.lake.checked_tables import CheckedTables
from mqreplay.lake.contract import Contract, load_contracts
from mqreplay.lake.delta_table import (
    COMMITTED_BY,
    CommitConflict,
    add_columns,
    allow_nulls,
    commit_files,
    create_table,
    keep_open,
    open_table,
    restore_table,
    set_properties,
)
from mqreplay.lake.files import for_each, is_remote, joined
from mqreplay.lake.lease import require_lease
from mqreplay.lake.row_filter import RowFilter
from mqreplay.lake.storage import spark_location
from mqreplay.lake.table_files import (
    BATCH_ROWS,
    DAY_BOUNDS,
    TableFile,
    TableFiles,
    file_batches,
    files_in,
    scan_files,
)
from mqreplay.lake.table_log import last_commit, log_changed, remove_table, remove_torn_log_files
from mqreplay.lake.table_writer import TableWriter, WrittenFile, as_table, repeating
from mqreplay.words.errors import ContractError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from mqreplay.lake.registration import CatalogNames

COMMITS = 10  # attempts of a commit while others commit versions
Changes = tuple[Sequence[WrittenFile], pl.DataFrame]  # added files, and removed ones (Snapshot.files)


class Warehouse(CheckedTables):
    """The tables under ``root``: read and replace rows. Safe for threads that write different tables.

    ``names`` are the tables' names in a catalog; None: Spark reads and writes them by path, too.
    """

    names: CatalogNames | None = None

    def __init__(self, root: str, contracts: Mapping[str, Contract] | None = None) -> None:
        """Take the folder ``root``, which need not exist. A table is made when it is first written."""
        root = root.rstrip("/") if is_remote(root) else str(Path(root).resolve())
        super().__init__(root, contracts if contracts is not None else load_contracts())

    def layout(self, name: str) -> Contract:
        """Return the contract of a table, partitioned as the table is: one of an older version stays as it was made."""
        found = self.snapshot(name).partitioned_by if self.exists(name) else ()
        return self.contracts[name].partitioned_as(found or self.contracts[name].partitioned_by)

    def written_folder(self, name: str) -> str:
        """Return the folder of files with rows of the table that are not committed."""
        return self.location(name)

    def file_bytes(self, name: str, rows: RowFilter) -> int:
        """Return the size of the files that may hold these rows. No file is read."""
        return int(self.snapshot(name).of(rows)["size_bytes"].sum()) if self.exists(name) else 0

    def state(self) -> str:
        """Return a digest of mqreplay's version and the state of all tables: each commit changes it. No table is read.

        Version numbers alone would not show that a table was replaced by another.
        """
        commits = for_each(self._last_commit, sorted(self.contracts), self.root)
        last = {name: commit for name, commit in commits.items() if commit is not None}
        return hashlib.sha256(json.dumps([__version__, last]).encode()).hexdigest()[:32]

    def _last_commit(self, name: str) -> tuple[Any, ...] | None:
        """Return what identifies the last commit of the table, as plain values; None without a table."""
        return last_commit(self.location(name))

    def read(self, name: str, rows: RowFilter | None = None) -> pl.LazyFrame:
        """Return rows of the table in the contract's column order; none if it does not exist.

        Files that cannot hold any of them are not read.
        """
        schema = self.contracts[name].arrow_schema
        found = scan_files(schema, self.listed_files(name, rows))
        return found if rows is None else found.filter(rows.condition)

    def files(self, name: str, rows: RowFilter) -> TableFiles:
        """Return the files that may hold these rows."""
        return TableFiles(tuple(self.listed_files(name, rows)), self.contracts[name].arrow_schema)

    def known_rows(self, name: str, rows: RowFilter) -> int | None:
        """Return the number of rows in the files that may hold these rows; None if only a read would tell."""
        return self.files(name, rows).rows

    def is_here(self, name: str, rows: RowFilter) -> bool:
        """Return whether `files` has these rows at once: else Spark would copy many."""
        return True

    def spark_rows(self, name: str, rows: RowFilter) -> DataFrame:
        """Raise NotImplementedError: rows of a table by path are always here."""
        raise NotImplementedError

    def listed_files(self, name: str, rows: RowFilter | None = None) -> list[TableFile]:
        """Return the files that may hold these rows; of all without ``rows``."""
        return files_in(self.location(name), self.snapshot(name).of(rows)) if self.exists(name) else []

    def day_counts(self, name: str, cluster: str) -> dict[dt.date, int]:
        """Return the number of rows on each day of a cluster, of a table whose rows have one."""
        if not self.exists(name):
            return {}
        listed = self.snapshot(name).of(RowFilter(cluster))
        is_of_one = (pl.col("first_day") == pl.col("last_day")).fill_null(False) & pl.col("num_records").is_not_null()
        counts = Counter[dt.date]()
        for day, rows in listed.filter(is_of_one).select("first_day", "num_records").iter_rows():
            counts[day] += rows  # no file is read
        if len(others := listed.filter(~is_of_one)):
            read = scan_files(self.contracts[name].arrow_schema, files_in(self.location(name), others))
            counts.update(dict(read.group_by("day").len().collect().iter_rows()))
        return dict(counts)

    def spark_table(self, session: SparkSession, name: str) -> DataFrame:
        """Return the table as a DataFrame; without rows if it does not exist."""
        if not self.exists(name):
            return session.createDataFrame([], self.contracts[name].ddl())
        return session.read.format("delta").load(spark_location(self.location(name)))

    def written_rows(self, name: str, files: Iterable[WrittenFile]) -> pl.LazyFrame:
        """Return the rows in files of a writer before they are committed."""
        return scan_files(self.contracts[name].arrow_schema, [self._table_file(name, file) for file in files])

    def writer(self, name: str, same: dict[str, str] | None = None, day_of: str | None = None) -> TableWriter:
        """Return a writer for tasks to write rows of the table as Parquet files. Readers see them after a commit.

        Files that are not committed are removed by mqreplay maintain. ``same`` are columns of one value; ``day_of`` is
        the instant whose date is the row's day. Rows have all other columns.
        """
        contract, schema = self.layout(name), self.contracts[name].arrow_schema
        return TableWriter(
            self.written_folder(name),
            schema,
            contract.partitioned_by,
            tuple((same or {}).items()),
            day_of,
            tuple(c.name for c in contract.columns if not c.nullable),
            repeating(schema, {contract.single_column_key, *contract.partitioned_by}),
            key_of(contract.shard_key),
            tuple(contract.checks.values()),
            contract.bounded,
        )

    def without(self, name: str, files: Iterable[WrittenFile], gone: pl.Expr) -> list[WrittenFile]:
        """Return written files without the rows for which ``gone`` is true; rewrite files that have some."""
        kept: list[WrittenFile] = []
        for file in files:
            others = self._rewritten(name, self._table_file(name, file), gone)
            kept += [file] if others is None else others
        return kept

    def replace_rows(self, name: str, rows: pl.DataFrame | Iterable[Sequence[Any]], replaced: RowFilter | None) -> None:
        """Replace the rows ``replaced``, if any, by ``rows``, which must be among them, in one commit.

        Rows without names are in the contract's column order. Raises ContractError.
        """
        writer = self.writer(name)
        table = (
            as_table(rows, writer.schema, name) if isinstance(rows, pl.DataFrame) else _table(list(rows), writer.schema)
        )
        if replaced is not None and not pl.DataFrame(pl.from_arrow(table)).filter(~replaced.condition).is_empty():
            raise ContractError(f"rows for {name} are not among those that they replace; a bug in mqreplay")
        self.commit_files(name, writer.write(table.to_batches(BATCH_ROWS)), replaced)
        self.note_versions()

    def commit_files(self, name: str, files: Sequence[WrittenFile], replaced: RowFilter | None) -> None:
        """Replace the rows ``replaced``, if any, by those in written files, in one commit.

        The table is created if it does not exist. Raises ContractError if it is of an incompatible version.
        """

        def changes() -> Changes:
            gone, kept = self._replaced(name, replaced)
            return [*files, *kept], gone

        self._commit(name, changes)

    def exchange_files(self, name: str, added: Sequence[WrittenFile], removed: Collection[str]) -> None:
        """Add written files to the table, and remove those with the paths ``removed``, in one commit.

        Raises as commit_files.
        """
        self._commit(name, lambda: (added, self.snapshot(name).files.filter(pl.col("path").is_in(list(removed)))))

    def _commit(self, name: str, changes: Callable[[], Changes]) -> None:
        place = self.location(name)
        for _ in range(COMMITS):
            try:
                table = self._current(name)
                added, gone = changes()
                if added or len(gone):
                    commit_files(place, table, added, gone)
                keep_open(place, table)
                self._changed.add(name)
                return
            except CommitConflict:
                continue
        raise ContractError(f"table {name} in {self.root} is constantly written by other programs; run it again later")

    def commit_frame(self, name: str, rows: DataFrame, replaced: RowFilter | None) -> None:
        """Replace the rows ``replaced``, if any, by those of a DataFrame; whole days in one commit.

        The DataFrame has the columns of the table, and does not depend on its rows. The table is created if it does not
        exist.
        """
        is_dated = self.contracts[name].is_dated
        writer = rows.write.format("delta").option("userMetadata", COMMITTED_BY)
        if replaced is not None and replaced.has_whole_days(is_dated) and self.exists(name):
            self._current(name)
            writer = writer.mode("overwrite").option("replaceWhere", replaced.days_sql(is_dated))
        else:
            self.commit_files(name, [], replaced)
            writer = writer.mode("append")
        require_lease(self.location(name))
        writer.save(spark_location(self.location(name)))
        self.changed(name)

    def _current(self, name: str) -> DeltaTable:
        """Open the table, with all columns of its contract; create it if it does not exist."""
        contract, place = self.contracts[name], self.location(name)
        if not self.exists(name):
            return create_table(place, contract)
        self.mend_log(name)
        before, table = self.snapshot(name), open_table(place)
        if missing := self._missing_fields(name, before.fields):
            add_columns(place, table, missing)
            table = open_table(place)
        if names := self._needless_not_null(name, before.fields):
            allow_nulls(place, table, names)
            table = open_table(place)
        has = table.metadata().configuration
        properties = contract.partitioned_as(before.partitioned_by).properties
        if unset := {key: value for key, value in properties.items() if key not in has}:
            set_properties(place, table, unset)
            table = open_table(place)
        return table

    def _missing_fields(self, name: str, fields: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the columns that a table with these ``fields`` lacks. Raises ContractError for other types."""
        known = {field["name"]: field for field in fields}
        wanted = self.contracts[name].fields
        for field in wanted:
            old = known.get(field["name"])
            if old is None and not field["nullable"]:
                raise self._incompatible(name, f"lacks {field['name']}")
            if old is not None and (old["type"] != field["type"] or (old["nullable"] and not field["nullable"])):
                raise self._incompatible(name, f"has another type of {field['name']}")
        return [field for field in wanted if field["name"] not in known]

    def _needless_not_null(self, name: str, fields: Iterable[dict[str, Any]]) -> list[str]:
        """Return the columns that must not be null in a table with these ``fields``, and may be by the contract."""
        strict = {field["name"] for field in fields if not field["nullable"]}
        return [column.name for column in self.contracts[name].columns if column.nullable and column.name in strict]

    def _incompatible(self, name: str, why: str) -> ContractError:
        return ContractError(
            f"table {name} in {self.root} was made by another version and {why}; "
            "use a new --warehouse and run the recordings again"
        )

    def _replaced(self, name: str, replaced: RowFilter | None) -> tuple[pl.DataFrame, list[WrittenFile]]:
        """Return the files with rows to replace (Snapshot.files), and new files with their other rows."""
        listed = self.snapshot(name)
        if replaced is None:
            return listed.files.clear(), []
        mine = listed.of(replaced)
        is_whole = pl.Series(
            [replaced.has_all(*days) for days in mine.select(DAY_BOUNDS).iter_rows()], dtype=pl.Boolean
        )
        parts = mine.filter(~is_whole)
        others = [self._rewritten(name, file, replaced.condition) for file in files_in(self.location(name), parts)]
        gone = parts.filter(pl.Series([each is not None for each in others], dtype=pl.Boolean))
        return mine.filter(is_whole).vstack(gone), [file for each in others if each is not None for file in each]

    def _rewritten(self, name: str, file: TableFile, gone: pl.Expr) -> list[WrittenFile] | None:
        """Rewrite a file without the rows for which ``gone`` is true; None if it has none of them."""
        schema = self.contracts[name].arrow_schema
        rows, without = scan_files(schema, [file]).select(pl.len(), gone.sum().alias("gone")).collect().row(0)
        if not without:
            return None
        return self.writer(name).write(file_batches(file, schema, ~gone.fill_null(False))) if without < rows else []

    def _table_file(self, name: str, file: WrittenFile) -> TableFile:
        return table_file(self.written_folder(name), file)

    def changed(self, name: str) -> None:
        """Forget what is known of the table: Spark has written to it."""
        log_changed(self.location(name))
        self._changed.add(name)

    def remove_torn_commits(self, name: str, since: int) -> None:
        """Remove what unfinished commits after a version left in the table's log."""
        remove_torn_log_files(self.location(name), since)

    def restore(self, name: str, version: int) -> None:
        """Restore the rows and columns of an earlier version as a new version."""
        self.mend_log(name)
        restore_table(self.location(name), version)
        self._changed.add(name)

    def drop(self, name: str) -> None:
        """Remove the table, at once for readers."""
        self._noted.write({name: None})
        remove_table(self.location(name))


def table_file(folder: str, file: WrittenFile) -> TableFile:
    """Return a written file of a table in a folder."""
    values = dict(file.partition)
    day = values.get("day")
    path = joined(folder, file.path)
    return TableFile(path, values["cluster"], None if day is None else dt.date.fromisoformat(day), file.rows)


def _table(rows: list[Sequence[Any]], schema: pa.Schema) -> pa.Table:
    columns: Iterable[Sequence[Any]] = zip(*rows, strict=True) if rows else ([] for _ in schema)
    return pa.Table.from_arrays([_array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema=schema)


def _array(column: Iterable[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_map(kind):
        column = [None if value is None else list(value.items()) for value in column]
    return pa.array(list(column), kind)
