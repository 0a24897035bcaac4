"""Compact the files of tables, and remove files and log entries that no recent version needs, by delta-rs."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

import polars as pl

from mqreplay.lake.data_checksums import check_files
from mqreplay.lake.delta_table import COMMIT_PROPERTIES, CommitConflict, changing, open_table, table_errors
from mqreplay.lake.files import files_of, for_each, joined
from mqreplay.lake.row_filter import RowFilter
from mqreplay.lake.table_log import LOG
from mqreplay.lake.table_writer import WRITER_PROPERTIES
from mqreplay.lake.warehouse import Warehouse

SMALL_BYTES = 32_000_000  # smaller files are compacted,
PACKED_BYTES = 128_000_000  # into files of about this size


@dataclass(frozen=True)
class SmallFiles:
    """A partition with small files that become fewer: its values, and the number of small files."""

    cluster: str
    day: str | None
    files: int


def small_files(warehouse: Warehouse, name: str) -> list[SmallFiles]:
    """Return the partitions of a table with two or more small files."""
    if not warehouse.exists(name):
        return []
    listed = warehouse.snapshot(name).files
    # delta-rs cannot remove files whose names are not ASCII (lake/delta_table.py).
    odd = listed.filter(~pl.col("path").map_elements(str.isascii, pl.Boolean)).select("cluster", "day")
    small = listed.filter(pl.col("size_bytes") < SMALL_BYTES).join(
        odd, on=["cluster", "day"], how="anti", nulls_equal=True
    )
    counted = small.group_by("cluster", "day").len().filter(pl.col("len") > 1).sort("cluster", "day")
    return [SmallFiles(cluster, None if day is None else str(day), files) for cluster, day, files in counted.rows()]


def compact(warehouse: Warehouse, name: str, partitions: list[SmallFiles]) -> bool:
    """Rewrite the small files of partitions, in one commit each that changes no row for readers of changes.

    Return False if another program committed a version meanwhile. Raises DamagedTable: a new file would hide it.
    """
    place, files = warehouse.location(name), warehouse.snapshot(name)
    for one in partitions:
        days = None if one.day is None else frozenset({dt.date.fromisoformat(one.day)})
        check_files(place, files.of(RowFilter(one.cluster, days)))
    try:
        for one in partitions:
            filters = [("cluster", "=", one.cluster)] + ([] if one.day is None else [("day", "=", one.day)])
            with changing(place):
                open_table(place).optimize.compact(
                    partition_filters=filters,
                    target_size=PACKED_BYTES,
                    writer_properties=WRITER_PROPERTIES,
                    commit_properties=COMMIT_PROPERTIES,
                )
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
