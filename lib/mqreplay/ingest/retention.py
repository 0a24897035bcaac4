"""Removal of old days of one cluster, so that later nights, and later runs of the same recordings, give the same rows.

What stays of removed days:

- the offsets at the start of the first kept day (silver.offset_checkpoint), the settings of topics and groups, and
  brokers, which are valid until they change; and the last snapshot of a source without a later one;
- bronze.source_file, by which files are not read again. Its rows of snapshots may be removed too: the time of a
  snapshot is in its path, so ingest skips old ones without them. Other files are few;
- invalid keys in bronze.quarantine, each of which is reported once;
- rows of clients with a slow clock in recordings that began on a kept day: the day of these rows is not that of the
  recording.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

import polars as pl
import pyarrow as pa

from mqreplay.decode.kinds import KINDS
from mqreplay.decode.recording.files import SNAPSHOT_FILES
from mqreplay.ingest.ledger import FILE_TABLE, QUARANTINE_TABLE, of_places
from mqreplay.ingest.manifest import DIGEST_CHARS
from mqreplay.ingest.offset_checkpoint import OFFSET_CHANGES, OffsetCheckpoint
from mqreplay.ingest.recorded_files import is_of
from mqreplay.ingest.recording import RECORDER_KINDS
from mqreplay.lake.result_cache import RETENTION, first_days
from mqreplay.lake.row_filter import RowFilter
from mqreplay.lake.table_files import BATCH_ROWS
from mqreplay.lake.table_writer import as_table
from mqreplay.lake.warehouse import Warehouse
from mqreplay.words.time_span import ONE_DAY

SNAPSHOT = "silver.snapshot"
DESCRIPTIONS = (
    "silver.topic_config",
    "silver.subscription_group",
    "silver.message_request_mode",
    "silver.pop_order",
    "silver.delay_offset",
    "silver.broker",
)  # rows are valid until the next one
# The table whose rows of old days are removed, by kind of file.
RETAINED_TABLES = {kind: record.table for kind, record in KINDS.items()} | {
    "consumer_offset": OFFSET_CHANGES,
    "client_offsets": OFFSET_CHANGES,
}


class Retention:
    """The removal of old rows of one cluster. Use it in a transaction of the journal."""

    def __init__(self, warehouse: Warehouse, cluster: str) -> None:
        """Read which days were removed before."""
        self._warehouse, self._cluster = warehouse, cluster
        self.first_days = first_days(warehouse, cluster)

    def counts(self, first: Mapping[str, dt.date]) -> dict[str, int]:
        """Return the number of rows before the ``first`` day of each layer, by table; without tables that have none."""
        return self._counts(self._old_rows(first))

    def remove(self, first: Mapping[str, dt.date]) -> dict[str, int]:
        """Remove the rows before the ``first`` day of each layer. Return the number of removed rows by table.

        Days that were removed before stay removed, also if ``first`` is earlier.
        """
        later = {layer: max(day, self.first_days.get(layer, day)) for layer, day in first.items()}
        old = self._old_rows(later)
        counts = self._counts(old)
        if "silver" in later:
            self._remove_silver(later["silver"], {name: old[name] for name in counts if name.startswith("silver.")})
        for name in counts:
            if not name.startswith("silver."):
                self._warehouse.commit_files(name, [], old[name])
        layers = {name.split(".")[0] for name in counts}
        changed = {layer: day for layer, day in later.items() if layer in layers and day != self.first_days.get(layer)}
        if changed:
            rows = [(self._cluster, layer, day) for layer, day in sorted(changed.items())]
            of_layers = pl.col("layer").is_in(sorted(changed))
            self._warehouse.replace_rows(RETENTION, rows, RowFilter(self._cluster, wanted=of_layers))
            self.first_days |= changed
        return counts

    def remove_again(self) -> int:
        """Remove rows of removed days that a file brought back: it is new, or it was changed and read again.

        Return their number. Snapshots of these days are not read, so only other files can.
        """
        first = self.first_days.get("silver")
        if first is None:
            return 0
        if not self._counts({kind.table: self._before(first) for kind in KINDS.values()}):
            return 0
        old = self._old_records(first)
        counts = self._counts(old)
        self._remove_silver(first, {name: old[name] for name in counts})
        return sum(counts.values())

    def of_kept_days(self, files: pl.DataFrame) -> pl.DataFrame:
        """Return the files without snapshots of removed days: these are neither read, nor missed if they are gone.

        ``files`` has path and kind, the path as snapshots/SOURCE/TIME/FILE.
        """
        first = self.first_days.get("silver")
        if first is None:
            return files
        ts = pl.col("path").str.split("/").list.get(2, null_on_oob=True).cast(pl.Int64, strict=False)
        is_removed = is_of(SNAPSHOT_FILES) & (ts < int(_midnight(first).timestamp() * 1000))
        return files.filter(~is_removed.fill_null(False))

    def _before(self, day: dt.date) -> RowFilter:
        return RowFilter(self._cluster, between=(dt.date.min, day - ONE_DAY))

    def _old_rows(self, first: Mapping[str, dt.date]) -> dict[str, RowFilter]:
        old: dict[str, RowFilter] = {}
        for name, contract in self._warehouse.contracts.items():
            if contract.has_day_column and contract.layer in first and name not in DESCRIPTIONS:
                old[name] = self._before(first[contract.layer])
        if "silver" in first:
            old |= self._old_records(first["silver"])
            old[SNAPSHOT] = self._old_snapshots(first["silver"])
        silver = first.get("silver", self.first_days.get("silver"))
        if "bronze" in first and silver is not None:
            old |= self._old_files(min(first["bronze"], silver))
        return old

    def _old_records(self, first: dt.date) -> dict[str, RowFilter]:
        """Return the rows of earlier days that were made from JSONL files."""
        tables = sorted({kind.table for kind in KINDS.values()})
        if slow := self._of_slow_clocks(first):
            of_others = ~pl.col("source_digest").is_in(slow)
            return {name: replace(self._before(first), wanted=of_others) for name in tables}
        return {name: self._before(first) for name in tables}

    def _of_slow_clocks(self, first: dt.date) -> list[str]:
        """Return files with rows of earlier days whose recordings began on a kept day, by the recorder's clock."""
        files, midnight = self._warehouse.read(FILE_TABLE, RowFilter(self._cluster)), _midnight(first)
        early = pl.col("kind").is_in(list(KINDS)) & (pl.col("first_ts") < midnight)
        began = (
            files.filter(pl.col("kind").is_in(list(RECORDER_KINDS))).group_by("recording").agg(pl.col("first_ts").min())
        )
        later = began.filter(pl.col("first_ts") >= midnight)
        digest = pl.col("sha256").str.head(DIGEST_CHARS)
        found = files.filter(early).join(later, "recording", "semi").select(digest.unique(maintain_order=True))
        return found.collect(engine="streaming").to_series().to_list()

    def _old_snapshots(self, first: dt.date) -> RowFilter:
        """Return the rows of earlier days, without the last row of a file that has no later one."""
        family = pl.col("file_name").str.strip_suffix(".bak").alias("family")
        key = ["source_name", "family"]
        earlier = self._warehouse.read(SNAPSHOT, self._before(first)).group_by("source_name", family)
        later = self._warehouse.read(SNAPSHOT, RowFilter(self._cluster, between=(first, dt.date.max)))
        last = earlier.agg(pl.col("ts").max()).join(later.select("source_name", family).unique(), on=key, how="anti")
        kept = last.select(_snapshot_name(pl.col("family"))).collect(engine="streaming").to_series().to_list()
        is_kept = _snapshot_name(family).is_in(kept)
        return RowFilter(self._cluster, between=(dt.date.min, first - ONE_DAY), wanted=~is_kept)

    def _old_files(self, first: dt.date) -> dict[str, RowFilter]:
        """Return the rows of snapshots of earlier days in the ledger, and the refused rows of files of these days."""
        is_old = pl.col("last_ts") < _midnight(first)
        # The settings of topics and groups stay, so the ledger keeps their files.
        has_rows = (pl.col("rows_out") > 0) & ~pl.col("kind").is_in(list(RETAINED_TABLES))
        snapshots = RowFilter(self._cluster, wanted=is_old & pl.col("kind").is_in(SNAPSHOT_FILES) & ~has_rows)
        files = self._warehouse.read(
            FILE_TABLE, RowFilter(self._cluster, wanted=is_old & (pl.col("rows_quarantined") > 0))
        )
        places = files.select("recording", "path").collect().rows()
        refused = RowFilter(self._cluster, wanted=of_places(places) & (pl.col("code") != "orphan_key"))
        return {FILE_TABLE: snapshots, QUARANTINE_TABLE: refused}

    def _counts(self, old: Mapping[str, RowFilter]) -> dict[str, int]:
        found = {}
        for name, rows in sorted(old.items()):
            found[name] = int(self._warehouse.read(name, rows).select(pl.len()).collect().item())
        return {name: count for name, count in found.items() if count}

    def _remove_silver(self, first: dt.date, old: Mapping[str, RowFilter]) -> None:
        if OFFSET_CHANGES in old:
            OffsetCheckpoint(self._warehouse, self._cluster).keep(first)
        for name, rows in old.items():
            self._warehouse.commit_files(name, [], rows)
        if old:
            self._count_expired(first)

    def _count_expired(self, first: dt.date) -> None:
        """Write the number of removed rows of each file into the ledger."""
        has_old = pl.col("kind").is_in(list(RETAINED_TABLES)) & (pl.col("first_ts") < _midnight(first))
        is_slow = pl.col("sha256").str.head(DIGEST_CHARS).is_in(self._of_slow_clocks(first))
        of_old = has_old & (pl.col("status") == "read") & ~is_slow
        is_whole = pl.col("last_ts") < _midnight(first)
        file = pl.concat_str("kind", pl.lit(" "), pl.col("sha256").str.head(DIGEST_CHARS))
        cut = self._warehouse.read(FILE_TABLE, RowFilter(self._cluster, wanted=of_old & ~is_whole))
        by_kind = cut.group_by("kind").agg(pl.col("sha256").str.head(DIGEST_CHARS)).collect()
        left = {
            f"{kind} {digest}": rows for kind, digests in by_kind.rows() for digest, rows in self._left(kind, digests)
        }
        of_cut = file.replace_strict(left, default=0, return_dtype=pl.Int64) if left else pl.lit(0, pl.Int64)
        expired = pl.when(is_whole).then("rows_out").otherwise(pl.col("rows_out") - of_cut)
        changed = RowFilter(self._cluster, wanted=of_old & (expired != pl.col("rows_expired").fill_null(0)))
        rows = self._warehouse.read(FILE_TABLE, changed).with_columns(rows_expired=expired)
        writer = self._warehouse.writer(FILE_TABLE)
        # In batches: a million files must not be in memory at once.
        batches = _batches(rows.collect_batches(chunk_size=BATCH_ROWS), writer.schema)
        self._warehouse.commit_files(FILE_TABLE, writer.write(batches), changed)

    def _left(self, kind: str, digests: Collection[str]) -> Iterator[tuple[str, int]]:
        """Yield the files of this kind that still have rows, with the number of lines with rows."""
        table = RETAINED_TABLES[kind]
        rows = self._warehouse.read(table, RowFilter(self._cluster, digests=frozenset(digests)))
        by_record = "record_id" in self._warehouse.contracts[table].arrow_schema.names
        count = pl.col("record_id").n_unique() if by_record else pl.len()
        yield from rows.group_by("source_digest").agg(count.cast(pl.Int64)).collect(engine="streaming").iter_rows()


def _snapshot_name(family: pl.Expr) -> pl.Expr:
    return pl.concat_str("source_name", pl.lit("\0"), family, pl.lit("\0"), pl.col("ts").dt.epoch("us"))


def _midnight(day: dt.date) -> dt.datetime:
    return dt.datetime.combine(day, dt.time(), dt.UTC)


def _batches(frames: Iterable[pl.DataFrame], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for frame in frames:
        yield from as_table(frame, schema, FILE_TABLE).to_batches()
