"""Snapshots into their silver tables, and the counts into the ledger: sources of so many files at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import Row as SparkRow
from pyspark.sql import functions as F

from mqreplay.errors import InputError
from mqreplay.ingest.late import Stretch, orphan_keys, read_again, replaced, stretches, too_late
from mqreplay.ingest.ledger import Ledger, QuarantineEntry
from mqreplay.ingest.ledgers import OF_RECORDING
from mqreplay.ingest.manifest import NewFile, Place, Plan
from mqreplay.ingest.pace import Reading
from mqreplay.ingest.pieces import Piece, joined
from mqreplay.ingest.recording import SNAPSHOTS, RecordedFile
from mqreplay.ingest.snapshot_rows import beside_rows, instant
from mqreplay.ingest.snapshots import (
    GROUP,
    TOPIC,
    PieceKey,
    cut,
    last_configs,
    last_offsets,
    piece_bytes,
    read_snapshots,
    reported_keys,
    uncut,
)
from mqreplay.ingest.to_silver import Run
from mqreplay.ingest.told import told_by
from mqreplay.lake.landing import Landing
from mqreplay.lake.warehouse import Warehouse
from mqreplay.standing import TABLE as STANDING
from mqreplay.standing import Standing

Row = dict[str, Any]
COST = 1 / 14  # of a byte's reading, where one of gzipped lines costs 1: 7.8 and 110 ms a MB (docs/performance.md)
CHANGES = "silver.offset_change"
TABLES = (CHANGES, "silver.snapshot", "silver.topic_config", "silver.subscription_group")
ROUND_FILES = 50_000  # snapshots, before what was told of them is written: some 150 MB of the driver's memory


def ingest_snapshots(run: Run, work: Plan) -> None:
    """All new snapshots. Behind one that is late, changed or gone, its source is read again until that has no effect.

    In rounds of so many files, each source in one: what is told of a file lies in the driver's memory. A round that is
    written stays, whatever becomes of the run.
    """
    new, gone = work.of(*SNAPSHOTS), [k.file for k in work.gone_snapshots]
    changed = [*(n.file for n in new), *gone]
    if not changed:
        return
    found = stretches(run.warehouse, run.cluster, changed)
    again = _under_new_names(read_again(run.warehouse, run.cluster, found, _places(changed)), work)
    if late := too_late(changed, again):
        _leave_out(run, work, late)
        return ingest_snapshots(run, work)
    run.read_again.update(n.place for n in again)
    reading = run.pace.reading(sum(n.file.bytes for n in new), COST)
    state = _state(run.warehouse, run.cluster, found)
    none = not again and not gone
    rounds = _rounds([*new, *again])
    without_files = found.keys() - {str(n.file.source_name) for n in (*new, *again)}
    if without_files:
        _clear(run, {source: found[source] for source in without_files})
    if len(rounds) > 1 and state is not None:
        state = state.localCheckpoint()
    for number, some in enumerate(rounds, 1):
        is_last = number == len(rounds)
        ledger = run.ledger if is_last else Ledger()
        _read_round(run, _Round(some, found, state, none), ledger, reading)
        if not is_last:
            run.ledgers.write(ledger)
            run.journal.savepoint([*TABLES, STANDING, *OF_RECORDING])


def _places(files: Sequence[RecordedFile]) -> set[Place]:
    return {(file.recording, file.path) for file in files}


def _under_new_names(again: list[NewFile], work: Plan) -> list[NewFile]:
    """The files, those that were renamed where they lie now."""
    names = {old.place: new for new, old in work.renamed}
    return [names.get(n.place, n) for n in again]


def _leave_out(run: Run, work: Plan, late: set[Place]) -> None:
    """Leave out of the plan what cannot be read, or unmade, for want of files after it that are gone.

    Raises InputError where a file was changed: what is in the tables of it can neither stay nor go.
    """
    for known in work.gone_snapshots:
        if known.place in late and any(n.place == known.place for n in work.new):
            raise InputError(
                f"{known.recording}/{known.path} has changed since it was read, and snapshots after it, which are "
                "needed again, are gone; put them back, and run again"
            )
    run.ledger.enter_late([n for n in work.new if n.place in late])
    work.new = [n for n in work.new if n.place not in late]
    kept = {k.place for k in work.gone_snapshots if k.place in late}
    work.gone_snapshots = [k for k in work.gone_snapshots if k.place not in kept]
    work.gone_places = [k for k in work.gone_places if k.place not in kept]


def _clear(run: Run, found: dict[str, Stretch]) -> None:
    """Remove the rows of stretches of which no file is left."""
    for name in TABLES:
        if run.warehouse.exists(name):
            where = replaced(run.cluster, found, "to_ts" if name == CHANGES else "ts")
            run.warehouse.replace(name, run.warehouse.frame(name, []), where)


@dataclass(frozen=True)
class _Round:
    """Snapshots of some sources; of all sources the stretches and the state (shape STATE) before them.

    ``nothing_there``: the tables hold no rows of these stretches.
    """

    files: list[NewFile]
    found: dict[str, Stretch]
    state: DataFrame | None
    nothing_there: bool

    def predicate(self, cluster: str, ts: str) -> str:
        """Of the rows that these files' rows replace."""
        mine = {str(n.file.source_name): self.found[str(n.file.source_name)] for n in self.files}
        return replaced(cluster, mine, ts)


