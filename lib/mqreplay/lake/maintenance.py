"""Compact the files of tables, and remove files and log entries that no recent version needs. Spark is not needed.

delta-rs compacts no table with clustering, and writes to none. So files are rewritten as a task of an engine rewrites
them (landing.py), and unused files are listed by delta-rs and removed here (docs/adr/0031).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import polars as pl

from mqreplay.errors import ContractError
from mqreplay.lake.delta_files import remove_old_log_entries, snapshot, unused_files, write_checkpoint
from mqreplay.lake.delta_log import CommitConflict, added, commit, removed
from mqreplay.lake.files import files_of, joined
from mqreplay.lake.landing import Landed, Landing, land
from mqreplay.lake.lease import require_lease
from mqreplay.lake.orphans import DATA
from mqreplay.lake.warehouse import Warehouse, file_batches

SMALL_BYTES = 32_000_000  # smaller files are compacted,
PACKED_BYTES = 128_000_000  # into files of about this size


@dataclass(frozen=True)
class SmallFiles:
    """Small files of one cluster and day, which become one file: (name, bytes), and their number of rows."""

    files: tuple[tuple[str, int], ...]
    rows: int


def small_files(warehouse: Warehouse, name: str) -> list[SmallFiles]:
    """Return the small files of a table that can be compacted: there are two or more of a cluster and day."""
    if not warehouse.exists(name):
        return []
    files = snapshot(warehouse.location(name)).files
    if "min.cluster" not in files.columns:
        return []
    # Files of several clusters or days, as Spark's OPTIMIZE makes them, are compacted with those of the same bounds.
    ends = [f"{end}.{column}" for column in ("cluster", "day") for end in ("min", "max")]
    small = files.filter((pl.col("size_bytes") < SMALL_BYTES) & pl.col("min.cluster").is_not_null())
    found: list[SmallFiles] = []
    for _, group in small.group_by([end for end in ends if end in files.columns], maintain_order=True):
        number = pl.col("size_bytes").cum_sum() // PACKED_BYTES
        for _, packed in group.group_by(number, maintain_order=True):
            if len(packed) > 1:
                pairs = tuple(packed.select("path", "size_bytes").iter_rows())
                found.append(SmallFiles(pairs, int(packed["num_records"].sum())))
    return found


def compacted(task: SmallFiles, landing: Landing) -> list[Landed]:
    """Write the rows of small files into one file, in the order of its buckets. A task of an engine calls it."""
    paths = [joined(landing.folder, name) for name, _ in task.files]
    made = land(chain.from_iterable(file_batches(path, landing.schema) for path in paths), landing)
    if sum(file.rows for file in made) != task.rows:
        raise ContractError(f"rows of {paths[0]} were lost in compaction; please report this as a bug")
    return made


def take_compacted(warehouse: Warehouse, name: str, gone: Sequence[SmallFiles], landed: Sequence[Landed]) -> bool:
    """Replace files by those with the same rows, in one commit that changes no row for readers of changes.

    Return False, without a commit, if another program committed a version.
    """
    place = warehouse.location(name)
    now = snapshot(place)
    old = [pair for task in gone for pair in task.files]
    if not {path for path, _ in old} <= set(now.files["path"]):
        return False
    actions = [removed(path, size, changes=False) for path, size in old]
    actions += [added(file, changes=False) for file in landed]
    try:
        commit(place, now.version + 1, actions, overwrites=True, operation="OPTIMIZE")
    except CommitConflict:
        return False
    write_checkpoint(place)
    return True


def removable_files(warehouse: Warehouse, name: str, days: int) -> dict[str, int]:
    """Return the data files that no version of the last ``days`` days uses, with their sizes in bytes."""
    place = warehouse.location(name)
    unused = {file for file in unused_files(place, days) if DATA.fullmatch(file)}
    return {file.name: file.bytes for file in files_of(place).walk(place) if file.name in unused} if unused else {}


def remove_unused(warehouse: Warehouse, name: str, days: int) -> tuple[int, int, int]:
    """Remove the data files that no version of the last ``days`` days uses, and log entries older than 30 days.

    Entries that a later version needs stay. Return the number of removed data files, their bytes, and the number of
    removed log entries. The warehouse has no open journal: a rollback may need its files.
    """
    files, place = removable_files(warehouse, name, days), warehouse.location(name)
    require_lease(place)
    for file in files:
        files_of(place).remove(joined(place, file))
    return len(files), sum(files.values()), remove_old_log_entries(place)
