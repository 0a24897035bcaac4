"""The tables of one cluster as views of DuckDB, over the Parquet files of their last versions."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from mqreplay.lake.contract import Contract
from mqreplay.lake.delta_files import rows_on_other_days, table_files
from mqreplay.lake.duckdb_database import Database, literal, quoted, without_zone


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
        contract, location = self.contracts[name], self._location(name)
        counted, files = rows_on_other_days(location, contract.arrow_schema, self._cluster, days)
        none = ", ".join(["NULL", *(f"DATE {literal(str(day))}" for day in days)])
        wanted = f"cluster = {literal(self._cluster)} AND NOT coalesce(day IN ({none}), false)"
        rows = self.files(contract.arrow_schema, files.paths)
        return counted + self.count(f"SELECT day FROM ({rows}) WHERE {wanted}")

    def _files_of(self, contract: Contract, days: Days) -> str:
        """Return a query of all columns of the files that may hold the rows."""
        between = (days.first or dt.date.min, days.last or dt.date.max) if days != EVERY else None
        files = table_files(self._location(contract.name), contract.arrow_schema, self._cluster, between)
        return self.files(contract.arrow_schema, files.paths)
