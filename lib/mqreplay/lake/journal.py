"""The journal of a run: the version of each table before the run. The next run rolls back an interrupted one.

A run commits to many tables, one after the other. Each commit is atomic, all of them together are not: a run that ends
between two commits leaves rows that no ledger lists. So a run writes all versions to the journal before its first
commit, and removes the journal after its last one. A run that finds a journal first restores every table to its
version. Removing the journal is the commit of the run. Use it under the warehouse's lock.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from mqreplay.lake.files import files_of, for_each, joined, read_json, write_json
from mqreplay.lake.lease import require_lease
from mqreplay.lake.lock import is_locked
from mqreplay.lake.table_versions import VERSIONS_FILE as NOTED_VERSIONS
from mqreplay.lake.warehouse import Warehouse
from mqreplay.words.errors import InputError

JOURNAL = ".mqreplay.journal"
OLD_MARK = ".mqreplay.unfinished"  # the journal of 0.1.0: names of steps, without the versions that a rollback needs

Versions = dict[str, int | None]  # None: the table did not exist


def interrupted_run(root: str) -> str | None:
    """Return the step of the interrupted run on this warehouse; None without one, or while a run is active."""
    return None if not _is_there(joined(root, JOURNAL)) or is_locked(root) else interrupted_step(root)


def interrupted_step(root: str) -> str | None:
    """Return the step in the journal of this warehouse; None without a journal."""
    path = joined(root, JOURNAL)
    if not _is_there(path):
        return None
    try:
        return str(read_json(path)["name"])
    except (OSError, ValueError, KeyError, TypeError):
        return "its journal is damaged"


def _is_there(path: str) -> bool:
    return files_of(path).info(path) is not None


class Journal:
    """The journal of one warehouse."""

    def __init__(self, warehouse: Warehouse, cancel: Callable[[], None] = lambda: None) -> None:
        """Take ``cancel``, which stops running tasks after an error. Nothing is read yet."""
        self._warehouse, self._cancel = warehouse, cancel
        self._path = joined(warehouse.root, JOURNAL)
        self._versions: Versions = {}
        self._name = ""
        self._lock = threading.Lock()

    @contextmanager
    def tasks(self) -> Iterator[None]:
        """Run the block, which changes no table; stop running tasks if it fails."""
        try:
            yield
        except BaseException:
            self._cancel()
            raise

    @contextmanager
    def transaction(self, name: str, tables: Iterable[str] | None = None) -> Iterator[None]:
        """Run the block so that all of its commits count or none: after an error the next run rolls them back.

        ``name`` is the step of the run; ``tables`` are all that it may change (None: any). All writing threads must
        have ended when the block ends. Files that tasks wrote and no commit used stay until mqreplay maintain removes
        them.
        """
        self._name = name
        self._versions = self._now(self._warehouse.contracts if tables is None else tables)
        self._write()
        with self.tasks():
            yield
        self._warehouse.note_versions()
        require_lease(self._path)
        files_of(self._path).remove(self._path)

    def savepoint(self, tables: Iterable[str]) -> None:
        """Keep the current content of these tables even if the rest of the transaction fails."""
        with self._lock:
            self._warehouse.note_versions()
            self._versions = self._versions | self._now(tables)
            self._write()

    def recover(self, say: Callable[[str], None]) -> None:
        """Roll back an interrupted run, if there is one. Raises InputError for a journal that cannot be read."""
        if _is_there(joined(self._warehouse.root, OLD_MARK)):
            raise InputError(
                f"warehouse {self._warehouse.root} was left unfinished by mqreplay 0.1.0; finish the run with that "
                "version, or give a new --warehouse and run the recordings again"
            )
        if not _is_there(self._path):
            return
        noted = self._read()
        versions = {table: v for table, v in noted["versions"].items() if table in self._warehouse.contracts}
        had = [table for table, version in versions.items() if version is not None]
        gone = [table for table in had if self._warehouse.version(table) is None]
        if gone and len(gone) < len(had):
            raise InputError(
                f"table {gone[0]} of {self._warehouse.root} is missing, and the last run was interrupted "
                f"({noted['name']}): put it back, or give a new --warehouse and run the recordings again"
            )
        say(f"the last run was interrupted ({noted['name']}); rolling it back")
        require_lease(self._path)
        for table, version in versions.items():
            # If somebody removed all tables to start again, there is nothing to restore.
            self._roll_back(table, None if gone else version)
        self._warehouse.note_versions(versions)
        files_of(self._path).remove(self._path)

    def _roll_back(self, table: str, version: int | None) -> None:
        warehouse = self._warehouse
        if version is None:
            warehouse.drop(table)
            return
        warehouse.remove_torn_commits(table, version)
        if warehouse.version(table) != version:
            warehouse.restore(table, version)

    def _now(self, tables: Iterable[str]) -> Versions:
        return for_each(self._warehouse.version, tables, self._warehouse.root)

    def _write(self) -> None:
        require_lease(self._path)
        write_json(self._path, {"name": self._name, "versions": self._versions})

    def _read(self) -> dict[str, dict[str, int | None]]:
        try:
            # Versions before 0.3 wrote neither a checksum nor the file of versions.
            noted = read_json(self._path, is_old=not _is_there(joined(self._warehouse.root, NOTED_VERSIONS)))
            if isinstance(noted["versions"], dict):
                return noted
        except (IsADirectoryError, ValueError, KeyError):
            pass
        raise InputError(
            f"{self._path} is damaged, so an interrupted run cannot be rolled back; "
            "give a new --warehouse and run the recordings again"
        )


class SharedJournal(Journal):
    """The journal of threads that replay a cluster each: they take turns, and no tasks of others are stopped."""

    def __init__(self, warehouse: Warehouse) -> None:
        """Take the warehouse. Nothing is read yet."""
        super().__init__(warehouse)
        self._turn = threading.RLock()

    @contextmanager
    def transaction(self, name: str, tables: Iterable[str] | None = None) -> Iterator[None]:
        """As Journal.transaction, but rolled back at once: the next thread would overwrite the journal.

        Raises InputError if that of another thread could not be rolled back.
        """
        with self._turn:
            if _is_there(self._path):
                raise InputError(f"{name}: not begun, since {interrupted_step(self._warehouse.root)} was interrupted")
            try:
                with super().transaction(name, tables):
                    yield
            except BaseException:
                self.recover(lambda text: None)
                raise

    def recover(self, say: Callable[[str], None]) -> None:
        """As Journal.recover, after the transaction of another thread."""
        with self._turn:
            super().recover(say)
