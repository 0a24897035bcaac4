"""Which snapshots are read again as others come late: from the first late one on, until a whole file sets it right.

What changed from one snapshot to the next hangs on the one before. A file that decodes, and is no .bak, is believed
whatever was known (diffs.py): what comes after the first such one behind the last late file is as it was.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from mqreplay.ingest.manifest import NewFile
from mqreplay.ingest.recording import SNAPSHOTS, RecordedFile
from mqreplay.ingest.snapshot_rows import instant
from mqreplay.lake.sql import quoted
from mqreplay.lake.warehouse import Warehouse

LEDGER = "bronze.source_file"
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


def stretches(warehouse: Warehouse, cluster: str, new: list[NewFile]) -> dict[str, Stretch]:
    """For each source with new snapshots what is to be read of it."""
    if not warehouse.exists(LEDGER):
        return {source: Stretch(since) for source, since in _firsts(new).items()}
    last: dict[tuple[str, str], int] = {}
    for n in new:
        family = str(n.file.source_name), n.file.file_name.removesuffix(".bak")
        last[family] = max(last.get(family, 0), n.file.ts_ms or 0)
    rows = [(*family, ms) for family, ms in last.items()]
    asked = warehouse.spark.createDataFrame(rows, "source STRING, file_name STRING, new_ms BIGINT")
    known = _snapshots(warehouse, cluster, min(last.values())).where("status = 'read'")
    whole = known.join(F.broadcast(asked), ["source", "file_name"]).where("ts_ms > new_ms")
    firsts = whole.groupBy("source", "file_name").agg(F.min("ts_ms").alias("ms")).collect()
    ends = {(row.source, row.file_name): row.ms for row in firsts}
    until: dict[str, int] = {}
    for family in last:
        until[family[0]] = max(until.get(family[0], 0), ends.get(family, NEVER))
    return {s: Stretch(since, None if until[s] == NEVER else until[s]) for s, since in _firsts(new).items()}


def read_elsewhere(new: list[NewFile], again: list[NewFile]) -> list[NewFile]:
    """Those of ``new`` that were read before, of another recording: its copy, or itself under another name."""
    known = {(a.file.path, a.sha256) for a in again}
    return [n for n in new if (n.file.path, n.sha256) in known]


def too_late(new: list[NewFile], again: list[NewFile]) -> list[NewFile]:
    """Those of ``new`` before files that are to be read again and are not there any more: nobody knows what changed."""
    gone: dict[str | None, int] = {}
    for file in (a.file for a in again):
        if not Path(file.full_path).is_file():
            gone[file.source_name] = max(gone.get(file.source_name, 0), file.ts_ms or 0)
    return [n for n in new if (n.file.ts_ms or 0) <= gone.get(n.file.source_name, -1)]


def read_again(warehouse: Warehouse, cluster: str, found: dict[str, Stretch], new: Iterable[NewFile]) -> list[NewFile]:
    """The snapshots read before that lie in these stretches, but those in whose place a new one lies."""
    if not warehouse.exists(LEDGER):
        return []
    rows = [(source, s.since_ms, s.until_ms) for source, s in found.items()]
    asked = warehouse.spark.createDataFrame(rows, "source STRING, since_ms BIGINT, until_ms BIGINT")
    known = _snapshots(warehouse, cluster, min(s.since_ms for s in found.values())).join(F.broadcast(asked), "source")
    inside = known.where("ts_ms >= since_ms AND (until_ms IS NULL OR ts_ms <= until_ms)").orderBy("recording", "path")
    places = {(n.file.recording, n.file.path) for n in new}
    return [
        NewFile(RecordedFile(k.recording, k.path, k.kind, k.bytes, k.source, k.ts_ms), k.sha256)
        for k in inside.collect()
        if (k.recording, k.path) not in places
    ]


def replaced(cluster: str, found: dict[str, Stretch], ts: str) -> str:
    """Predicate of all rows of these stretches; ``ts`` is the column of their instant."""
    each = " OR ".join(_within(source, stretch, ts) for source, stretch in sorted(found.items()))
    return f"cluster = {quoted(cluster)} AND ({each})"


def _within(source: str, stretch: Stretch, ts: str) -> str:
    until = "" if stretch.until_ms is None else f" AND {ts} <= timestamp_millis({stretch.until_ms})"
    return f"(source_name = {quoted(source)} AND {ts} >= timestamp_millis({stretch.since_ms}){until})"


def _firsts(new: list[NewFile]) -> dict[str, int]:
    firsts: dict[str, int] = {}
    for n in new:
        source, ms = str(n.file.source_name), n.file.ts_ms or 0
        firsts[source] = min(firsts.get(source, ms), ms)
    return firsts


def _snapshots(warehouse: Warehouse, cluster: str, since_ms: int) -> DataFrame:
    """Those of the ledger from then on: its columns, and source, file_name and ts_ms, as the path says them."""
    files = warehouse.read(LEDGER).where((F.col("cluster") == cluster) & F.col("kind").isin(*SNAPSHOTS))
    source, ts, name = (F.get(F.split("path", "/"), F.lit(part)) for part in (1, 2, 3))
    told = {"source": source, "ts_ms": ts.cast("bigint"), "file_name": name}
    return files.where(F.col("last_ts") >= F.timestamp_millis(F.lit(since_ms))).withColumns(told)
