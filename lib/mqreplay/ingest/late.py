"""Snapshots that are read again because others came late, changed or were removed.

What changed from one snapshot to the next depends on the one before. A whole file that is no .bak is believed whatever
was known (diffs.py): rows after the first such file behind the last change stay as they are.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from mqreplay.ingest.manifest import IN_TABLES, LEDGER_COLUMNS, KnownFile, NewFile, Place, known_file
from mqreplay.ingest.recording import SNAPSHOTS, RecordedFile
from mqreplay.ingest.snapshot_rows import instant
from mqreplay.lake.sql import quoted
from mqreplay.lake.warehouse import Warehouse

LEDGER, QUARANTINE = "bronze.source_file", "bronze.quarantine"
NEVER = 2**63 - 1  # ms


@dataclass(frozen=True)
class Stretch:
    """What is read of a source: from when, and until when, in epoch ms; None: to its end."""

    since_ms: int
    until_ms: int | None = None

    @property
    def first_day(self) -> dt.date:
        """Of UTC."""
        return instant(self.since_ms * 1000).date()

    @property
    def last_day(self) -> dt.date:
        """Of UTC."""
        return dt.date.max if self.until_ms is None else instant(self.until_ms * 1000).date()


def stretches(warehouse: Warehouse, cluster: str, changed: Sequence[RecordedFile]) -> dict[str, Stretch]:
    """For each source of the ``changed`` snapshots what is to be read of it."""
    firsts = _firsts(changed)
    if not warehouse.exists(LEDGER):
        return {source: Stretch(since) for source, since in firsts.items()}
    last: dict[tuple[str, str], int] = {}
    for file in changed:
        family = str(file.source_name), file.file_name.removesuffix(".bak")
        last[family] = max(last.get(family, 0), file.ts_ms or 0)
    rows = [(*family, ms) for family, ms in last.items()]
    asked = warehouse.spark.createDataFrame(rows, "source STRING, file_name STRING, new_ms BIGINT")
    known = _snapshots(warehouse, cluster, min(last.values())).where("status = 'read'")
    whole = known.join(F.broadcast(asked), ["source", "file_name"]).where("ts_ms > new_ms")
    ends = {
        (row.source, row.file_name): row.ms
        for row in whole.groupBy("source", "file_name").agg(F.min("ts_ms").alias("ms")).collect()
    }
    # A key that names nothing is reported once, where it comes first: that may be anywhere from here on.
    until = dict.fromkeys(_with_orphan_keys(warehouse, cluster, firsts), NEVER)
    for family in last:
        until[family[0]] = max(until.get(family[0], 0), ends.get(family, NEVER))
    return {s: Stretch(since, None if until[s] == NEVER else until[s]) for s, since in firsts.items()}


def orphan_keys(warehouse: Warehouse, cluster: str) -> DataFrame:
    """Return source_name, topic (the key) and ts_ms of the keys of snapshots that name nothing."""
    rows = warehouse.read(QUARANTINE).where((F.col("cluster") == cluster) & (F.col("code") == "orphan_key"))
    source, ts = (F.get(F.split("path", "/"), F.lit(part)) for part in (1, 2))
    return rows.select(
        source.alias("source_name"), F.col("detail_key").alias("topic"), ts.cast("bigint").alias("ts_ms")
    )


def _with_orphan_keys(warehouse: Warehouse, cluster: str, sources: Iterable[str]) -> set[str]:
    found = orphan_keys(warehouse, cluster).select("source_name").distinct().collect()
    return {row.source_name for row in found} & set(sources)


def too_late(new: Sequence[RecordedFile], again: Iterable[NewFile]) -> set[Place]:
    """Places of those of ``new`` that lie before files that are needed again and are not there any more."""
    gone: dict[str | None, int] = {}
    for file in (a.file for a in again):
        if not Path(file.full_path).is_file():
            gone[file.source_name] = max(gone.get(file.source_name, 0), file.ts_ms or 0)
    return {(n.recording, n.path) for n in new if (n.ts_ms or 0) <= gone.get(n.source_name, -1)}


def read_again(warehouse: Warehouse, cluster: str, found: dict[str, Stretch], but: set[Place]) -> list[NewFile]:
    """Return the snapshots in the tables that lie in these stretches, but those in the places ``but``."""
    if not warehouse.exists(LEDGER):
        return []
    rows = [(source, s.since_ms, s.until_ms) for source, s in found.items()]
    asked = warehouse.spark.createDataFrame(rows, "source STRING, since_ms BIGINT, until_ms BIGINT")
    known = _snapshots(warehouse, cluster, min(s.since_ms for s in found.values())).join(F.broadcast(asked), "source")
    inside = known.where("ts_ms >= since_ms AND (until_ms IS NULL OR ts_ms <= until_ms)").orderBy("recording", "path")
    return [
        NewFile(RecordedFile(k.recording, k.path, k.kind, k.bytes, k.source, k.ts_ms), k.sha256)
        for k in inside.where(F.col("status").isin(*IN_TABLES)).collect()
        if (k.recording, k.path) not in but
    ]


def copies_elsewhere(
    warehouse: Warehouse, cluster: str, recordings: Sequence[str], files: Iterable[tuple[str, str]]
) -> list[KnownFile]:
    """Return the snapshots of these recordings that have one of these paths with the SHA-256 beside it."""
    asked = warehouse.spark.createDataFrame(sorted(set(files)), "path STRING, sha256 STRING")
    known = warehouse.read(LEDGER).where(
        (F.col("cluster") == cluster) & F.col("kind").isin(*SNAPSHOTS) & F.col("recording").isin(*recordings)
    )
    found = known.join(F.broadcast(asked), ["path", "sha256"], "left_semi")
    return [known_file(row) for row in found.select(*LEDGER_COLUMNS).collect()]


def replaced(cluster: str, found: dict[str, Stretch], ts: str) -> str:
    """Predicate of all rows of these stretches; ``ts`` is the column of their instant."""
    each = " OR ".join(_within(source, stretch, ts) for source, stretch in sorted(found.items()))
    return f"cluster = {quoted(cluster)} AND ({each})"


def _within(source: str, stretch: Stretch, ts: str) -> str:
    until = "" if stretch.until_ms is None else f" AND {ts} <= timestamp_millis({stretch.until_ms})"
    return f"(source_name = {quoted(source)} AND {ts} >= timestamp_millis({stretch.since_ms}){until})"


def _firsts(files: Iterable[RecordedFile]) -> dict[str, int]:
    firsts: dict[str, int] = {}
    for file in files:
        source, ms = str(file.source_name), file.ts_ms or 0
        firsts[source] = min(firsts.get(source, ms), ms)
    return firsts


def _snapshots(warehouse: Warehouse, cluster: str, since_ms: int) -> DataFrame:
    """Those of the ledger from then on: its columns, and source, file_name and ts_ms, as the path says them."""
    files = warehouse.read(LEDGER).where((F.col("cluster") == cluster) & F.col("kind").isin(*SNAPSHOTS))
    source, ts, name = (F.get(F.split("path", "/"), F.lit(part)) for part in (1, 2, 3))
    told = {"source": source, "ts_ms": ts.cast("bigint"), "file_name": name}
    return files.where(F.col("last_ts") >= F.timestamp_millis(F.lit(since_ms))).withColumns(told)
