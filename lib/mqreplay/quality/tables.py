"""The tables of one cluster as views of DuckDB, over Parquet files with the rows of their last versions."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from mqreplay.lake.contract import Contract
from mqreplay.lake.duckdb_database import Database, literal, quoted, without_zone
from mqreplay.lake.row_filter import Days, RowFilter
from mqreplay.lake.table_files import TableFiles

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class TableSource(Protocol):
    """A warehouse: contracts by table name, and files with the rows of each table."""

    contracts: Mapping[str, Contract]

    def files(self, name: str, rows: RowFilter) -> TableFiles:
        """Return the files of the partitions that may hold these rows."""

    def day_counts(self, name: str, cluster: str) -> dict[dt.date, int]:
        """Return the number of rows on each day of a cluster."""

    def is_here(self, name: str, rows: RowFilter) -> bool:
        """Return whether `files` has these rows; else they stay in Spark."""

    def exists(self, name: str) -> bool:
        """Return whether the table exists."""

    def spark_rows(self, name: str, rows: RowFilter) -> DataFrame:
        """Return these partitions of an existing table whose rows stay in Spark."""


EVERY = Days()


class Tables(Database):
    """Of one cluster. A table that does not exist has no rows."""

    def __init__(self, warehouse: TableSource, cluster: str) -> None:
        """No table is read yet."""
        super().__init__()
        self.contracts: Mapping[str, Contract] = warehouse.contracts
        self._warehouse, self._cluster = warehouse, cluster

    def rows(self, name: str, columns: Sequence[str], days: Days = EVERY, *, lost: bool = False) -> str:
        """Return a query for the cluster's rows on some days. Instants have no zone: they are in UTC.

        ``lost``: include rows without a cluster or day, which no other query would find.
        """
        contract = self.contracts[name]
        shown = without_zone(contract.arrow_schema, columns)
        wanted = {"cluster": [f"cluster = {literal(self._cluster)}"], "day": []}
        wanted["day"] += [f"day >= {literal(str(days.first))}"] if days.first else []
        wanted["day"] += [f"day <= {literal(str(days.last))}"] if days.last else []
        found = [
            f"({' AND '.join(conditions)}{f' OR {column} IS NULL' if lost else ''})"
            for column, conditions in wanted.items()
            if conditions
        ]
        return f"SELECT {', '.join(shown)} FROM ({self._files_of(contract, days)}) WHERE {' AND '.join(found)}"

    def count(self, query: str, column: str | None = None) -> int:
        """Return the number of rows of a query, or of non-null values of its column."""
        counted = "count(*)" if column is None else f"count(DISTINCT {quoted(column)})"
        return int(self.run(f"SELECT {counted} FROM ({query})")[0][0])

    def is_here(self, name: str, days: Days = EVERY) -> bool:
        """Return whether this database has the rows of some days; else they stay in Spark."""
        return self._warehouse.is_here(name, days.of_cluster(self._cluster))

    def has_files(self, name: str, days: Days = EVERY) -> bool:
        """Return whether a file may hold rows of the cluster on some days, or rows that lack them."""
        return bool(self._warehouse.files(name, days.of_cluster(self._cluster)).files)

    def count_outside(self, name: str, days: Collection[dt.date]) -> int:
        """Return the number of the cluster's rows on other days than these."""
        counts = self._warehouse.day_counts(name, self._cluster)
        return sum(count for day, count in counts.items() if day not in days)

    def _files_of(self, contract: Contract, days: Days) -> str:
        """Return a query of all columns of the files that may hold the rows."""
        files = self._warehouse.files(contract.name, days.of_cluster(self._cluster))
        return self.files(contract.arrow_schema, files.files)
