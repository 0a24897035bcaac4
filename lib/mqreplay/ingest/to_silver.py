"""Decoded lines into their silver tables, and the counts into the ledger."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field

from pyspark.sql import Column, DataFrame
from pyspark.sql import Row as SparkRow
from pyspark.sql import functions as F

from mqreplay.errors import ConservationError
from mqreplay.ingest.copies import Reach, copies, shared_stretches, within
from mqreplay.ingest.ledger import Ledger, QuarantineEntry
from mqreplay.ingest.ledgers import Ledgers
from mqreplay.ingest.manifest import KnownFile, NewFile, Place, Plan
from mqreplay.ingest.pace import Pace
from mqreplay.ingest.recording import RECORD_TABLES
from mqreplay.ingest.records import decode_files, time_column
from mqreplay.ingest.snapshot_rows import instant
from mqreplay.ingest.told import FileTold, told_by
from mqreplay.lake.journal import Journal
from mqreplay.lake.landing import Landing
from mqreplay.lake.sql import among, quoted
from mqreplay.lake.warehouse import Warehouse
from mqreplay.settings import IngestSettings


@dataclass(frozen=True)
class Run:
    """One run for one cluster: where rows go, what was known before it, and what is told of it.

    ``read_again`` are places whose files were read though their content was known.
    """

    warehouse: Warehouse
    journal: Journal
    cluster: str
    settings: IngestSettings
    known: list[KnownFile]
    ledger: Ledger
    ledgers: Ledgers
    pace: Pace
    read_again: set[Place] = field(default_factory=set)


def ingest_records(run: Run, work: Plan, pool: Executor) -> None:
    """All new files of JSONL kinds, each kind into its table; one job decodes them all, for a job costs a moment."""
    new = {kind: files for kind in RECORD_TABLES if (files := work.of(kind)) or work.gone.get(kind)}
    if not new:
        return
    told = told_by(run.warehouse.spark)
    sizes = {(kind, n.digest): n.file.bytes for kind, files in new.items() for n in files}
    run.pace.reading(sum(sizes.values())).watch(told, sizes)
    list(pool.map(run.warehouse.ensure, filter(run.warehouse.exists, [RECORD_TABLES[kind] for kind in new])))
    landings = {kind: _landing(run, RECORD_TABLES[kind]) for kind in new}
    given = {kind: [(n.file, n.digest) for n in files] for kind, files in new.items() if files}
    spark, limits = run.warehouse.spark, run.settings
    landed = decode_files(spark, given, landings, told, limits=limits).collect() if given else []

    def take(kind: str) -> None:
        rows = [row for row in landed if row.kind == kind]
        files = {n.digest: told.value[kind, n.digest] for n in new[kind]}
        _take(run, kind, work, rows, files)

    list(pool.map(take, new))


def _landing(run: Run, name: str) -> Landing:
    return run.warehouse.landing(name, {"cluster": run.cluster}, time_column(run.warehouse.contracts[name]))


def _take(run: Run, kind: str, work: Plan, landed: list[SparkRow], files: dict[str, FileTold]) -> None:
    """Commit the rows of one kind, without those that another file has, and without those of files that are gone."""
    if sum(row.rows for row in landed) != sum(file.rows for file in files.values()):
        raise ConservationError(f"{kind}: rows were lost between reading and writing; please report this as a bug")
    name, gone = RECORD_TABLES[kind], work.gone.get(kind, set())
    known = {k.digest: k for k in run.known if k.kind == kind and k.status == "read" and k.digest not in gone}
    left = _take_without_copies(run, name, landed, gone, known, files)
    if left is None:
        where = _of_digests(run, sorted({*gone, *files}))
        run.warehouse.take(name, landed, where, nothing_there=not gone)
    _enter_records(run, kind, work, known, files, left or {})


def _of_digests(run: Run, digests: Sequence[str]) -> str:
    return f"cluster = {quoted(run.cluster)} AND {among('source_digest', digests)}"


def _enter_records(
    run: Run, kind: str, work: Plan, known: dict[str, KnownFile], files: dict[str, FileTold], left: dict[str, _Left]
) -> None:
    for new in work.of(kind):
        _enter(new, files[new.digest], run.ledger)
    names = {old.place: new for new, old in work.renamed}
    for digest in left.keys() & known.keys():
        old = known[digest]
        entry = run.ledger.enter_known(names.get(old.place, NewFile(old.file, old.sha256)), old)
        entry.rows_out = left[digest].rows
        entry.first_ts, entry.last_ts = left[digest].first_ts, left[digest].last_ts


@dataclass(frozen=True)
class _Left:
    """What is in the table of a file: rows, and the first and last instant."""

    rows: int
    first_us: int | None
    last_us: int | None

    @property
    def first_ts(self) -> dt.datetime | None:
        return None if self.first_us is None else instant(self.first_us)

    @property
    def last_ts(self) -> dt.datetime | None:
        return None if self.last_us is None else instant(self.last_us)


def _take_without_copies(
    run: Run,
    name: str,
    landed: list[SparkRow],
    gone: set[str],
    known: dict[str, KnownFile],
    files: dict[str, FileTold],
) -> dict[str, _Left] | None:
    """Commit the landed rows where some stand in another file, too, in one version without them.

    Gives what is left of each file that lost rows; None, and commits nothing, where no row stands in two files.
    """
    warehouse = run.warehouse
    reaches = [Reach(k.first_ts, k.last_ts, new=False) for k in known.values() if k.first_ts and k.last_ts]
    reaches += [
        Reach(instant(f.first_us), instant(f.last_us), new=True)
        for f in files.values()
        if f.first_us is not None and f.last_us is not None
    ]
    stretches = shared_stretches(reaches)
    if not stretches:
        return None
    there = warehouse.read(name).where((F.col("cluster") == run.cluster) & ~F.col("source_digest").isin(*gone))
    rows = there.unionByName(warehouse.landed_rows(name, landed))
    when = F.col(time_column(warehouse.contracts[name]))
    # Files of the table are skipped by day, and not by instant.
    days = F.col("day").between(stretches[0][0].date(), stretches[-1][1].date())
    found = copies(rows.where(days & within(stretches, when))).localCheckpoint()
    lost = {row.source_digest: row["count"] for row in found.groupBy("source_digest").count().collect()}
    if not lost:
        return None
    if not warehouse.exists(name):
        warehouse.take(name, [], "", nothing_there=True)  # makes it; `replace` would clear the folder of landed files
    before = _count(rows, lost, when)
    written = {*lost, *files}
    kept = rows.where(F.col("source_digest").isin(*written)).join(found, ["record_id", "source_digest"], "left_anti")
    warehouse.replace(name, kept, _of_digests(run, sorted({*written, *gone})))
    after = _count(warehouse.read(name).where(F.col("cluster") == run.cluster), lost, when)
    for digest, count in lost.items():
        if after[digest].rows != before[digest].rows - count:
            raise ConservationError(f"{name}: more rows of {digest} left than copies; please report this as a bug")
        if digest in files:
            left = after[digest]
            files[digest].rows, files[digest].first_us, files[digest].last_us = left.rows, left.first_us, left.last_us
    return after


def _count(rows: DataFrame, digests: Collection[str], when: Column) -> dict[str, _Left]:
    counted = rows.where(F.col("source_digest").isin(*digests)).groupBy("source_digest")
    ends = counted.agg(F.count(F.lit(1)), F.unix_micros(F.min(when)), F.unix_micros(F.max(when))).collect()
    return dict.fromkeys(digests, _Left(0, None, None)) | {row[0]: _Left(*row[1:]) for row in ends}


def _enter(new: NewFile, found: FileTold, ledger: Ledger) -> None:
    entry = ledger.enter(new)
    entry.rows_in, entry.rows_out, entry.rows_quarantined = found.lines, found.rows, found.quarantined
    entry.reason = found.reason
    entry.first_ts = None if found.first_us is None else instant(found.first_us)
    entry.last_ts = None if found.last_us is None else instant(found.last_us)
    file = new.file
    for line in found.refused:
        place = (file.recording, file.path, file.kind, new.digest, line.line_number, "")
        ledger.refused.append(QuarantineEntry(*place, line.code, line.reason, line.advice, line.content))
