"""Maintenance of a warehouse: remove old days, compact small files, remove unused files and old log entries."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass

from mqreplay.engines.choice import running_engine
from mqreplay.ingest.retention import Retention
from mqreplay.lake import catalog_maintenance as by_name
from mqreplay.lake.catalog_tables import CatalogTables
from mqreplay.lake.files import for_each
from mqreplay.lake.journal import interrupted_step
from mqreplay.lake.local_folder import check_folders, folder
from mqreplay.lake.lock import warehouse_lock
from mqreplay.lake.maintenance import compact, removable_files, remove_unused, small_files
from mqreplay.lake.sql import check_text
from mqreplay.lake.storage import use_settings
from mqreplay.night.catalog import Catalog, opened_warehouse
from mqreplay.night.nightly_run import NightlyRun
from mqreplay.night.retention import first_kept, keep_of
from mqreplay.night.steps import Steps
from mqreplay.quality import UNDATED
from mqreplay.settings import Settings

Progress = Callable[[str], None]


@dataclass
class Maintained:
    """What was done to a table, or would be done. Sizes are in bytes; earlier versions do not count as files."""

    table: str
    rows_removed: int = 0
    files_before: int = 0
    files_after: int = 0
    bytes_before: int = 0
    bytes_after: int = 0
    unused_files_removed: int = 0
    unused_bytes_removed: int = 0
    log_entries_removed: int = 0

    @property
    def changed(self) -> bool:
        """Return whether anything was done."""
        sizes = (self.files_before, self.bytes_before) != (self.files_after, self.bytes_after)
        return bool(sizes or self.rows_removed or self.unused_files_removed or self.log_entries_removed)

    def as_dict(self) -> dict[str, object]:
        """Return it as plain values."""
        return asdict(self)


def maintain(
    root: str,
    settings: Settings,
    progress: Progress,
    *,
    keep: str | None = None,
    cluster: str | None = None,
    engine: str = "spark",
    catalog: Catalog | None = None,
    dry_run: bool = False,
) -> list[Maintained]:
    """Maintain all tables under the warehouse's lock; remove old days of one ``cluster``, or of all.

    ``keep`` is the option --keep, ``engine`` rewrites small files; with ``catalog`` Spark does, by the tables' names.
    With ``dry_run`` no table is changed. Return what was done to each table. Raises InputError, WarehouseLocked and the
    other MqreplayErrors.
    """
    if catalog is not None:
        catalog.check_engine(engine)
    use_settings(settings)
    root = folder(root, "warehouse")
    check_text(cluster)
    check_folders(root, [])
    days = keep_of(settings, keep)
    with (
        warehouse_lock(root, settings.storage.lease_s, progress) as lock,
        running_engine(engine, "mqreplay maintain", settings, lock, progress) as running,
    ):
        running.expect(0)  # Spark's own commands list files: few rows
        night = NightlyRun(running, opened_warehouse(root, running, catalog), settings, progress)
        work = (_Maintenance if catalog is None else _MaintenanceByName)(night, days)
        if dry_run:
            if (step := interrupted_step(root)) is not None:
                progress(f"the last run was interrupted ({step}); the next run rolls it back before it does anything")
            return work.preview(cluster)
        night.journal.recover(progress)
        return work.do(cluster)


class _Maintenance:
    """One maintenance run of a warehouse; ``keep`` is layer -> days."""

    def __init__(self, night: NightlyRun, keep: Mapping[str, int]) -> None:
        self._night, self._warehouse, self._keep = night, night.warehouse, keep
        self._tables = {name: self._state(name) for name in night.warehouse.contracts}
        self._versions_days = night.settings.maintain.keep_versions_days

    def preview(self, cluster: str | None) -> list[Maintained]:
        """Return what ``do`` would do. Rows that would go are not taken off the files that would be compacted."""
        for name in self._clusters(cluster):
            self._note_rows(Retention(self._warehouse, name).counts(self._first_days(name)))
        for name in self._tables:
            if self._warehouse.exists(name):
                self._preview_files(name)
        return list(self._tables.values())

    def _preview_files(self, name: str) -> None:
        done = self._tables[name]
        for small in small_files(self._warehouse, name):
            done.files_after -= small.files - 1
        unused = removable_files(self._warehouse, name, self._versions_days)
        done.unused_files_removed, done.unused_bytes_removed = len(unused), sum(unused.values())

    def do(self, cluster: str | None) -> list[Maintained]:
        """Do it, and return what was done."""
        there = [name for name in self._tables if self._warehouse.exists(name)]
        for name in there:
            self._warehouse.mend_log(name)
        shorter = [name for name in self._clusters(cluster) if self._remove_days(name)]
        for name in shorter:
            # A night of the same recordings would validate the ledger again, because it has changed.
            if Steps(self._warehouse, name).any_done("validate", [UNDATED]):
                self._night.validate(name)
        for name in there:
            self._compact(name)
        for_each(self._remove_unused, there, self._warehouse.root)
        for name in shorter:
            self._night.report(name)
        return list(self._tables.values())

    def _remove_unused(self, name: str) -> None:
        done, now = self._tables[name], self._state(name)
        done.files_after, done.bytes_after = now.files_before, now.bytes_before
        files, size, entries = remove_unused(self._warehouse, name, self._versions_days)
        done.unused_files_removed, done.unused_bytes_removed, done.log_entries_removed = files, size, entries

    def _state(self, name: str) -> Maintained:
        """Return the table with its present files, and nothing done."""
        number, size = self._sizes(name) if self._warehouse.exists(name) else (0, 0)
        return Maintained(name, files_before=number, files_after=number, bytes_before=size, bytes_after=size)

    def _sizes(self, name: str) -> tuple[int, int]:
        sizes = self._warehouse.snapshot(name).files["size_bytes"]
        return len(sizes), int(sizes.sum())

    def _clusters(self, cluster: str | None) -> list[str]:
        return self._night.clusters(cluster) if self._keep or cluster is not None else []

    def _first_days(self, cluster: str) -> dict[str, dt.date]:
        return first_kept(self._keep, self._night.spans(cluster), dt.datetime.now(dt.UTC).date())

    def _remove_days(self, cluster: str) -> bool:
        """Remove old days of a cluster in one transaction. Return whether there were any."""
        first = self._first_days(cluster)
        retention = Retention(self._warehouse, cluster)
        if not retention.counts(first):
            return False
        text = ", ".join(f"{layer} {day}" for layer, day in sorted(first.items()))
        self._night.progress(f"{cluster}: removing days before the first day that is kept: {text}")
        with self._night.journal.transaction(f"removal of old days of {cluster}"):
            self._note_rows(retention.remove(first))
        return True

    def _note_rows(self, counts: Mapping[str, int]) -> None:
        for name, count in counts.items():
            self._tables[name].rows_removed += count

    def _compact(self, name: str) -> None:
        tasks = small_files(self._warehouse, name)
        if not tasks:
            return
        self._night.progress(f"{name}: compacting {sum(task.files for task in tasks):,} files")
        with self._night.journal.transaction(f"compaction of {name}"):
            if not compact(self._warehouse, name, tasks):
                self._night.progress(f"{name}: not compacted, because another program writes to it")


class _MaintenanceByName(_Maintenance):
    """Of tables that only Spark opens. A preview does not know what OPTIMIZE would compact."""

    _warehouse: CatalogTables

    def _sizes(self, name: str) -> tuple[int, int]:
        return by_name.sizes(self._warehouse, name)

    def _preview_files(self, name: str) -> None:
        self._tables[name].unused_files_removed = by_name.remove_unused(
            self._warehouse, name, self._versions_days, dry_run=True
        )

    def _compact(self, name: str) -> None:
        self._night.progress(f"{name}: compacting")
        with self._night.journal.transaction(f"compaction of {name}", [name]):
            by_name.compact(self._warehouse, name)

    def _remove_unused(self, name: str) -> None:
        done = self._tables[name]
        done.files_after, done.bytes_after = self._sizes(name)
        done.unused_files_removed = by_name.remove_unused(self._warehouse, name, self._versions_days)
