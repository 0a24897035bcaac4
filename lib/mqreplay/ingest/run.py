"""Ingest the recordings of one cluster into silver: plan, read new files, write each table once, keep the ledger."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace

import polars as pl

from mqreplay.decode.recording.files import CHECKSUMS, RECORD_TABLES
from mqreplay.engines.engine import Engine
from mqreplay.ingest.brokers import read_brokers
from mqreplay.ingest.cluster_files import ClusterFiles, Progress, by_cluster
from mqreplay.ingest.late import copies_elsewhere
from mqreplay.ingest.ledger import BROKER_TABLE, FILE_TABLE, RECORDING_TABLES, Ledger, Ledgers, first_instant
from mqreplay.ingest.manifest import LEDGER, NewFile, Place, known_file
from mqreplay.ingest.opening import is_file, is_folder
from mqreplay.ingest.planning import Work, changed_snapshots, moved_recordings, plan_files
from mqreplay.ingest.recorded_files import RecordedFiles, is_of
from mqreplay.ingest.retention import Retention
from mqreplay.ingest.snapshot_rounds import ROUND_FILES, ingest_snapshots
from mqreplay.ingest.to_silver import Run, ingest_records
from mqreplay.lake.journal import Journal
from mqreplay.lake.result_cache import CachedQuery, ResultCache
from mqreplay.lake.row_filter import RowFilter
from mqreplay.lake.ticker import Ticker
from mqreplay.lake.warehouse import Warehouse
from mqreplay.settings import IngestSettings
from mqreplay.words.errors import InputError

Attempt = Callable[[str], AbstractContextManager[None]]
WRITERS = 3  # tables written at the same time: planning and committing one leaves cores free for another


@dataclass(frozen=True)
class Ingested:
    """The result of a run for one cluster. ``refused`` counts quarantine rows."""

    cluster: str
    recordings: list[str]
    files: int
    files_read: int
    rows_out: int
    refused: int


def ingest(
    warehouse: Warehouse,
    engine: Engine,
    journal: Journal,
    clusters: list[ClusterFiles],
    settings: IngestSettings,
    progress: Progress,
    attempt: Attempt = lambda cluster: nullcontext(),
) -> list[Ingested]:
    """Make silver equal to the recordings; read only new files. ``clusters`` is emptied.

    The work of each cluster is done in the context that ``attempt`` returns for its name, which may suppress an error
    so that the others are ingested. Raises ConservationError if rows were lost, and InputError if too many were
    refused; the accepted rows are stored.
    """
    engine.expect(sum(each.files.size for each in clusters))
    requested = {each.cluster: each.requested for each in clusters if each.requested}
    done: list[Ingested] = []
    while clusters:
        cluster_files = clusters.pop(0)
        with attempt(cluster_files.cluster):
            done.append(_Ingest(warehouse, engine, journal, cluster_files, settings, progress).run())
    for name, recordings in requested.items():
        with attempt(name):
            _check_refused(warehouse, name, recordings, settings.refused_share)
    return done


def ingest_recordings(
    warehouse: Warehouse,
    engine: Engine,
    recordings: dict[str, RecordedFiles],
    cluster: str | None,
    settings: IngestSettings,
    progress: Progress,
) -> list[Ingested]:
    """As ``ingest``, for recordings of any clusters, or of the one that is named."""
    clusters = by_cluster(warehouse, recordings, cluster, settings, progress)
    return ingest(warehouse, engine, Journal(warehouse, engine.cancel), clusters, settings, progress)


def has_new_files(
    warehouse: Warehouse, engine: Engine, journal: Journal, cluster_files: ClusterFiles, settings: IngestSettings
) -> bool:
    """Return whether ``ingest`` would change the cluster's rows."""
    _, moved, work = _Ingest(warehouse, engine, journal, cluster_files, settings, lambda _: None).plan()
    return bool(moved) or not work.nothing_new


