"""Compact the files of tables, and remove files and log entries that no recent version needs, by delta-rs."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

import polars as pl

from mqreplay.lake.delta_table import CommitConflict, changing, commit_files, open_table, table_errors
from mqreplay.lake.files import files_of, for_each, joined
from mqreplay.lake.table_files import file_batches, files_in
from mqreplay.lake.table_log import LOG
from mqreplay.lake.table_writer import WrittenFile
from mqreplay.lake.warehouse import Warehouse

# Small files become one of at most this size. Without partitions by day it holds days, and a replay of one of them
# rewrites it.
DAY_BYTES, CLUSTER_BYTES = 128_000_000, 16_000_000
SMALL_PART = 4  # of that size: smaller files are small


@dataclass(frozen=True)
class SmallFiles:
    """Small files of a partition that become one: their paths below the table's folder."""

    cluster: str
    day: dt.date | None
    paths: tuple[str, ...]

    @property
    def files(self) -> int:
        """Return the number of files."""
        return len(self.paths)


def small_files(warehouse: Warehouse, name: str) -> list[SmallFiles]:
    """Return the small files of a table that become fewer: in a partition, those of days that follow each other."""
    if not warehouse.exists(name):
        return []
    listed, known = warehouse.snapshot(name).files, warehouse.contracts[name].arrow_schema.names
    if any(field["name"] not in known for field in warehouse.snapshot(name).fields):
        return []  # new files would lack the columns that another program has added
    # delta-rs cannot remove files whose names are not ASCII (lake/delta_table.py).
    odd = listed.filter(~pl.col("path").map_elements(str.isascii, pl.Boolean)).select("cluster", "day")
    most = pl.when(pl.col("day").is_null()).then(CLUSTER_BYTES).otherwise(DAY_BYTES)
    small = listed.filter(pl.col("size_bytes") < most // SMALL_PART).join(
        odd, on=["cluster", "day"], how="anti", nulls_equal=True
    )
    before = pl.col("size_bytes").cum_sum().over("cluster", "day") - pl.col("size_bytes")
    packed = small.sort("cluster", "day", "first_day", "path").group_by(
        "cluster", "day", before // (most - most // SMALL_PART), maintain_order=True
    )
    packs = packed.agg("path").select("cluster", "day", "path").rows()
    return [SmallFiles(cluster, day, tuple(paths)) for cluster, day, paths in packs if len(paths) > 1]


def compact(warehouse: Warehouse, name: str, packs: list[SmallFiles]) -> bool:
    """Rewrite small files, in one commit that changes no row for readers of changes.

    Return False if another program committed a version meanwhile. Raises DamagedTable: a new file would hide it.
    """
    place, listed, writer = warehouse.location(name), warehouse.snapshot(name), warehouse.writer(name)
    table = open_table(place, listed.version)
    gone = listed.files.filter(pl.col("path").is_in([path for pack in packs for path in pack.paths]))
    added: list[WrittenFile] = []
    for pack in packs:
        mine = pl.DataFrame({"path": pack.paths}).join(gone, "path", maintain_order="left")
        rows = (batch for file in files_in(place, mine) for batch in file_batches(file, writer.schema))
        added += writer.write(rows)
    try:
        commit_files(place, table, added, gone, changes_rows=False)
    except CommitConflict:
        return False
    return True


def removable_files(warehouse: Warehouse, name: str, days: int) -> dict[str, int]:
    """Return the Parquet files that no version of the last ``days`` days uses, with their sizes in bytes."""
    place = warehouse.location(name)
    with table_errors(place):
        unused = set(open_table(place).vacuum(24 * days, dry_run=True, enforce_retention_duration=False, full=True))
    parquet = {path for path in unused if path.endswith(".parquet")}  # other files are not mqreplay's
    return {file.name: file.bytes for file in files_of(place).walk(place) if file.name in parquet} if parquet else {}


def remove_unused(warehouse: Warehouse, name: str, days: int) -> tuple[int, int, int]:
    """Remove the files that no version of the last ``days`` days uses, and log entries older than 30 days.

    Entries that a later version needs stay. Return the number of removed data files, their bytes, and the number of
    removed log entries. The warehouse has no open journal: a rollback may need its files.
    """
    unused, place = removable_files(warehouse, name, days), warehouse.location(name)
    files, log = files_of(place), joined(place, LOG)
    with changing(place):
        for_each(lambda path: files.remove(joined(place, path)), unused, place)
        table = open_table(place)
        table.create_checkpoint()  # entries before a checkpoint can go
        before = len(files.names(log))
        table.cleanup_metadata()
    return len(unused), sum(unused.values()), before - len(files.names(log))
