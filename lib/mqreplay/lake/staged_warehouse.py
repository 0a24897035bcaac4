"""A warehouse whose commits wait: a task sees them, and the driver makes them, of many tasks one for each table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import polars as pl

from mqreplay.lake.journal import Journal
from mqreplay.lake.row_filter import RowFilter
from mqreplay.lake.table_files import FILE_SCHEMA, Snapshot
from mqreplay.lake.table_writer import WrittenFile, days_of
from mqreplay.lake.warehouse import Warehouse, table_file

EMPTY_SNAPSHOT = Snapshot(-1, FILE_SCHEMA.to_frame(), ())


@dataclass(frozen=True)
class Staged:
    """What a commit would do to one table: files that it adds, and paths of those that it removes."""

    added: tuple[WrittenFile, ...] = ()
    removed: frozenset[str] = frozenset()


class StagedWarehouse(Warehouse):
    """Use it for one cluster, whose partitions nobody else changes meanwhile. ``staged`` are the changes by table."""

    def __init__(self, root: str) -> None:
        """Take the folder ``root``, as Warehouse."""
        super().__init__(root)
        self.staged: dict[str, Staged] = {}
        self._commits = 0
        self._known: dict[str, tuple[Snapshot, Staged, Snapshot]] = {}  # what the snapshot was made of, and it

    def exists(self, name: str) -> bool:
        """As Warehouse.exists."""
        return name in self.staged or super().exists(name)

    def snapshot(self, name: str) -> Snapshot:
        """As Warehouse.snapshot, after the commits that wait."""
        before = super().snapshot(name) if super().exists(name) else EMPTY_SNAPSHOT
        if (staged := self.staged.get(name)) is None:
            return before
        known = self._known.get(name)
        if known is None or known[0] is not before or known[1] is not staged:
            known = self._known[name] = before, staged, _after(before, staged, self.location(name))
        return known[2]

    def commit_files(self, name: str, files: Sequence[WrittenFile], replaced: RowFilter | None) -> None:
        """As Warehouse.commit_files. A file that another of these commits has added is forgotten."""
        gone, others = self._replaced(name, replaced)
        before, paths = self.staged.get(name, Staged()), set(gone["path"])
        kept = tuple(file for file in before.added if file.path not in paths)
        removed = before.removed | (paths - {file.path for file in before.added})
        self.staged[name] = Staged((*kept, *files, *others), removed)
        self._commits += 1

    def state(self) -> str:
        """As Warehouse.state. Only without changes it is a state that others know."""
        return f"{super().state()} {self._commits}" if self._commits else super().state()

    def note_versions(self, names: Iterable[str] = ()) -> None:
        """Do nothing: there are no new versions."""


class StagedJournal(Journal):
    """The journal of a StagedWarehouse: a transaction that fails leaves its changes as they were before."""

    def __init__(self, warehouse: StagedWarehouse) -> None:
        super().__init__(warehouse)
        self._staged = warehouse

    @contextmanager
    def transaction(self, name: str, tables: Iterable[str] | None = None) -> Iterator[None]:
        """As Journal.transaction."""
        before = dict(self._staged.staged)
        try:
            yield
        except BaseException:
            self._staged.staged = before
            raise

    def savepoint(self, tables: Iterable[str]) -> None:
        """Do nothing: what a task does counts as a whole."""

    def recover(self, say: Callable[[str], None]) -> None:
        """Do nothing: no commit was made."""


def by_table(tasks: Iterable[Mapping[str, Staged]]) -> dict[str, Staged]:
    """Return what tasks of different clusters changed, together for each table."""
    whole: dict[str, Staged] = {}
    for staged in tasks:
        for name, changes in staged.items():
            before = whole.get(name, Staged())
            whole[name] = Staged((*before.added, *changes.added), before.removed | changes.removed)
    return whole


def _after(before: Snapshot, staged: Staged, folder: str) -> Snapshot:
    kept = before.files.filter(~pl.col("path").is_in(staged.removed)).cast(FILE_SCHEMA)
    added = pl.DataFrame([_listed(folder, file) for file in staged.added], FILE_SCHEMA, orient="row")
    return Snapshot(before.version, pl.concat([kept, added]).sort("path"), before.fields, before.partitioned_by)


def _listed(folder: str, file: WrittenFile) -> tuple[Any, ...]:
    _, cluster, day, rows = table_file(folder, file)
    return file.path, file.bytes, rows, cluster, day, *days_of(file)
