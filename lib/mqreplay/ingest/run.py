"""A recording into silver, for one cluster: plan, read what is new, write each table once, and keep the ledger."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields

from pyspark.sql import Row
from pyspark.sql import functions as F

from mqreplay.ingest.brokers import cluster_of, read_brokers
from mqreplay.ingest.digests import Digested
from mqreplay.ingest.ledger import Ledger
from mqreplay.ingest.ledgers import Ledgers
from mqreplay.ingest.manifest import KnownFile, Plan, plan
from mqreplay.ingest.pace import Pace
from mqreplay.ingest.recording import RECORD_TABLES
from mqreplay.ingest.snapshot_rounds import ingest_snapshots
from mqreplay.ingest.to_silver import Run, ingest_records
from mqreplay.lake.remembered import Question, Remembered
from mqreplay.lake.sql import among, quoted
from mqreplay.lake.unfinished import Unfinished
from mqreplay.lake.warehouse import Warehouse

Progress = Callable[[str], None]
DEFAULT_CLUSTER = "DefaultCluster"  # RocketMQ's own default for brokerClusterName
WRITERS = 3  # tables written at once: planning and committing one leave the cores free for another


@dataclass(frozen=True)
class Ingested:
    """What a run did for one cluster. ``refused`` counts quarantine rows."""

    cluster: str
    recordings: list[str]
    files: int
    files_read: int
    rows_out: int
    refused: int


def ingest(
    warehouse: Warehouse, recordings: Mapping[str, list[Digested]], cluster: str | None, progress: Progress
) -> list[Ingested]:
    """Reads recordings into silver; what was read before is not read again. Recordings of one cluster go together.

    Raises ConservationError if rows got lost.
    """
    by_cluster: dict[str, list[Digested]] = {}
    for folder, files in recordings.items():
        name = cluster or cluster_of([file for file, _ in files])
        if name is None:
            name = DEFAULT_CLUSTER
            progress(f"{folder} does not name its cluster; taking {name} (--cluster sets another)")
        by_cluster.setdefault(name, []).extend(files)
    return [_ingest_cluster(warehouse, name, files, progress) for name, files in sorted(by_cluster.items())]


def _ingest_cluster(warehouse: Warehouse, cluster: str, files: list[Digested], progress: Progress) -> Ingested:
    recordings = sorted({file.recording for file, _ in files})
    known = [KnownFile(*row) for row in Remembered(warehouse).rows(known_files(cluster, recordings))]
    work = plan(files, known)
    if work.nothing_new:
        progress(f"{cluster}: {work.seen} files, all read before")
        return Ingested(cluster, recordings, work.seen, 0, 0, 0)
    progress(f"{cluster}: {work.seen} files, {len(work.new)} to read")
    ledger = Ledger()
    ledger.enter_unread(work.duplicates, work.not_read)
    ledger.enter_unreadable(work.unreadable)
    scopes = [f"ingest {cluster} {recording}" for recording in recordings]
    unfinished = Unfinished(warehouse.root)
    afresh = not unfinished.begin(scopes)
    pace = Pace(lambda text: progress(f"{cluster}: {text}"), sum(n.file.bytes for n in work.new))
    ledgers = Ledgers(warehouse, cluster, known, set(recordings) - {k.recording for k in known} if afresh else set())
    run = Run(warehouse, cluster, known, ledger, ledgers, pace, afresh)
    with ThreadPoolExecutor(WRITERS) as pool, pace:
        snapshots = pool.submit(ingest_snapshots, run, work)
        ingest_records(run, work, pool)
        snapshots.result()
    _write_brokers(run, work)
    ledgers.write(ledger)
    unfinished.end(scopes)
    return Ingested(cluster, recordings, work.seen, len(work.new), ledgers.rows_out, ledgers.refused)


def known_files(cluster: str, recordings: Iterable[str]) -> Question:
    """Of bronze.source_file what planning needs: these recordings' files, and all of lines, which may be repeated."""
    mine = sorted(recordings)

    def read(warehouse: Warehouse) -> list[Row]:
        if not warehouse.exists("bronze.source_file"):
            return []
        files = warehouse.read("bronze.source_file").where(F.col("cluster") == cluster)
        told = files.where(F.col("recording").isin(mine) | F.col("kind").isin(*RECORD_TABLES))
        return told.select(*[f.name for f in fields(KnownFile)]).collect()

    return Question(f"files of {cluster} in {json.dumps(mine)}", read)


def _write_brokers(run: Run, work: Plan) -> None:
    new = work.of("brokers")
    if not new:
        return
    rows: list[tuple[object, ...]] = []
    for file in new:
        since = run.ledgers.began(file.file.recording, run.ledger)
        rows += read_brokers(file, run.cluster, since, run.ledger)
    # Nights may share one description: each keeps its own row of it.
    where = f"cluster = {quoted(run.cluster)} AND {among('recording', [n.file.recording for n in new])}"
    run.warehouse.put("silver.broker", rows, where, nothing_there=run.afresh and not any(n.replaces for n in new))
