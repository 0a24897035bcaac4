"""The tables of a warehouse in a catalog of the Spark session: their names, versions and definitions."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from mqreplay.lake.catalog import first_line, s3_scheme
from mqreplay.lake.contract import Contract
from mqreplay.lake.lease import require_lease
from mqreplay.lake.registration import CatalogNames, create_database
from mqreplay.lake.sql import literal
from mqreplay.lake.storage import spark_location
from mqreplay.lake.warehouse import Warehouse
from mqreplay.words.errors import ContractError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CHECK = "delta.constraints."  # begins the property of a CHECK constraint


class CatalogTables(Warehouse):
    """Tables by name. ``root`` has the lock, the journal and the pages, and the tables are located below it."""

    def __init__(
        self, session: SparkSession, root: str, names: CatalogNames, contracts: Mapping[str, Contract] | None
    ) -> None:
        """Take the session and the names in its catalog.

        No other program may write the tables at the same time: the last commits are remembered.
        """
        super().__init__(root, contracts)
        self._session, self.names = session, names
        self._existing: dict[str, bool] = {}
        self._commits: dict[str, tuple[Any, ...]] = {}
        self._run, self._changes = uuid.uuid4().hex, 0
        self._complete: set[str] = set()  # tables with all columns and constraints of their contract
        self._lock = threading.Lock()

    def table_name(self, name: str) -> str:
        """Return the table's name in Spark."""
        contract = self.contracts[name]
        return f"{self._database(contract.layer)}.`{contract.table}`"

    def _database(self, layer: str) -> str:
        assert self.names is not None, "__init__ sets them"
        return self.names.database(layer)

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
            row = self.sql(name, f"DESCRIBE HISTORY {self.table_name(name)} LIMIT 1").collect()[0]
            self._commits[name] = row.version, row.timestamp.isoformat()
        return self._commits[name]

    def state(self) -> str:
        """As Warehouse.state. Once this run has changed a table, it is a state that no other run knows."""
        return f"{self._run} {self._changes}" if self._changes else super().state()

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
            self.sql(name, f"ALTER TABLE {table} ALTER COLUMN `{column}` DROP NOT NULL")
        if missing := self._missing_fields(name, fields):
            names = [field["name"] for field in missing]
            added = [f"`{c.name}` {c.type} COMMENT {literal(c.comment)}" for c in contract.columns if c.name in names]
            self.sql(name, f"ALTER TABLE {table} ADD COLUMNS ({', '.join(added)})")
        has = {row.key.lower() for row in self.sql(name, f"SHOW TBLPROPERTIES {table}").collect()}
        for check, condition in contract.checks.items():
            if f"{CHECK}{check}".lower() not in has:
                self.sql(name, f"ALTER TABLE {table} ADD CONSTRAINT {check} CHECK ({condition})")
        if any(key.lower() not in has for key in contract.properties):
            layout = contract.partitioned_as(self.sql(name, f"DESCRIBE DETAIL {table}").collect()[0].partitionColumns)
            unset = {key: value for key, value in layout.properties.items() if key.lower() not in has}
            self.sql(name, f"ALTER TABLE {table} SET TBLPROPERTIES ({_listed(unset)})")
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
            self.sql(contract.name, create_database(self._database(contract.layer)))
        self.sql(
            contract.name,
            f"CREATE TABLE {self.table_name(contract.name)} ({', '.join(columns)}) USING delta"
            f" PARTITIONED BY ({', '.join(contract.partitioned_by)}) LOCATION {literal(location)}"
            f" COMMENT {literal(contract.description)} TBLPROPERTIES ({_listed({**contract.properties, **checks})})",
        )
        self._existing[contract.name] = True
        self._committed(contract.name)

    def _fields(self, name: str) -> list[dict[str, Any]]:
        """Return the columns of the table as in the schema of Delta's log."""
        fields = self._session.table(self.table_name(name)).schema.jsonValue()["fields"]
        return [dict(field) for field in fields]

    def sql(self, name: str, statement: str) -> DataFrame:
        """Run a statement on the table. Raises ContractError with the reason if Spark refuses it."""
        try:
            return self._session.sql(statement)
        except Exception as error:  # a catalog, its server and a file system raise what they like
            raise ContractError(f"table {self.table_name(name)} cannot be used: {first_line(error)}") from None

    def _committed(self, name: str) -> None:
        """Note a commit after which what is known of the rows stays true."""
        self._commits.pop(name, None)
        self._changes += 1

    def changed(self, name: str) -> None:
        """As Warehouse.changed."""
        self._committed(name)

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
        self.sql(name, f"RESTORE TABLE {self.table_name(name)} TO VERSION AS OF {version}")
        self._complete.discard(name)
        self.changed(name)

    def drop(self, name: str) -> None:
        """Remove the table's rows. Its name stays: files of an external table would outlive the name."""
        if self.exists(name):
            require_lease(self.location(name))
            self.sql(name, f"DELETE FROM {self.table_name(name)}")
            self.changed(name)


def _listed(properties: Mapping[str, str]) -> str:
    """Return properties of a table as SQL lists them."""
    return ", ".join(f"{literal(key)} = {literal(value)}" for key, value in properties.items())
