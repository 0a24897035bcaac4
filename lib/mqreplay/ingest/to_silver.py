"""Decoded rows into their silver tables, and the counts into the ledger."""

from __future__ import annotations

import datetime as dt
from concurrent.futures import Executor
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import Row as SparkRow
from pyspark.sql import functions as F

from mqreplay.ingest.copies import Reach, copies, shared_stretches, within
from mqreplay.ingest.late import Stretch, read_again, replaced, stretches, too_late
from mqreplay.ingest.ledger import Ledger, QuarantineEntry
from mqreplay.ingest.manifest import KnownFile, NewFile, Plan
from mqreplay.ingest.pace import Pace
from mqreplay.ingest.pieces import Piece, joined
from mqreplay.ingest.recording import RECORD_TABLES, SNAPSHOTS
from mqreplay.ingest.records import decode_files, time_column
from mqreplay.ingest.snapshot_rows import beside_rows, instant
from mqreplay.ingest.snapshots import (
    GROUP,
    TOPIC,
    PieceKey,
    cut,
    last_configs,
    last_offsets,
    read_snapshots,
    uncut,
)
from mqreplay.ingest.told import FileTold, told_by
from mqreplay.lake.landing import Landing
from mqreplay.lake.sql import among, quoted
from mqreplay.lake.warehouse import Warehouse
from mqreplay.standing import Standing

Row = dict[str, Any]


@dataclass(frozen=True)
class Run:
    """One run for one cluster: where rows go, what was known before it, and what is told of it.

    ``afresh``: no run died before that may have left rows of these files.
    """

    warehouse: Warehouse
    cluster: str
    known: list[KnownFile]
    ledger: Ledger
    pace: Pace
    afresh: bool


def ingest_records(run: Run, work: Plan, pool: Executor) -> None:
    """All new files of JSONL kinds, each kind into its table; one job decodes them all, for a job costs a moment."""
    new = {kind: files for kind in RECORD_TABLES if (files := work.of(kind))}
    if not new:
        return
    said = told_by(run.warehouse.spark)
    run.pace.watch(said, {(kind, n.digest): n.file.bytes for kind, files in new.items() for n in files})
    list(pool.map(run.warehouse.ensure, [RECORD_TABLES[kind] for kind in new]))
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


def ingest_snapshots(run: Run, work: Plan) -> None:
    """All new snapshots. Behind a late one, its source is read again until that changes nothing any more."""
    warehouse, cluster = run.warehouse, run.cluster
    new = work.of(*SNAPSHOTS)
    if not new:
        return
    found = stretches(warehouse, cluster, new)
    again = read_again(warehouse, cluster, found, new)
    if late := too_late(new, again):
        run.ledger.enter_late(late)
        rest = [n for n in work.new if n not in late]
        return ingest_snapshots(run, replace(work, new=rest))
    files = [n.file for n in new] + [a.file for a in again]
    predicate = replaced(cluster, found)
    none = run.afresh and not again and not any(n.replaces for n in new)
    cuts = cut(files)
    told = _write_changes(run, cuts, _state(warehouse, cluster, found), predicate, nothing_there=none)
    beside = [row for source in told for row in joined(source)]
    for name, rows in beside_rows(beside, cluster).items():
        columns = [c.name for c in warehouse.contracts[name].columns]
        listed = [tuple(row.get(c) for c in columns) for row in rows]
        warehouse.put(name, listed, predicate.replace("@ts", "ts"), nothing_there=none)
    _enter_snapshots({n.file.full_path: n for n in [*new, *again]}, beside, run.ledger)


def _write_changes(
    run: Run, cuts: dict[PieceKey, Piece], state: DataFrame | None, predicate: str, *, nothing_there: bool
) -> list[list[list[Row]]]:
    """silver.offset_change; gives what each source's pieces told beside, in their order."""
    with run.warehouse.landing("silver.offset_change", {"cluster": run.cluster}, "to_ts") as landing:
        said, landed = _read_pieces(run, cuts, state, landing)
        if lost := {source for (source, _), rows in said.items() if rows is None}:
            # A piece found no whole file just before it: its source is read in one, and what was read is passed over.
            said, landed = _read_pieces(run, uncut(cuts, lost), state, landing)
        run.warehouse.take(
            "silver.offset_change", landed, predicate.replace("@ts", "to_ts"), nothing_there=nothing_there
        )
    return [[said[key] for key in sorted(keys)] for _, keys in groupby(sorted(said), key=lambda key: key[0])]


def _read_pieces(
    run: Run, cuts: dict[PieceKey, Piece], state: DataFrame | None, landing: Landing
) -> tuple[dict[PieceKey, list[Row] | None], list[SparkRow]]:
    """What the pieces told beside, by their keys, and the files that they wrote."""
    said = told_by(run.warehouse.spark)
    run.pace.watch(said, {key: piece.bytes for key, piece in cuts.items()})
    landed = read_snapshots(run.warehouse.spark, cuts, state, landing, said).collect()
    return said.value, landed


def _enter_snapshots(files: dict[str, NewFile], beside: list[Row], ledger: Ledger) -> None:
    for row in beside:
        if row["out"] not in ("file", "quarantine"):
            continue
        new = files[row["path"]]
        if row["out"] == "file":
            entry = ledger.enter(new)
            entry.status, entry.reason = row["status"], row["reason"]
            entry.rows_in, entry.rows_out, entry.rows_quarantined = (
                row["rows_in"],
                row["rows_out"],
                row["rows_quarantined"],
            )
            entry.first_ts = entry.last_ts = None if row["ts"] is None else instant(row["ts"] * 1000)
        else:
            place = (new.file.recording, new.file.path, row["kind"], row["digest"], 0, row["detail_key"])
            ledger.refused.append(QuarantineEntry(*place, row["code"], row["reason"], row["advice"], row["content"]))


def _state(warehouse: Warehouse, cluster: str, found: dict[str, Stretch]) -> DataFrame | None:
    """What was known of each source before its first new snapshot; shape STATE."""
    spark = warehouse.spark
    if not warehouse.exists("silver.snapshot"):
        return None
    since = [(source, stretch.since_ms) for source, stretch in found.items()]
    starts = F.broadcast(spark.createDataFrame(since, "source_name STRING, since_ms BIGINT"))
    first = min(stretch.first_day for stretch in found.values())
    standing = Standing(warehouse, cluster)
    standing.forget(first, max(stretch.last_day for stretch in found.values()))
    standing.keep(first)

    def before(rows: DataFrame, ts: str) -> DataFrame:
        return rows.join(starts, "source_name").where(F.unix_millis(ts) < F.col("since_ms")).drop("since_ms")

    def known(name: str) -> DataFrame:
        return before(warehouse.read(name).where(F.col("cluster") == cluster), "ts")

    return (
        last_offsets(before(standing.from_day(first), "to_ts"), known("silver.snapshot"))
        .unionByName(last_configs(known("silver.topic_config"), "topics", "topic", TOPIC))
        .unionByName(last_configs(known("silver.subscription_group"), "subscription_groups", "consumer_group", GROUP))
    )