class _Ingest:
    """One run for one cluster."""

    def __init__(
        self,
        warehouse: Warehouse,
        engine: Engine,
        journal: Journal,
        cluster_files: ClusterFiles,
        settings: IngestSettings,
        progress: Progress,
    ) -> None:
        self.warehouse, self.engine, self.journal, self.cluster = warehouse, engine, journal, cluster_files.cluster
        self.retention = Retention(warehouse, cluster_files.cluster)
        self.folders, self.files = (
            cluster_files.folders,
            RecordedFiles(self.retention.of_kept_days(cluster_files.files.rows)),
        )
        self.settings, self.progress = settings, progress
        self.others = sorted(cluster_files.known - {*cluster_files.folders})
        is_new = any(folder not in cluster_files.known for folder in cluster_files.folders)
        self.vanished = [folder for folder in self.others if not is_folder(folder)] if is_new else []

    def plan(self) -> tuple[pl.DataFrame, dict[str, str], Work]:
        """Return the rows of the ledger, the recordings that were moved, and what is to do. Nothing is written."""
        known = self._known()
        moved = moved_recordings(self.files, known, self.folders, self.vanished)
        if moved:
            known = known.with_columns(pl.col("recording").cast(pl.String).replace(moved).cast(pl.Categorical))
        work = plan_files(
            self.files,
            pl.concat([known, self._copies(known)]),
            self.folders,
            forget=self.settings.forget_missing_files,
            is_there=lambda file: is_file(file.full_path),
        )
        return known, moved, work

    def run(self) -> Ingested:
        """Plan, and carry out the plan in one transaction."""
        known, moved, work = self.plan()
        if self.settings.follow_links:
            work.new = [replace(n, file=replace(n.file, follow_links=True)) for n in work.new]
            work.snapshots = RecordedFiles(work.snapshots.rows.with_columns(follow_links=pl.lit(True)))
        if work.nothing_new and not moved:
            self.progress(f"{self.cluster}: {work.seen} files, none new or changed")
            return Ingested(self.cluster, self.folders, work.seen, 0, 0, 0)
        self.files = RecordedFiles(self.files.rows.filter(is_of(["brokers"])))  # the plan has all others
        self.progress(f"{self.cluster}: {_plan_text(work, moved)}")
        read = [name for name, contract in self.warehouse.contracts.items() if not contract.is_judged]
        with self.journal.transaction(f"ingest of {self.cluster}", read):
            return self._do(known, moved, work)

    def _known(self) -> pl.DataFrame:
        asked = known_files(self.cluster, [*self.folders, *self.vanished])
        return self.retention.of_kept_days(ResultCache(self.warehouse).frame(asked, LEDGER))

    def _copies(self, known: pl.DataFrame) -> pl.DataFrame:
        """Return snapshots of other recordings that equal new or removed ones of these."""
        others = [folder for folder in self.others if folder not in self.vanished]
        changed = changed_snapshots(self.files, known, self.folders) if others else None
        if changed is None or not changed.height:
            return LEDGER.to_frame()
        return copies_elsewhere(self.warehouse, self.cluster, others, changed)

    def _do(self, known: pl.DataFrame, moved: Mapping[str, str], work: Work) -> Ingested:
        warehouse, cluster = self.warehouse, self.cluster
        if moved:
            _rename_recordings(warehouse, cluster, moved)
        ledgers = Ledgers(warehouse, cluster, set(self.folders) - set(known["recording"].unique().cast(pl.String)))
        ledger = _enter_unread(work, ledgers)
        ledger.enter_unreadable(work.unreadable)
        ledger.enter_checksums(work.of(CHECKSUMS), self.settings.quarantine_rows)
        records = known.filter(is_of([*RECORD_TABLES, "brokers"])).iter_rows()
        firsts = known.select("recording", "path", "first_ts").drop_nulls()
        size = work.to_read_bytes / 1e6

        def line(_: float) -> str:
            return f"{cluster}: reading {size:,.0f} MB: {self.engine.progress()}"

        with (
            self.engine.decoders(warehouse, cluster) as decoders,
            ThreadPoolExecutor(WRITERS) as pool,
            Ticker(self.progress, line),
        ):
            run = Run(
                warehouse,
                decoders,
                self.journal,
                cluster,
                self.settings,
                [*map(known_file, records)],
                firsts,
                ledger,
                ledgers,
                first_day=self.retention.first_days.get("silver"),
            )
            del known, records
            try:
                snapshots = pool.submit(ingest_snapshots, run, work)
                ingest_records(run, work, pool)
                snapshots.result()
            except BaseException:
                self.engine.cancel()  # the pool waits for its threads, and they wait for tasks
                raise
        for new, old in work.renamed:
            if new.place not in ledger.files and new.place not in run.read_again:
                ledger.enter_known(new, old)
        gone = {k.place for k in work.gone_places}
        _write_brokers(run, self.files, gone)
        ledgers.write(ledger, gone)
        if expired := self.retention.remove_again():
            first = self.retention.first_days["silver"]
            self.progress(f"{cluster}: {expired:,} rows of days before {first} are not kept (mqreplay maintain)")
        return Ingested(cluster, self.folders, work.seen, work.to_read, ledgers.rows_out, ledgers.refused)


