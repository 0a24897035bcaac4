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
from mqreplay.ingest.manifest import KnownFile, Plan, plan
from mqreplay.ingest.pace import Pace
from mqreplay.ingest.recording import RECORD_TABLES
from mqreplay.ingest.to_silver import Run, ingest_records, ingest_snapshots
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
    scopes = [f"ingest {cluster} {recording}" for recording in recordings]
    unfinished = Unfinished(warehouse.root)
    afresh = not unfinished.begin(scopes)
    pace = Pace(lambda text: progress(f"{cluster}: {text}"), sum(n.file.bytes for n in work.new))
    with ThreadPoolExecutor(WRITERS) as pool, pace:
        run = Run(warehouse, cluster, known, ledger, pace, afresh)
        snapshots = pool.submit(ingest_snapshots, run, work)
        ingest_records(run, work, pool)
        snapshots.result()
    _write_brokers(warehouse, cluster, work, ledger, afresh)
    ledger.settle()
    _write_ledger(warehouse, cluster, ledger, set(recordings) - {k.recording for k in known} if afresh else set())
    unfinished.end(scopes)
    rows = sum(e.rows_out for e in ledger.files.values())
    return Ingested(cluster, recordings, work.seen, len(work.new), rows, len(ledger.refused))


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


def _write_brokers(warehouse: Warehouse, cluster: str, work: Plan, ledger: Ledger, afresh: bool) -> None:
    new = work.of("brokers")
    if not new:
        return
    rows: list[tuple[object, ...]] = []
    for file in new:
        same = [e for (recording, _), e in ledger.files.items() if recording == file.file.recording]
        since = min((e.first_ts for e in same if e.first_ts is not None), default=None)
        rows += read_brokers(file, cluster, since, ledger)
    # Nights may share one description: each keeps its own row of it.
    where = f"cluster = {quoted(cluster)} AND {among('recording', [n.file.recording for n in new])}"
    warehouse.put("silver.broker", rows, where, nothing_there=afresh and not any(n.replaces for n in new))


def _write_ledger(warehouse: Warehouse, cluster: str, ledger: Ledger, unknown: set[str]) -> None:
    """The ledger goes last: a run that dies before it is done again whole, and replaces what it had written.

    Of ``unknown`` recordings it holds nothing.
    """
    places = sorted(ledger.files)
    recordings = sorted({recording for recording, _ in places})
    where = f"cluster = {quoted(cluster)} AND {among('recording', recordings)}"
    made = {"bronze.quarantine": ledger.quarantine_rows(cluster), "bronze.source_file": ledger.file_rows(cluster)}
    if unknown.issuperset(recordings):
        for name, rows in made.items():
            warehouse.put(name, rows, where, nothing_there=True)
        return
    changed = F.broadcast(warehouse.spark.createDataFrame(places, "recording STRING, path STRING"))
    for name, rows in made.items():
        frame = warehouse.frame(name, rows)
        others = warehouse.read(name).where(where).join(changed, ["recording", "path"], "left_anti")
        warehouse.replace(name, frame.unionByName(others.select(*frame.columns)), where)
