"""Snapshots that are read again because others were added late, changed or removed.

A change from one snapshot to the next depends on the one before. A complete file that is not a .bak is always used
(diffs.py), so rows after the first such file after the last change stay the same. A file of polled offsets covers an
hour, which may include copies of other files: it is read from its beginning, and its source to the end.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from mqreplay.decode.recording.files import POLLED, SNAPSHOT_FILES
from mqreplay.ingest.manifest import IN_TABLES, LEDGER, Place
from mqreplay.ingest.opening import is_file
from mqreplay.ingest.polled import NEAR_MS
from mqreplay.ingest.recorded_files import RecordedFiles, listed
from mqreplay.ingest.snapshot_rows import instant
from mqreplay.lake.row_filter import RowFilter
from mqreplay.lake.warehouse import Warehouse

FILE_TABLE, QUARANTINE_TABLE = "bronze.source_file", "bronze.quarantine"
NEVER = 2**63 - 1  # ms
FAMILY_MS = {"source_name": pl.String(), "file_name": pl.String(), "new_ms": pl.Int64()}
Reach = tuple[int, int]  # epoch ms of the first and the last line of a file


@dataclass(frozen=True)
class SourceSpan:
    """The time span of a source that is read, in epoch ms; end None: to its end."""

    since_ms: int
    until_ms: int | None = None

    @property
    def first_day(self) -> dt.date:
        """Return the UTC day."""
        return instant(self.since_ms * 1000).date()

    @property
    def last_day(self) -> dt.date:
        """Return the UTC day."""
        return dt.date.max if self.until_ms is None else instant(self.until_ms * 1000).date()


def within(found: Mapping[str, SourceSpan], ms: pl.Expr) -> pl.Expr:
    """Return whether a row of a source with the instant ``ms`` is in the source's time span."""
    since = {source: span.since_ms for source, span in found.items()}
    until = {source: NEVER if s.until_ms is None else s.until_ms for source, s in found.items()}
    first, last = (
        pl.col("source_name").replace_strict(of_source, default=None, return_dtype=pl.Int64)
        for of_source in (since, until)
    )
    return ms.is_between(first, last).fill_null(False)


def snapshots_of(files: pl.DataFrame) -> pl.DataFrame:
    """Return source_name, ts_ms and file_name of snapshots with these paths."""
    return files.select("recording", "path", **_of_path())


def source_spans(warehouse: Warehouse, cluster: str, changed: pl.DataFrame) -> dict[str, SourceSpan]:
    """Return the time span to read for each source of the ``changed`` snapshots (see snapshots_of)."""
    firsts = _firsts(changed)
    if not warehouse.exists(FILE_TABLE):
        return {source: SourceSpan(since) for source, since in firsts.items()}
    firsts, polled = _with_polled(warehouse, cluster, changed, firsts)
    families = changed.group_by("source_name", pl.col("file_name").str.strip_suffix(".bak")).agg(pl.col("ts_ms").max())
    last = {(source, name): ms for source, name, ms in families.iter_rows()}
    known = _snapshots(warehouse, cluster, min(last.values())).filter(pl.col("status") == "read")
    asked = pl.LazyFrame([(*key, ms) for key, ms in last.items()], schema=FAMILY_MS, orient="row")
    whole = known.join(asked, ["source_name", "file_name"]).filter(pl.col("ts_ms") > pl.col("new_ms"))
    found = whole.group_by("source_name", "file_name").agg(pl.col("ts_ms").min()).collect()
    ends = {(source, name): ms for source, name, ms in found.iter_rows()}
    # An invalid key is reported once, at its first file, which may be anywhere from here on.
    until = dict.fromkeys(_with_orphan_keys(warehouse, cluster, firsts), NEVER)
    for family in last:
        until[family[0]] = max(until.get(family[0], 0), ends.get(family, NEVER))
    until.update(dict.fromkeys(polled, NEVER))
    return {s: SourceSpan(since, None if until[s] == NEVER else until[s]) for s, since in firsts.items()}


def _with_polled(
    warehouse: Warehouse, cluster: str, changed: pl.DataFrame, firsts: Mapping[str, int]
) -> tuple[dict[str, int], set[str]]:
    """Return the start of each source, by the files of polled offsets, and the sources to read to the end."""
    reaches = _reaches(warehouse, cluster, firsts)
    is_polled = pl.col("file_name").is_in(POLLED)
    begins, polled = dict(firsts), _firsts(changed.filter(is_polled))
    copied = _firsts(changed.filter(~is_polled))
    for source in firsts:
        known = reaches.get(source, [])
        starts = [_since(copied[source], known, is_copy=True)] if source in copied else []
        starts += [_since(polled[source], known, is_copy=False)] if source in polled else []
        begins[source] = min(starts)
    to_end = {s for s, known in reaches.items() if any(last >= begins[s] - NEAR_MS for _, last in known)}
    return begins, to_end | polled.keys()