def _rounds(files: list[NewFile]) -> list[list[NewFile]]:
    rounds: list[list[NewFile]] = []
    for _, some in groupby(sorted(files, key=lambda n: str(n.file.source_name)), key=lambda n: n.file.source_name):
        if not rounds or len(rounds[-1]) >= ROUND_FILES:
            rounds.append([])
        rounds[-1] += some
    return rounds


def _read_round(run: Run, one: _Round, ledger: Ledger, reading: Reading) -> None:
    warehouse, cluster = run.warehouse, run.cluster
    told = _write_changes(run, one, reading)
    beside = [row for source in told for row in joined(source)]
    for name, rows in beside_rows(beside, cluster).items():
        columns = [c.name for c in warehouse.contracts[name].columns]
        listed = [tuple(row.get(c) for c in columns) for row in rows]
        warehouse.put(name, listed, one.predicate(cluster, "ts"), nothing_there=one.nothing_there)
    _enter_snapshots({n.file.full_path: n for n in one.files}, beside, ledger)


def _write_changes(run: Run, one: _Round, reading: Reading) -> list[list[list[Row]]]:
    """silver.offset_change; gives what each source's pieces told beside, in their order."""
    name, files = CHANGES, [n.file for n in one.files]
    # Not by the cores that there are: those of a cluster come one by one as it starts.
    cuts = cut(files, piece_bytes(files, int(run.warehouse.spark.conf.get("spark.sql.shuffle.partitions") or 1)))
    landing = run.warehouse.landing(name, {"cluster": run.cluster}, "to_ts")
    said, landed = _read_pieces(run, reading, cuts, one.state, landing)
    if lost := {source for (source, _), rows in said.items() if rows is None}:
        # A piece found no whole file just before it: its source is read in one, and what was read is passed over.
        said, landed = _read_pieces(run, reading, uncut(cuts, lost), one.state, landing)
    where = one.predicate(run.cluster, "to_ts")
    run.warehouse.take(name, landed, where, nothing_there=one.nothing_there)
    return [[said[key] for key in sorted(keys)] for _, keys in groupby(sorted(said), key=lambda key: key[0])]


def _read_pieces(
    run: Run, reading: Reading, cuts: dict[PieceKey, Piece], state: DataFrame | None, landing: Landing
) -> tuple[dict[PieceKey, list[Row] | None], list[SparkRow]]:
    """What the pieces told beside, by their keys, and the files that they wrote."""
    said = told_by(run.warehouse.spark)
    reading.watch(said, {key: piece.bytes for key, piece in cuts.items()})
    landed = read_snapshots(run.warehouse.spark, cuts, state, landing, said, run.settings).collect()
    told = said.value
    said.value = dict.fromkeys(told)  # PySpark keeps accumulators for good, and these hold rows of every file
    return told, landed


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
    for after, until in {(stretch.first_day, stretch.last_day) for stretch in found.values()}:
        standing.forget(after, until)
    standing.keep(first)

    def before(rows: DataFrame, ts: str) -> DataFrame:
        return rows.join(starts, "source_name").where(F.unix_millis(ts) < F.col("since_ms")).drop("since_ms")

    def known(name: str) -> DataFrame:
        return before(warehouse.read(name).where(F.col("cluster") == cluster), "ts")

    keys = orphan_keys(warehouse, cluster).join(starts, "source_name").where("ts_ms < since_ms").drop("since_ms")
    return (
        last_offsets(before(standing.from_day(first), "to_ts"), known("silver.snapshot"))
        .unionByName(last_configs(known("silver.topic_config"), "topics", "topic", TOPIC))
        .unionByName(last_configs(known("silver.subscription_group"), "subscription_groups", "consumer_group", GROUP))
        .unionByName(reported_keys(keys))
    )
