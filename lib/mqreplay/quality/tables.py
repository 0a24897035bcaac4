"""The tables of one cluster as views of DuckDB, over the Parquet files of their last versions."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from mqreplay.lake.contract import Contract
from mqreplay.lake.duckdb_database import Database, literal, quoted, without_zone
from mqreplay.lake.row_filter import RowFilter
from mqreplay.lake.table_files import table_files


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


class Tables(Database):
    """Of one cluster. A table that does not exist has no rows."""

    def __init__(self, warehouse: Located, cluster: str) -> None:
        """No table is read yet."""
        super().__init__()
        self.contracts: Mapping[str, Contract] = warehouse.contracts
        self._location, self._cluster = warehouse.location, cluster

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

    def count_outside(self, name: str, days: Collection[dt.date]) -> int:
        """Return the number of the cluster's rows on other days than these."""
        files = table_files(self._location(name), self.contracts[name].arrow_schema, RowFilter(self._cluster))
        return sum(file.rows or 0 for file in files.files if file.day not in days)

    def _files_of(self, contract: Contract, days: Days) -> str:
        """Return a query of all columns of the files that may hold the rows."""
        between = (days.first or dt.date.min, days.last or dt.date.max) if days != EVERY else None
        wanted = RowFilter(self._cluster, between=between)
        return self.files(
            contract.arrow_schema, table_files(self._location(contract.name), contract.arrow_schema, wanted).files
        )
