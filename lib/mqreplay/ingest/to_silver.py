"""Decoded lines into their silver tables, and the counts into the ledger."""

from __future__ import annotations

import datetime as dt
from concurrent.futures import Executor
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass

from pyspark.sql import Row as SparkRow
from pyspark.sql import functions as F

from mqreplay.ingest.copies import Reach, copies, shared_stretches, within
from mqreplay.ingest.ledger import Ledger, QuarantineEntry
from mqreplay.ingest.ledgers import Ledgers
from mqreplay.ingest.manifest import KnownFile, NewFile, Plan
from mqreplay.ingest.pace import Pace
from mqreplay.ingest.recording import RECORD_TABLES
from mqreplay.ingest.records import decode_files, time_column
from mqreplay.ingest.snapshot_rows import instant
from mqreplay.ingest.told import FileTold, told_by
from mqreplay.lake.landing import Landing
from mqreplay.lake.sql import among, quoted
from mqreplay.lake.warehouse import Warehouse


@dataclass(frozen=True)
class Run:
    """One run for one cluster: where rows go, what was known before it, and what is told of it.

    ``afresh``: no run died before that may have left rows of these files.
    """

    warehouse: Warehouse
    cluster: str
    known: list[KnownFile]
    ledger: Ledger
    ledgers: Ledgers
    pace: Pace
    afresh: bool


def ingest_records(run: Run, work: Plan, pool: Executor) -> None:
    """All new files of JSONL kinds, each kind into its table; one job decodes them all, for a job costs a moment."""
    new = {kind: files for kind in RECORD_TABLES if (files := work.of(kind))}
    if not new:
        return
    said = told_by(run.warehouse.spark)
    sizes = {(kind, n.digest): n.file.bytes for kind, files in new.items() for n in files}
    run.pace.reading(sum(sizes.values())).watch(said, sizes)
    list(pool.map(run.warehouse.ensure, filter(run.warehouse.exists, [RECORD_TABLES[kind] for kind in new])))
    with ExitStack() as held:
        landings = {kind: held.enter_context(_landing(run, RECORD_TABLES[kind])) for kind in new}
        given = {kind: [(n.file, n.digest) for n in files] for kind, files in new.items()}
        landed = decode_files(run.warehouse.spark, given, landings, said).collect()
        list(pool.map(lambda kind: _take(run, kind, new[kind], [row for row in landed if row.kind == kind]), new))
    told = {kind: {n.digest: said.value[kind, n.digest] for n in files} for kind, files in new.items()}
    list(pool.map(lambda kind: _enter_records(run, kind, new[kind], told[kind]), new))


def _landing(run: Run, name: str) -> AbstractContextManager[Landing]:
    return run.warehouse.landing(name, {"cluster": run.cluster}, time_column(run.warehouse.contracts[name]))


def _take(run: Run, kind: str, new: list[NewFile], landed: list[SparkRow]) -> None:
    digests = sorted({d for n in new for d in (n.digest, n.replaces) if d})
    where = f"cluster = {quoted(run.cluster)} AND {among('source_digest', digests)}"
    none = run.afresh and not any(n.replaces for n in new)
    run.warehouse.take(RECORD_TABLES[kind], landed, where, nothing_there=none)


def _enter_records(run: Run, kind: str, new: list[NewFile], files: dict[str, FileTold]) -> None:
    _drop_copies(run, RECORD_TABLES[kind], kind, new, files)
    for n in new:
        _enter(n, files[n.digest], run.ledger)


def _drop_copies(run: Run, name: str, kind: str, new: list[NewFile], files: dict[str, FileTold]) -> None:
    """Takes out of the table what stands in two files, and puts the counts right."""
    warehouse, cluster = run.warehouse, run.cluster
    fresh = {n.digest for n in new} | {n.replaces for n in new}
    reaches = [
        Reach(k.first_ts.replace(tzinfo=dt.UTC), k.last_ts.replace(tzinfo=dt.UTC), new=False)
        for k in run.known
        if k.kind == kind and k.digest not in fresh and k.first_ts is not None and k.last_ts is not None
    ]
    reaches += [
        Reach(instant(f.first_us), instant(f.last_us), new=True)
        for f in files.values()
        if f.first_us is not None and f.last_us is not None
    ]
    stretches = shared_stretches(reaches)
    if not stretches:
        return
    table = warehouse.read(name).where(F.col("cluster") == cluster)
    when = F.col(time_column(warehouse.contracts[name]))
    order = {n.digest: i for i, n in enumerate(new)}
    # Files of the table are skipped by day, and not by instant.
    days = F.col("day").between(stretches[0][0].date(), stretches[-1][1].date())
    found = copies(table.where(days & within(stretches, when)), order).localCheckpoint()
    having = sorted(row.source_digest for row in found.select("source_digest").distinct().collect())
    if not having:
        return
    kept = table.where(F.col("source_digest").isin(having)).join(found, ["record_id", "source_digest"], "left_anti")
    warehouse.replace(name, kept, f"cluster = {quoted(cluster)} AND {among('source_digest', having)}")
    counted = warehouse.read(name).where(F.col("source_digest").isin(having)).groupBy("source_digest")
    left = {
        row[0]: row[1:]
        for row in counted.agg(F.count(F.lit(1)), F.unix_micros(F.min(when)), F.unix_micros(F.max(when))).collect()
    }
    for digest in having:
        files[digest].rows, files[digest].first_us, files[digest].last_us = left.get(digest, (0, None, None))


def _enter(new: NewFile, found: FileTold, ledger: Ledger) -> None:
    entry = ledger.enter(new)
    entry.rows_in, entry.rows_out, entry.rows_quarantined = found.lines, found.rows, len(found.refused)
    entry.first_ts = None if found.first_us is None else instant(found.first_us)
    entry.last_ts = None if found.last_us is None else instant(found.last_us)
    file = new.file
    for line in found.refused:
        place = (file.recording, file.path, file.kind, new.digest, line.line_number, "")
        ledger.refused.append(QuarantineEntry(*place, line.code, line.reason, line.advice, line.content))