def _enter_unread(work: Work, ledgers: Ledgers) -> Ledger:
    """Return a ledger with the files that are not read; write those of a million files in parts of their own."""
    ledger = Ledger()
    for files, enter in ((work.duplicates, Ledger.enter_duplicate), (work.not_read, Ledger.enter_not_read)):
        for file, sha256 in files:
            if len(ledger.files) >= ROUND_FILES:
                ledgers.write(ledger)
                ledger = Ledger()
            enter(ledger, NewFile(file, sha256))
    return ledger


def _plan_text(work: Work, moved: Mapping[str, str]) -> str:
    parts = [f"{work.seen} files", f"{work.to_read} to read"]
    if work.gone_places:
        parts.append(f"{len(work.gone_places)} removed or renamed")
    parts += [f"recording moved from {old}" for old in sorted(moved)]
    return ", ".join(parts)


def _rename_recordings(warehouse: Warehouse, cluster: str, moved: Mapping[str, str]) -> None:
    """Write the new folder's name into the rows of moved recordings."""
    replaced = RowFilter(cluster, wanted=pl.col("recording").is_in(sorted({*moved, *moved.values()})))
    for table in RECORDING_TABLES:
        if warehouse.exists(table):
            rows = warehouse.read(table, replaced).with_columns(pl.col("recording").replace(moved))
            warehouse.replace_rows(table, rows.collect(), replaced)


def known_files(cluster: str, recordings: Iterable[str]) -> CachedQuery:
    """Return rows of bronze.source_file for planning: files of these recordings, and all JSONL files."""
    mine = sorted(recordings)

    def read(warehouse: Warehouse) -> pl.DataFrame:
        needed = pl.col("recording").is_in(mine) | pl.col("kind").is_in(list(RECORD_TABLES))
        rows = warehouse.read(FILE_TABLE, RowFilter(cluster)).filter(needed).select(LEDGER.names())
        return rows.cast(LEDGER).collect(engine="streaming")

    return CachedQuery(f"files of {cluster} in {json.dumps(mine)}", read)


def refused_rows(cluster: str, recordings: Iterable[str]) -> CachedQuery:
    """Return the number of rows in these recordings, and of the refused ones."""
    mine = sorted(recordings)

    def read(warehouse: Warehouse) -> list[tuple[int, int]]:
        rows = warehouse.read(FILE_TABLE, RowFilter(cluster)).filter(pl.col("recording").is_in(mine))
        counted = rows.select(pl.col("rows_in", "rows_quarantined").sum()).collect(engine="streaming").row(0)
        return [(int(counted[0]), int(counted[1]))]

    return CachedQuery(f"refused rows of {cluster} in {json.dumps(mine)}", read)


def _write_brokers(run: Run, files: RecordedFiles, gone: set[Place]) -> None:
    """Write silver.broker for each recording with a changed or removed brokers.json or another first instant."""
    of_brokers = {k.recording: k for k in run.known if k.kind == "brokers"}
    rows: list[tuple[object, ...]] = []
    written: set[str] = {k.recording for k in of_brokers.values() if k.place in gone}
    for file, sha256 in files:
        if file.kind != "brokers" or not sha256:
            continue
        old = of_brokers.get(file.recording)
        since = run.ledgers.began(
            file.recording, first_instant(run.firsts, file.recording, {*gone, *run.ledger.files}), run.ledger
        )
        if old is not None and old.sha256 == sha256 and since == first_instant(run.firsts, file.recording):
            continue
        # Recordings may share one description: each keeps its own row.
        rows += read_brokers(NewFile(file, sha256), run.cluster, since, run.ledger)
        written.add(file.recording)
    if written:
        replaced = RowFilter(run.cluster, wanted=pl.col("recording").is_in(sorted(written)))
        run.warehouse.replace_rows(BROKER_TABLE, rows, replaced if written & of_brokers.keys() else None)


def _check_refused(warehouse: Warehouse, cluster: str, recordings: list[str], most: float) -> None:
    """Raise InputError if more than the share ``most`` of the recordings' rows was refused."""
    ((rows, refused),) = ResultCache(warehouse).rows(refused_rows(cluster, recordings))
    if refused > most * rows:
        raise InputError(
            f"{refused:,} of {rows:,} rows of cluster {cluster} were refused, more than the share {most} "
            "([ingest] refused_share); the other rows are in the tables, and bronze.quarantine has the reasons"
        )
