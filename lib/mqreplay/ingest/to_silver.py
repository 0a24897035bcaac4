"""Decoded rows into their silver tables, and the counts into the ledger."""

from __future__ import annotations

import datetime as dt
from typing import Any

from pyspark.sql import DataFrame, Observation, Row
from pyspark.sql import functions as F

from mqreplay.ingest.ledger import Ledger, QuarantineEntry
from mqreplay.ingest.manifest import KnownFile, NewFile, Plan
from mqreplay.ingest.recording import RECORD_TABLES, RecordedFile, classify
from mqreplay.ingest.records import decode_files, first_of_each, time_column
from mqreplay.ingest.snapshots import GROUP, STATE, TOPIC, configs, last_configs, last_offsets, read_snapshots
from mqreplay.lake.sql import among, quoted
from mqreplay.lake.warehouse import Warehouse

OBSERVED = 8  # files of a kind whose counts are taken while their rows are written; of more, afterwards
Counts = dict[str, tuple[int, dt.datetime | None, dt.datetime | None]]
SNAPSHOTS = ("consumer_offset", "client_offsets", "topics", "subscription_groups")


def ingest_kind(
    warehouse: Warehouse, cluster: str, kind: str, new: list[NewFile], ledger: Ledger, afresh: bool
) -> None:
    """All new files of one JSONL kind into its table. ``afresh``: no run died before that may have left some there."""
    name = RECORD_TABLES[kind]
    contract = warehouse.contracts[name]
    when = F.col(time_column(contract))
    digests = sorted({d for n in new for d in (n.digest, n.replaces) if d})
    decoded = decode_files(warehouse.spark, kind, [(n.file, n.digest) for n in new], contract).persist()
    rows = first_of_each(decoded).withColumn("cluster", F.lit(cluster)).withColumn("day", F.to_date(when))
    if warehouse.exists(name):
        kept = warehouse.read(name).where((F.col("cluster") == cluster) & ~F.col("source_digest").isin(digests))
        rows = rows.join(kept.select("record_id").distinct(), "record_id", "left_anti")
    counted = Observation()
    where = f"cluster = {quoted(cluster)} AND {among('source_digest', digests)}"
    few = len(new) <= OBSERVED
    warehouse.replace(
        name,
        rows.observe(counted, *_observed(new, when)) if few else rows,
        where,
        nothing_there=afresh and not any(n.replaces for n in new),
    )
    counts = _of_observed(new, counted.get) if few else _of_written(warehouse.read(name).where(where), when)
    _enter_records(new, decoded, counts, ledger)
    decoded.unpersist()


def _observed(new: list[NewFile], when: F.Column) -> list[F.Column]:
    """For each file the rows that it gave, the first instant and the last: counted while the rows are written."""
    made = [F.count(F.lit(1)).alias("rows")]
    for i, n in enumerate(new):
        mine = F.col("source_digest") == n.digest
        made += [
            F.count_if(mine).alias(f"rows_{i}"),
            F.min(F.when(mine, when)).alias(f"first_{i}"),
            F.max(F.when(mine, when)).alias(f"last_{i}"),
        ]
    return made


def _of_observed(new: list[NewFile], counted: dict[str, Any]) -> Counts:
    return {n.digest: (counted[f"rows_{i}"], counted[f"first_{i}"], counted[f"last_{i}"]) for i, n in enumerate(new)}


def _of_written(rows: DataFrame, when: F.Column) -> Counts:
    """The same, of many files: each would cost an aggregate of its own, so what was written is counted."""
    counted = rows.groupBy("source_digest").agg(F.count(F.lit(1)).alias("rows"), F.min(when), F.max(when))
    return {row[0]: (row[1], row[2], row[3]) for row in counted.collect()}


def _enter_records(new: list[NewFile], decoded: DataFrame, counts: Counts, ledger: Ledger) -> None:
    by_digest = {}
    for n in new:
        entry = by_digest[n.digest] = ledger.enter(n)
        entry.rows_out, entry.first_ts, entry.last_ts = counts.get(n.digest, (0, None, None))
    kind = new[0].file.kind
    beside = decoded.where(F.col("out") != "row").select(
        "out", "recording", "path", "source_digest", "line_number", "code", "reason", "advice", "content", "lines"
    )
    for row in beside.collect():
        entry = by_digest[row.source_digest]
        if row.out == "file":
            entry.rows_in = row.lines
        else:
            entry.rows_quarantined += 1
            place = (row.recording, row.path, kind, row.source_digest, row.line_number, "")
            content = None if row.content is None else bytes(row.content)
            ledger.refused.append(QuarantineEntry(*place, row.code, row.reason, row.advice, content))