def _reaches(warehouse: Warehouse, cluster: str, sources: Iterable[str]) -> dict[str, list[Reach]]:
    """Return by source the time span of each file of polled offsets in the tables."""
    is_polled = pl.any_horizontal(pl.col("path").str.ends_with(f"/{name}") for name in POLLED)
    polled = warehouse.read(FILE_TABLE, RowFilter(cluster)).filter(is_polled & pl.col("status").is_in(IN_TABLES))
    asked = polled.with_columns(**_of_path()).filter(pl.col("source_name").is_in(sorted(sources)))
    reaches: dict[str, list[Reach]] = {}
    for source, *reach in asked.select("source_name", "ts_ms", pl.col("last_ts").dt.epoch("ms")).collect().iter_rows():
        reaches.setdefault(source, []).append((reach[0], reach[1]))
    return reaches


def _since(first_ms: int, reaches: Collection[Reach], *, is_copy: bool) -> int:
    """Return the start so that no file of polled offsets is cut and a copy is read with the polls that supersede it.

    The last poll of a file may lie before a new copy. A new poll may supersede older copies that no other poll did.

    >>> _since(500_000, [(100_000, 450_000)], is_copy=True), _since(500_000, [(100_000, 450_000)], is_copy=False)
    (100000, 450001)
    """
    near = NEAR_MS if is_copy else 0
    since = min([first_ms, *(first for first, last in reaches if first <= first_ms <= last + near)])
    while (earlier := min([since, *(first for first, last in reaches if first < since <= last)])) < since:
        since = earlier
    return since if is_copy else max([since - NEAR_MS, *(last + 1 for _, last in reaches if last < since)])


def orphan_keys(warehouse: Warehouse, cluster: str) -> pl.LazyFrame:
    """Return source_name, topic (the key) and ts_ms of invalid keys in snapshots."""
    rows = warehouse.read(QUARANTINE_TABLE, RowFilter(cluster)).filter(pl.col("code") == "orphan_key")
    return rows.select(**_of_path(), topic=pl.col("detail_key")).select("source_name", "topic", "ts_ms")


def _with_orphan_keys(warehouse: Warehouse, cluster: str, sources: Iterable[str]) -> set[str]:
    found = orphan_keys(warehouse, cluster).select("source_name").unique().collect()
    return set(found["source_name"]) & set(sources)


def too_late(new: pl.DataFrame, again: RecordedFiles) -> set[Place]:
    """Return the places of ``new`` snapshots that are before missing files which are needed again."""
    gone: dict[str, int] = {}
    for file, _ in again:
        if not is_file(file.full_path):
            gone[str(file.source_name)] = max(gone.get(str(file.source_name), 0), file.ts_ms or 0)
    if not gone:
        return set()
    since = pl.col("source_name").replace_strict(gone, default=-1, return_dtype=pl.Int64)
    late = new.filter(pl.col("ts_ms") <= since).select(pl.col("recording").cast(pl.String), "path")
    return set(late.iter_rows())


def read_again(warehouse: Warehouse, cluster: str, found: dict[str, SourceSpan], but: pl.DataFrame) -> RecordedFiles:
    """Return the snapshots in the tables within these time spans, except those in the places ``but``."""
    if not warehouse.exists(FILE_TABLE):
        return RecordedFiles()
    known = _snapshots(warehouse, cluster, min(s.since_ms for s in found.values()))
    inside = within(found, pl.col("ts_ms")) & pl.col("status").is_in(IN_TABLES)
    files = known.filter(inside).select("recording", "path", "kind", "bytes", "sha256").collect()
    others = but.select(pl.col("recording").cast(pl.String), "path")
    return listed(files.join(others, on=["recording", "path"], how="anti").sort("recording", "path"))


def copies_elsewhere(
    warehouse: Warehouse, cluster: str, recordings: Sequence[str], files: pl.DataFrame
) -> pl.DataFrame:
    """Return the snapshots (LEDGER) of these recordings that have the path and SHA-256 of one of ``files``."""
    mine = pl.col("kind").is_in(SNAPSHOT_FILES) & pl.col("recording").is_in(list(recordings))
    known = warehouse.read(FILE_TABLE, RowFilter(cluster)).filter(mine)
    return known.join(files.lazy(), on=["path", "sha256"], how="semi").select(LEDGER.names()).collect().cast(LEDGER)


def _firsts(files: pl.DataFrame) -> dict[str, int]:
    return dict(files.group_by("source_name").agg(pl.col("ts_ms").min()).iter_rows())


def _snapshots(warehouse: Warehouse, cluster: str, since_ms: int) -> pl.LazyFrame:
    """Return the ledger's snapshots from then on, with source_name, file_name and ts_ms of their paths."""
    files = warehouse.read(FILE_TABLE, RowFilter(cluster)).filter(pl.col("kind").is_in(SNAPSHOT_FILES))
    return files.filter(pl.col("last_ts") >= instant(since_ms * 1000)).with_columns(**_of_path())


def _of_path() -> dict[str, pl.Expr]:
    """Return the parts of snapshots/SOURCE/TIME/FILE."""
    part = pl.col("path").str.split("/").list
    return {
        "source_name": part.get(1, null_on_oob=True),
        "ts_ms": part.get(2, null_on_oob=True).cast(pl.Int64, strict=False),
        "file_name": part.get(3, null_on_oob=True),
    }