def ingest_snapshots(
    warehouse: Warehouse, cluster: str, work: Plan, known: list[KnownFile], ledger: Ledger, afresh: bool
) -> None:
    """All new snapshots. A late one has its source read again from there on, so that every change is right."""
    new = work.of(*SNAPSHOTS)
    if not new:
        return
    since = {n.file.source_name: n.file.ts_ms for n in sorted(new, key=lambda n: -(n.file.ts_ms or 0))}
    again = _read_again(known, since, {(n.file.recording, n.file.path) for n in new})
    files = [n.file for n in new] + [a.file for a in again]
    predicate = _since(cluster, since)
    rows = read_snapshots(warehouse.spark, files, _state(warehouse, cluster, since)).persist()
    common = [F.lit(cluster).alias("cluster"), F.to_date("ts").alias("day")]
    digest = F.col("digest").alias("source_digest")
    changes = rows.where("out = 'change'").select(
        *common,
        "source_name",
        "broker_name",
        "broker_id",
        "client_id",
        "topic",
        "consumer_group",
        "queue_id",
        "previous_offset",
        "new_offset",
        "from_ts",
        F.col("ts").alias("to_ts"),
        digest,
    )
    snapshots = rows.where("out = 'snapshot'").select(
        *common,
        "source_name",
        "broker_name",
        "broker_id",
        "client_id",
        "ts",
        "file_name",
        "entries",
        "changed",
        F.col("counter").alias("data_version_counter"),
        digest,
    )
    none = afresh and not again and not any(n.replaces for n in new)
    warehouse.replace("silver.offset_change", changes, predicate.replace("@ts", "to_ts"), nothing_there=none)
    warehouse.replace("silver.snapshot", snapshots, predicate.replace("@ts", "ts"), nothing_there=none)
    for name, kind, key, struct in (
        ("silver.topic_config", "topics", "topic", TOPIC),
        ("silver.subscription_group", "subscription_groups", "consumer_group", GROUP),
    ):
        frame = configs(rows, kind, key, struct).withColumns({"cluster": F.lit(cluster), "day": F.to_date("ts")})
        warehouse.replace(name, frame, predicate.replace("@ts", "ts"), nothing_there=none)
    _count_snapshots({(n.file.recording, n.file.path): n for n in [*new, *again]}, rows, ledger)
    rows.unpersist()


def _count_snapshots(files: dict[tuple[str, str], NewFile], rows: DataFrame, ledger: Ledger) -> None:
    for row in rows.where("out = 'file'").collect():
        entry = ledger.enter(files[(row.recording, row.path)])
        entry.status, entry.reason = row.status, row.reason
        entry.rows_in, entry.rows_out, entry.rows_quarantined = (
            row.rows_in,
            row.rows_out,
            row.rows_quarantined,
        )
        entry.first_ts = entry.last_ts = row.ts
    for row in rows.where("out = 'quarantine'").collect():
        ledger.refused.append(_quarantined(row))


def _quarantined(row: Row) -> QuarantineEntry:
    place = (row.recording, row.path, row.kind, row.digest, 0, row.detail_key)
    return QuarantineEntry(*place, row.code, row.reason, row.advice, bytes(row.content))


def _read_again(
    known: list[KnownFile], since: dict[str | None, int | None], new: set[tuple[str, str]]
) -> list[NewFile]:
    again = []
    for k in known:
        kind, source, ts = classify(k.path)
        late = kind in SNAPSHOTS and source in since and ts is not None and ts >= (since[source] or 0)
        if late and (k.recording, k.path) not in new:
            again.append(NewFile(RecordedFile(k.recording, k.path, kind, 0, source, ts), k.sha256))
    return again


def _state(warehouse: Warehouse, cluster: str, since: dict[str | None, int | None]) -> DataFrame:
    """What was known of each source before its first new snapshot; shape STATE."""
    spark = warehouse.spark
    if not warehouse.exists("silver.snapshot"):
        return spark.createDataFrame([], STATE)
    starts = F.broadcast(spark.createDataFrame(list(since.items()), "source_name STRING, since_ms BIGINT"))

    def before(name: str, ts: str) -> DataFrame:
        table = warehouse.read(name).where(F.col("cluster") == cluster).join(starts, "source_name")
        return table.where(F.unix_millis(ts) < F.col("since_ms")).drop("since_ms")

    return (
        last_offsets(before("silver.offset_change", "to_ts"), before("silver.snapshot", "ts"))
        .unionByName(last_configs(before("silver.topic_config", "ts"), "topics", "topic", TOPIC))
        .unionByName(
            last_configs(before("silver.subscription_group", "ts"), "subscription_groups", "consumer_group", GROUP)
        )
    )


def _since(cluster: str, since: dict[str | None, int | None]) -> str:
    """Predicate, with @ts for the time column, of all rows from each source's first new snapshot on."""
    each = [f"(source_name = {quoted(str(s))} AND @ts >= timestamp_millis({ms}))" for s, ms in sorted(since.items())]  # type: ignore[type-var]
    return f"cluster = {quoted(cluster)} AND ({' OR '.join(each)})"
